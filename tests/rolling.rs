//! F25: a rolling deploy that changes keys. The program before it and the program after it run at once, as real processes.
#![forbid(unsafe_code)]

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::TcpListener,
    process::Command,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use effectual_tests::{
    database::{PostgresDatabase, SqliteFile},
    process::Process,
    servers,
};
use tokio::io::AsyncWriteExt;

const BEFORE: &str = env!("CARGO_BIN_EXE_rolling-before");
const AFTER: &str = env!("CARGO_BIN_EXE_rolling-after");

const NAMES: [&str; 3] = ["Ship", "Bill", "Stamp"];
const ORDERS: u64 = 8;

/// How long the processes may take to start.
const LIMIT: Duration = Duration::from_secs(60);

/// How often each effect was performed, by its name and order.
type Performed = BTreeMap<(String, u64), u64>;

/// The provider, outside all processes that call it.
struct Counter {
    address: String,
    performed: Arc<Mutex<Performed>>,
}

impl Counter {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address").to_string();
        let performed = Arc::<Mutex<Performed>>::default();
        let books = Arc::clone(&performed);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.expect("a connection");
                let mut asked = [0; 9];
                // A connection that asks for nothing performs nothing.
                if connection.read_exact(&mut asked).is_ok() {
                    let order = u64::from_be_bytes(asked[1..].try_into().expect("8 bytes"));
                    let name = NAMES[usize::from(asked[0])].to_owned();
                    let mut books = books.lock().unwrap_or_else(PoisonError::into_inner);
                    let number = books.entry((name, order)).or_default();
                    *number += 1;
                    // A client that went away was served all the same.
                    drop(connection.write_all(&number.to_be_bytes()));
                }
            }
        });
        Self { address, performed }
    }

    fn of(&self, name: &str, order: u64) -> u64 {
        let books = self.performed.lock().unwrap_or_else(PoisonError::into_inner);
        books.get(&(name.to_owned(), order)).copied().unwrap_or_default()
    }
}

struct Deploy {
    ledger: &'static str,
    url: String,
    counter: Counter,
}

impl Deploy {
    /// Runs the programs at once on the orders from `first` on; what each call came to, by its effect and order.
    async fn run(&self, programs: &[&str], first: u64) -> BTreeMap<(String, u64), Vec<String>> {
        let gate = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = gate.local_addr().expect("its address").to_string();
        let start = |program: &&str| {
            let mut command = Command::new(program);
            command.env("ROLLING_LEDGER", self.ledger).env("ROLLING_COUNTER", &self.counter.address);
            command.env("ROLLING_GATE", &address);
            Process::run(command, &self.url, 0)
        };
        let children: Vec<_> = programs.iter().map(start).collect();
        let mut ready = Vec::new();
        for _ in &children {
            let child =
                tokio::time::timeout(LIMIT, gate.accept()).await.expect("a child that is ready in time");
            ready.push(child.expect("a connection").0);
        }
        for child in &mut ready {
            child.write_u64(first).await.expect("the child goes");
        }
        let mut answers = BTreeMap::<_, Vec<_>>::new();
        for line in children.into_iter().flat_map(Process::finish) {
            let mut words = line.splitn(3, ' ');
            let name = words.next().expect("a name").to_owned();
            let order = words.next().and_then(|order| order.parse().ok()).expect("an order");
            answers.entry((name, order)).or_default().push(words.next().expect("an answer").to_owned());
        }
        answers
    }

    /// Both at once: whatever the key was, one of them performs, and the others get its outcome.
    async fn both_at_once(&self) {
        let answers = self.run(&[BEFORE, AFTER, BEFORE, AFTER], 0).await;
        assert_eq!(answers.len(), NAMES.len() * usize::try_from(ORDERS).expect("a few"));
        for ((name, order), said) in answers {
            let what = format!("{name} {order} on {}: {said:?}", self.ledger);
            assert_eq!(self.counter.of(&name, order), 1, "{what}");
            assert_eq!(said.len(), 8, "{what}");
            assert_eq!(said.iter().filter(|said| *said == "performed 1").count(), 1, "{what}");
            let ambiguous = said.iter().filter(|said| *said == "ambiguous").count();
            let replayed = said.iter().filter(|said| *said == "replayed 1").count();
            assert_eq!(replayed + ambiguous, 7, "{what}");
            // A stamp of the program before says nothing of lines: the program after, all of whose four calls come to the same,
            // cannot tell, unless it was first.
            assert!(ambiguous == 0 || (name == "Stamp" && ambiguous == 4), "{what}");
        }
    }

    /// One after the other, and back again.
    async fn one_after_the_other(&self) {
        for (programs, first) in [([BEFORE, AFTER, BEFORE], 100), ([AFTER, BEFORE, AFTER], 200)] {
            for (turn, program) in programs.into_iter().enumerate() {
                for ((name, order), said) in self.run(&[program], first).await {
                    let what =
                        format!("{name} {order}, turn {turn} of {program} on {}: {said:?}", self.ledger);
                    assert_eq!(self.counter.of(&name, order), 1, "{what}");
                    let expected = match (name.as_str(), turn, first) {
                        ("Stamp", 1, 100) => ["ambiguous", "ambiguous"],
                        (_, 0, _) => ["performed 1", "replayed 1"],
                        _ => ["replayed 1", "replayed 1"],
                    };
                    let mut said = said;
                    said.sort_unstable();
                    assert_eq!(said, expected, "{what}");
                }
            }
        }
    }
}

async fn f25(ledger: &'static str, url: String) {
    let deploy = Deploy { ledger, url, counter: Counter::start() };
    deploy.one_after_the_other().await;
    deploy.both_at_once().await;
}

#[tokio::test]
async fn f25_programs_before_and_after_a_deploy_on_sqlite() {
    let file = SqliteFile::new();
    f25("sqlite", file.path().to_str().expect("a path in UTF-8").to_owned()).await;
}

#[tokio::test]
async fn f25_programs_before_and_after_a_deploy_on_postgres() {
    let Some(server) = servers::postgres("rolling: PostgreSQL") else { return };
    let database = PostgresDatabase::create(&server).await;
    f25("postgres", database.url()).await;
}

#[tokio::test]
async fn f25_programs_before_and_after_a_deploy_through_a_pooler() {
    let part = "rolling: PostgreSQL through a pooler";
    let (Some(server), Some(pooler)) = (servers::postgres(part), servers::pgbouncer(part)) else { return };
    let database = PostgresDatabase::create(&server).await;
    f25("pooled", database.url_through(&pooler)).await;
}
