//! One process is killed, and another carries on: a timeline.
//!
//! Shows: this program plays a bank, and starts itself again as a worker that refunds an order there. The bank performs the
//! refund; before it answers, the worker is killed as by `kill -9`. A second worker finds the first one's claim in the
//! ledger, waits until its lease has ended, and asks the bank again under the stored key, which the bank recognises (class
//! `resend`). A third gets the stored outcome, and asks nobody.
//!
//! Run: `cargo run --example kill_me`
//!
//! You will see: milliseconds, who did what, and how often the bank has performed the refund by then: it is 1 from the first
//! request on, and the last line says `performed at the provider: 1`.

use std::{
    error::Error,
    io::{BufRead, BufReader, Lines, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use effectual::{
    EffectContext, Executor, Failure, Profile, Provider, Receipt, RecoveryClass, SendRefused, SqliteLedger,
    effect,
    provider::{InFlightMeaning, KeyPlace},
};
use serde::{Deserialize, Serialize};

#[effect(keying = business_identity, provider = Bank)]
async fn refund_order(
    cx: &EffectContext,
    #[key] order_id: String,
    #[skip] bank: String,
) -> effectual::Result<String, BankError> {
    let key = cx.idempotency_key();
    println!("attempt {}: asks the bank to refund {order_id} under the key {key}", cx.attempt());
    let _permit = cx.send_permit().map_err(BankError::from)?;
    Ok(ask(&bank, key).map_err(|_| BankError::Lost)?)
}

/// What each worker does.
#[tokio::main]
async fn work(bank: &str, ledger: &str) -> Result<(), Box<dyn Error>> {
    // Far shorter than in production, so that the second worker need not wait a minute for the dead one's lease.
    let executor = Executor::builder(SqliteLedger::open(ledger).await?)
        .attempt_timeout(Duration::from_secs(1))
        .margin(Duration::from_millis(200))
        .lease(Duration::from_secs(2))
        .build()?;
    let receipt = Receipt::new();
    let scope = executor.tenant("acme")?.with_receipt(&receipt);
    println!("calls refund_order");
    let refund = refund_order(&scope, "order-1042".to_owned(), bank.to_owned()).await?;

    let effect_id = receipt.effect_id().ok_or("a call that has ended has an identity")?;
    let history = executor.inspect(&effect_id).await?.ok_or("an effect that has ended is in the ledger")?;
    let how = if receipt.replayed() { "replayed" } else { "performed by this call" };
    let attempts = history.attempts().map(|(attempt, end)| {
        format!("; attempt {attempt}: {}", end.map_or("open", |end| end.verdict.as_str()))
    });
    println!("gets {refund}, {how}{}", attempts.collect::<String>());
    executor.drain(Duration::from_secs(5)).await;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [role, bank, ledger] if role == "worker" => work(bank, ledger),
        _ => watch(),
    }
}

/// The bank, and what becomes of the workers.
fn watch() -> Result<(), Box<dyn Error>> {
    let folder = effectual_examples::folder("kill_me")?;
    std::fs::remove_dir_all(&folder)?;
    std::fs::create_dir(&folder)?;
    let ledger = folder.join("ledger.db");
    let mut counter = Counter::open()?;
    let timeline = Timeline(Instant::now());

    let mut first = Worker::start(&counter, &ledger)?;
    for _ in 0..2 {
        timeline.note("worker 1", &first.says()?, &counter);
    }
    let unanswered = counter.serve()?;
    timeline.note("the bank", "performs the refund, and has not answered yet", &counter);
    first.process.kill()?;
    timeline.note("kill -9", "worker 1 is gone, and will never know", &counter);
    drop(unanswered);

    let mut second = Worker::start(&counter, &ledger)?;
    for _ in 0..2 {
        timeline.note("worker 2", &second.says()?, &counter);
    }
    let asked = counter.serve()?;
    timeline.note("the bank", "knows the key, and answers what it did then", &counter);
    counter.answer(asked)?;
    timeline.note("worker 2", &second.says()?, &counter);

    let mut third = Worker::start(&counter, &ledger)?;
    for _ in 0..2 {
        timeline.note("worker 3", &third.says()?, &counter);
    }
    println!("performed at the provider: {}", counter.keys.len());
    Ok(())
}

/// When it was, who did what, and how often the bank had performed it by then.
struct Timeline(Instant);

impl Timeline {
    fn note(&self, who: &str, what: &str, counter: &Counter) {
        let at = self.0.elapsed().as_millis();
        println!("{at:05}ms  performed: {}  {who}  {what}", counter.keys.len());
    }
}

/// This program in another process.
struct Worker {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    fn start(counter: &Counter, ledger: &Path) -> Result<Self, Box<dyn Error>> {
        let bank = counter.listener.local_addr()?.to_string();
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["worker", &bank]).arg(ledger).stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let output = process.stdout.take().ok_or("its output is piped")?;
        Ok(Self { process, lines: BufReader::new(output).lines() })
    }

    fn says(&mut self) -> Result<String, Box<dyn Error>> {
        Ok(self.lines.next().ok_or("the worker ended too early")??)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.process.wait());
    }
}

/// The bank's counter: performs one refund a key.
struct Counter {
    listener: TcpListener,
    keys: Vec<String>,
}

impl Counter {
    fn open() -> std::io::Result<Self> {
        Ok(Self { listener: TcpListener::bind("127.0.0.1:0")?, keys: Vec::new() })
    }

    /// Takes the next request and does what it asks for, if that was not done under its key before. It is not answered yet.
    fn serve(&mut self) -> std::io::Result<(TcpStream, String)> {
        let (stream, _) = self.listener.accept()?;
        let mut key = String::new();
        BufReader::new(&stream).read_line(&mut key)?;
        if !self.keys.contains(&key) {
            self.keys.push(key.clone());
        }
        Ok((stream, key))
    }

    fn answer(&self, (mut stream, key): (TcpStream, String)) -> std::io::Result<()> {
        let number = self.keys.iter().position(|known| *known == key).map_or(0, |at| at + 1);
        writeln!(stream, "refund-{number}")
    }
}

/// Asks the bank under a key.
fn ask(bank: &str, key: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(bank)?;
    writeln!(stream, "{key}")?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(answer.trim().to_owned())
}

/// What can go wrong, and what each means for the effect.
#[derive(Debug, thiserror::Error, Serialize, Deserialize, Failure)]
enum BankError {
    /// Nothing was asked of the bank.
    #[error("nothing was sent: {0}")]
    #[failure(not_performed, retry)]
    NotSent(#[from] SendRefused),
    /// Says nothing about what it means, so it means that nobody knows.
    #[error("the bank did not answer")]
    Lost,
}

/// A bank that performs one refund a key, and remembers keys for a day.
struct Bank;

impl Provider for Bank {
    const NAME: &'static str = "bank";

    fn profile() -> Profile {
        Profile::undocumented(Self::NAME, "2026-11-30")
            .with_key_place(KeyPlace::Header("Idempotency-Key".to_owned()))
            .with_window(Duration::from_secs(24 * 60 * 60))
            .with_in_flight(InFlightMeaning::Refuses, None)
            .with_on_unknown(RecoveryClass::Resend)
    }
}
