//! Callers that are killed, and other processes that finish what they left; counted in the parent.

use std::{
    any::Any,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use effectual::{EffectContext, Executor, Ledger, PostgresLedger, Recovery, SqliteLedger, effect};
use effectual_tests::{
    database::{PostgresDatabase, SqliteFile},
    process::{Process, tell, told},
    scripted::ScriptedError,
    servers,
    wait::until,
};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};

use crate::effects::{Windowed, World, once};

const LIMIT: Duration = Duration::from_secs(60);

/// Where the parent's counter is, as a resource of the processes that recover.
#[derive(Clone)]
pub(crate) struct Counter(pub(crate) String);

/// Says hello, waits to be let in, and then performs under its key: the parent sees each step. The second deploy says so.
#[effect(keying = business_identity, provider = Windowed, durable)]
async fn delivering(
    cx: &EffectContext,
    #[key] order: String,
    #[skip] counter: Counter,
) -> effectual::Result<String, ScriptedError> {
    ask(&counter.0, "hello").await?;
    let key = cx.idempotency_key().to_owned();
    let _permit = cx.send_permit().map_err(ScriptedError::from)?;
    let number = ask(&counter.0, &key).await?;
    let deploy = if std::env::var_os(SECOND_DEPLOY).is_some() { "second" } else { "first" };
    Ok(format!("{order} {number} {deploy}"))
}

const SECOND_DEPLOY: &str = "EFFECTUAL_TEST_SECOND_DEPLOY";

async fn ask(address: &str, line: &str) -> Result<String, ScriptedError> {
    let stream = tokio::net::TcpStream::connect(address).await.map_err(|_| ScriptedError::NoConnection)?;
    let mut stream = tokio::io::BufReader::new(stream);
    stream.write_all(format!("{line}\n").as_bytes()).await.map_err(|_| ScriptedError::Lost)?;
    let mut said = String::new();
    stream.read_line(&mut said).await.map_err(|_| ScriptedError::Lost)?;
    if said.is_empty() { Err(ScriptedError::Lost) } else { Ok(said.trim().to_owned()) }
}

/// A provider that deduplicates by key. Its first answers are withheld: to a hello, or to a request that it performed.
struct Provider {
    address: String,
    books: Arc<Mutex<Books>>,
}

#[derive(Default)]
struct Books {
    withhold_hello: bool,
    withhold_answer: bool,
    hellos: usize,
    keys: Vec<String>,
    performed: Vec<String>,
    kept: Vec<TcpStream>,
}

fn lock(books: &Mutex<Books>) -> MutexGuard<'_, Books> {
    books.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Provider {
    fn start(withhold_hello: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let books = Books { withhold_hello, withhold_answer: !withhold_hello, ..Books::default() };
        let books = Arc::new(Mutex::new(books));
        let shared = Arc::clone(&books);
        // Ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serve(stream, &mut lock(&shared));
            }
        });
        Self { address, books }
    }
}

fn serve(stream: TcpStream, books: &mut Books) {
    let mut line = String::new();
    if BufReader::new(&stream).read_line(&mut line).is_err() {
        return;
    }
    let (answer, withhold) = match line.trim() {
        "hello" => {
            books.hellos += 1;
            ("welcome".to_owned(), std::mem::take(&mut books.withhold_hello))
        }
        key => {
            books.keys.push(key.to_owned());
            if !books.performed.iter().any(|known| known == key) {
                books.performed.push(key.to_owned());
            }
            (books.performed.len().to_string(), std::mem::take(&mut books.withhold_answer))
        }
    };
    if withhold {
        books.kept.push(stream);
    } else {
        // Who asked may be gone by now.
        drop(writeln!(&stream, "{answer}"));
    }
}

async fn open(place: &str) -> Arc<dyn Ledger> {
    if place.starts_with("postgres://") {
        Arc::new(PostgresLedger::connect(place).await.expect("a PostgreSQL ledger"))
    } else {
        Arc::new(SqliteLedger::open(place).await.expect("an SQLite ledger"))
    }
}

fn executor(ledger: &Arc<dyn Ledger>, counter: &str, recovery: Recovery) -> Executor {
    World::default()
        .builder(ledger)
        .resource(Counter(counter.to_owned()))
        .attempt_timeout(Duration::from_secs(2))
        .margin(Duration::from_millis(100))
        .lease(Duration::from_millis(2_400))
        .retry(once())
        .recovery(recovery)
        .build()
        .expect("a valid set-up")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the tests of this file in processes of their own"]
async fn child() {
    let (told, number) = told();
    let told = told.display().to_string();
    let [place, counter, order] = told.split('\n').collect::<Vec<_>>()[..] else { panic!("three words") };
    let ledger = open(place).await;
    if number == 0 {
        let executor = executor(&ledger, counter, Recovery::off());
        let ended =
            delivering(&crate::effects::scope(&executor), order.into(), Counter(counter.into())).await;
        return tell(format!("{ended:?}"));
    }
    let executor = executor(&ledger, counter, Recovery::every(Duration::from_millis(20)));
    until("the effect to be recovered", LIMIT, async || executor.recovered().completed == 1).await;
    executor.drain(LIMIT).await;
    tell("recovered");
}

fn start(place: &str, provider: &Provider, order: &str, number: u64) -> Process {
    let told = format!("{place}\n{}\n{order}", provider.address);
    Process::start("processes::child", told, number, |command| {
        if number > 0 {
            command.env(SECOND_DEPLOY, "1");
        }
    })
}

async fn places(part: &str) -> Vec<(String, Box<dyn Any>)> {
    let file = SqliteFile::new();
    let mut places = vec![(file.path().display().to_string(), Box::new(file) as Box<dyn Any>)];
    if let Some(server) = servers::postgres(part) {
        let database = PostgresDatabase::create(&server).await;
        places.push((database.url(), Box::new(database)));
    }
    places
}

/// The caller never comes back; a process of the next deploy, with another body, finishes what it left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f64_the_next_deploy_finishes_what_a_killed_caller_left() {
    for (place, _keep) in places("f64 on PostgreSQL").await {
        for before_the_send in [true, false] {
            let order = if before_the_send { "o-1" } else { "o-2" };
            let provider = Provider::start(before_the_send);
            let caller = start(&place, &provider, order, 0);
            until("the caller to get so far", LIMIT, async || {
                let books = lock(&provider.books);
                if before_the_send { books.hellos == 1 } else { books.keys.len() == 1 }
            })
            .await;
            caller.kill();
            let performed = usize::from(!before_the_send);
            assert_eq!(lock(&provider.books).performed.len(), performed);
            assert_eq!(start(&place, &provider, order, 1).finish(), ["recovered"]);
            let (keys, performed) = {
                let books = lock(&provider.books);
                (books.keys.clone(), books.performed.clone())
            };
            assert_eq!(performed.len(), 1, "performed once at the provider");
            assert!(keys.iter().all(|key| *key == performed[0]), "one key: {keys:?}");
            assert_eq!(keys.len(), if before_the_send { 1 } else { 2 });
            let ledger = open(&place).await;
            let executor = executor(&ledger, "nowhere", Recovery::off());
            let scope = crate::effects::scope(&executor);
            let ended = delivering(&scope, order.into(), Counter("nowhere".into())).await;
            assert_eq!(ended.expect("the stored outcome"), format!("{order} 1 second"));
        }
    }
}
