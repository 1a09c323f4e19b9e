//! A provider in this process that other processes ask over a socket, and the effects that do: its books outlive them.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use effectual::{
    EffectContext, Executor, ExecutorBuilder, Found, Ledger, PostgresLedger, SqliteLedger, effect,
};
use effectual_tests::scripted::ScriptedError;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};

use crate::effects::Windowed;

/// What a bank does with a request: a forgetful one performs again under a known key.
pub(crate) struct Bank {
    address: String,
    books: Arc<Mutex<Books>>,
}

#[derive(Default)]
struct Books {
    deduplicates: bool,
    /// How many requests from now on get no answer.
    silent: usize,
    keys: Vec<String>,
    performed: u32,
    by_key: HashMap<String, u32>,
    kept: Vec<TcpStream>,
}

fn lock(books: &Mutex<Books>) -> MutexGuard<'_, Books> {
    books.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bank {
    /// A bank that performs its first `silent` requests and never answers them.
    pub(crate) fn open(deduplicates: bool, silent: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let books = Arc::new(Mutex::new(Books { deduplicates, silent, ..Books::default() }));
        let shared = Arc::clone(&books);
        // Ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serve(stream, &mut lock(&shared));
            }
        });
        Self { address, books }
    }

    pub(crate) fn address(&self) -> String {
        self.address.clone()
    }

    pub(crate) fn performed(&self) -> u32 {
        lock(&self.books).performed
    }

    /// The keys of all requests, in their order.
    pub(crate) fn keys(&self) -> Vec<String> {
        lock(&self.books).keys.clone()
    }
}

/// One line comes in: `? KEY` asks what is known of a key, any other is a request under it.
fn serve(stream: TcpStream, books: &mut Books) {
    let mut line = String::new();
    if BufReader::new(&stream).read_line(&mut line).is_err() {
        return;
    }
    if let Some(key) = line.trim().strip_prefix("? ") {
        let known = books.by_key.get(key).map_or_else(|| "none".to_owned(), u32::to_string);
        return answer(&stream, &known);
    }
    let key = line.trim().to_owned();
    books.keys.push(key.clone());
    let known = books.by_key.get(&key).copied().filter(|_| books.deduplicates);
    let number = known.unwrap_or_else(|| {
        books.performed += 1;
        books.performed
    });
    books.by_key.insert(key, number);
    if books.silent == 0 {
        answer(&stream, &number.to_string());
    } else {
        books.silent -= 1;
        books.kept.push(stream);
    }
}

fn answer(mut stream: &TcpStream, line: &str) {
    // Who asked may be gone by now.
    drop(writeln!(stream, "{line}"));
}

async fn ask(address: &str, line: &str) -> Result<String, ScriptedError> {
    let mut stream =
        tokio::net::TcpStream::connect(address).await.map_err(|_| ScriptedError::NoConnection)?;
    stream.write_all(format!("{line}\n").as_bytes()).await.map_err(|_| ScriptedError::Lost)?;
    let mut said = String::new();
    let read = tokio::io::BufReader::new(stream).read_line(&mut said).await;
    read.map_err(|_| ScriptedError::Lost)?;
    Ok(said.trim().to_owned())
}

async fn perform(cx: &EffectContext, bank: &str) -> Result<u32, ScriptedError> {
    let _permit = cx.send_permit()?;
    ask(bank, cx.idempotency_key()).await?.parse().map_err(|_| ScriptedError::Lost)
}

#[effect(keying = business_identity, provider = Windowed)]
pub(crate) async fn resend_at(
    cx: &EffectContext,
    #[key] order: String,
    #[skip] bank: String,
) -> effectual::Result<u32, ScriptedError> {
    let _ = order;
    Ok(perform(cx, &bank).await?)
}

#[effect(keying = business_identity)]
pub(crate) async fn hold_at(
    cx: &EffectContext,
    #[key] order: String,
    #[skip] bank: String,
) -> effectual::Result<u32, ScriptedError> {
    let _ = order;
    Ok(perform(cx, &bank).await?)
}

#[effect(keying = business_identity, on_unknown = rerun)]
pub(crate) async fn rerun_at(
    cx: &EffectContext,
    #[key] order: String,
    #[skip] bank: String,
) -> effectual::Result<u32, ScriptedError> {
    let _ = order;
    Ok(perform(cx, &bank).await?)
}

#[effect(keying = business_identity, on_unknown = reconcile(look_at))]
pub(crate) async fn reconcile_at(
    cx: &EffectContext,
    #[key] order: String,
    #[skip] bank: String,
) -> effectual::Result<u32, ScriptedError> {
    let _ = order;
    Ok(perform(cx, &bank).await?)
}

async fn look_at(
    cx: &EffectContext,
    _order: String,
    bank: String,
) -> Result<Found<u32, ScriptedError>, ScriptedError> {
    let said = ask(&bank, &format!("? {}", cx.idempotency_key())).await?;
    Ok(said.parse().map_or(Found::Absent, Found::Done))
}

/// Opens the ledger that a path or a URL names, as each process does for itself.
pub(crate) async fn open_ledger(place: &str) -> Arc<dyn Ledger> {
    if place.starts_with("postgres://") {
        Arc::new(PostgresLedger::connect(place).await.expect("a PostgreSQL ledger"))
    } else {
        Arc::new(SqliteLedger::open(place).await.expect("an SQLite ledger"))
    }
}

/// A lease that a test can wait for, around attempts that leave it the time to kill their process.
pub(crate) fn patient(ledger: &Arc<dyn Ledger>) -> ExecutorBuilder {
    use std::time::Duration;
    Executor::builder(ledger.clone())
        .attempt_timeout(Duration::from_secs(2))
        .margin(Duration::from_millis(100))
        .lease(Duration::from_millis(2_400))
        .retry(crate::effects::quick())
}
