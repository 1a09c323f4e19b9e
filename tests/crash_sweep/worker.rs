//! What a worker process does: calls effects, one until it stands at a boundary, or several to their ends.

use std::{
    env,
    fmt::Write as _,
    io::{Read, Write as _},
    net::TcpStream,
    path::Path,
    sync::Arc,
    time::Duration,
};

use effectual::{
    EffectContext, EffectError, ErrorKind, Executor, Found, Ledger, PostgresLedger, Profile, Provider,
    Receipt, RecoveryClass, SqliteLedger, TenantScope, effect,
    ledger::EffectHistory,
    provider::{
        InFlightMeaning, KeyPlace,
        http::{HttpClient, HttpError},
    },
    retry::RetryPolicy,
};
use effectual_tests::process::{Process, tell, told};
use serde::Deserialize;
use tokio::task::JoinSet;

use crate::{
    boundary::{self, Boundary, Brake, Braked, Stop},
    model::{CLASSES, Class},
};

const LEDGER: &str = "EFFECTUAL_TEST_SWEEP_LEDGER";
const PROVIDER: &str = "EFFECTUAL_TEST_SWEEP_PROVIDER";
const ORDERS: &str = "EFFECTUAL_TEST_SWEEP_ORDERS";
const STOP: &str = "EFFECTUAL_TEST_SWEEP_STOP";
const LEASE_MS: &str = "EFFECTUAL_TEST_SWEEP_LEASE_MS";
const GATE: &str = "EFFECTUAL_TEST_SWEEP_GATE";

/// How far the ledger's clock is moved from one process to the next of an effect: past every lease, and past the time in
/// which a request of the dead one could still arrive.
const LATER_MS: i64 = 10 * 60 * 1000;

/// Longer than anything here takes; a worker that is stuck says so.
const LIMIT: Duration = Duration::from_secs(60);

/// What one worker is to do.
pub(crate) struct Job<'a> {
    pub(crate) ledger: &'a str,
    /// The path of the file, or the database's URL.
    pub(crate) place: &'a str,
    pub(crate) provider: String,
    /// How many processes of the same effect were before it.
    pub(crate) generation: u64,
    pub(crate) orders: Vec<(Class, String)>,
    pub(crate) stop: Option<Stop>,
    /// Where the worker waits at its stop, to go on from there.
    pub(crate) gate: Option<String>,
    /// A lease that ends, or is renewed, soon.
    pub(crate) lease_ms: Option<u64>,
}

impl Job<'_> {
    pub(crate) fn start(&self) -> Process {
        let orders: Vec<_> = self.orders.iter().map(|(class, order)| format!("{class:?} {order}")).collect();
        Process::start("worker::child_works", self.place, self.generation, |command| {
            command.env(LEDGER, self.ledger).env(PROVIDER, &self.provider).env(ORDERS, orders.join("\n"));
            if let Some((boundary, nth)) = self.stop {
                command.env(STOP, format!("{boundary:?} {nth}"));
            }
            if let Some(lease_ms) = self.lease_ms {
                command.env(LEASE_MS, lease_ms.to_string());
            }
            if let Some(gate) = &self.gate {
                command.env(GATE, gate);
            }
        })
    }
}

/// Performs a charge once a key, for a day.
pub(crate) struct Charges;

impl Provider for Charges {
    const NAME: &'static str = "charges";

    fn profile() -> Profile {
        Profile::undocumented(Self::NAME, "2026-11-30")
            .with_key_place(KeyPlace::Header("Idempotency-Key".to_owned()))
            .with_window(Duration::from_secs(24 * 3600))
            .with_in_flight(InFlightMeaning::Refuses, None)
            .with_on_unknown(RecoveryClass::Resend)
    }
}

/// What the bodies work with.
#[derive(Debug, Clone)]
pub(crate) struct World {
    http: HttpClient,
    /// The provider's host and port.
    authority: String,
    brake: Arc<Brake>,
}

#[derive(Deserialize)]
struct Charged {
    number: Option<u32>,
}

impl World {
    async fn charge(&self, cx: &EffectContext, path: &str, order: &str) -> Result<u32, HttpError> {
        if self.brake.at(Boundary::BeforeSend).await {
            self.send_at_once(cx, path, order);
        }
        let body = serde_json::json!({ "order": order });
        let charged: Charged = self.http.post(path).json(&body).send(cx).await?.json()?;
        Ok(charged.number.unwrap_or_default())
    }

    /// Asks for leave and sends without an await in between. The attempt of a worker that was stopped has timed out, and its
    /// body is aborted at the next await: nothing but the permit is in the way of this request.
    fn send_at_once(&self, cx: &EffectContext, path: &str, order: &str) {
        if let Err(refused) = cx.send_permit() {
            return tell(format_args!("not sent: {refused:?}"));
        }
        let body = serde_json::json!({ "order": order }).to_string();
        let (key, length) = (cx.idempotency_key(), body.len());
        let request = format!(
            "POST {path} HTTP/1.1\r\nIdempotency-Key: {key}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let mut stream = TcpStream::connect(&self.authority).expect("the provider");
        stream.write_all(request.as_bytes()).expect("a request");
        stream.read_exact(&mut [0; 12]).expect("an answer");
        tell("sent");
    }
}

#[effect(keying = business_identity, provider = Charges)]
async fn resend(
    cx: &EffectContext,
    #[key] order: String,
    #[skip] world: World,
) -> effectual::Result<u32, HttpError> {
    Ok(world.charge(cx, "/keyed/charges", &order).await?)
}

#[effect(keying = business_identity, provider = Charges, on_unknown = hold)]
async fn hold(
    cx: &EffectContext,
    #[key] order: String,
    #[skip] world: World,
) -> effectual::Result<u32, HttpError> {
    Ok(world.charge(cx, "/charges", &order).await?)
}

#[effect(keying = business_identity, provider = Charges, on_unknown = rerun)]
async fn rerun(
    cx: &EffectContext,
    #[key] order: String,
    #[skip] world: World,
) -> effectual::Result<u32, HttpError> {
    Ok(world.charge(cx, "/charges", &order).await?)
}

#[effect(keying = business_identity, provider = Charges, on_unknown = reconcile(find_charge))]
async fn reconcile(
    cx: &EffectContext,
    #[key] order: String,
    #[skip] world: World,
) -> effectual::Result<u32, HttpError> {
    Ok(world.charge(cx, "/charges", &order).await?)
}

async fn find_charge(
    _cx: &EffectContext,
    order: String,
    world: World,
) -> Result<Found<u32, HttpError>, HttpError> {
    let charged: Charged = world.http.get("/charges").query("order", order).send().await?.json()?;
    Ok(charged.number.map_or(Found::Absent, Found::Done))
}

async fn call(
    scope: &TenantScope,
    class: Class,
    order: String,
    world: World,
) -> effectual::Result<u32, HttpError> {
    match class {
        Class::Resend => resend(scope, order, world).await,
        Class::Reconcile => reconcile(scope, order, world).await,
        Class::Hold => hold(scope, order, world).await,
        Class::Rerun => rerun(scope, order, world).await,
    }
}

/// The ledger of this kind, so many milliseconds ahead.
pub(crate) async fn open(ledger: &str, place: &str, offset_ms: i64) -> Arc<dyn Ledger> {
    if ledger == "sqlite" {
        let builder = SqliteLedger::builder(Path::new(place)).clock_offset_ms(offset_ms);
        return Arc::new(builder.open().await.expect("an SQLite ledger"));
    }
    let builder = PostgresLedger::builder(place).clock_offset_ms(offset_ms).pooled(ledger == "pooled");
    Arc::new(builder.connect().await.expect("a PostgreSQL ledger"))
}

fn executor(ledger: Braked, lease_ms: Option<u64>) -> Executor {
    let retry = RetryPolicy::default().attempts_max(4).base(Duration::from_millis(1));
    let builder = Executor::builder(ledger).retry(retry);
    let builder = match lease_ms.map(Duration::from_millis) {
        // Renewed after a third of it, while the only attempt still waits for its answer.
        Some(lease) => builder.lease(lease).attempt_timeout(lease * 2 / 3).margin(lease / 24),
        None => builder,
    };
    builder.build().expect("a valid set-up")
}

/// What is known of the effect in the ledger: `completed 1:unknown 2:performed`.
fn described(history: &EffectHistory) -> String {
    let mut text = history.effect.state.as_str().to_owned();
    for (number, end) in history.attempts() {
        let _ = write!(text, " {number}:{}", end.map_or("open", |end| end.verdict.as_str()));
    }
    for late in &history.evidence {
        let _ = write!(text, " evidence:{}", late.verdict.as_str());
    }
    text
}

fn gives(end: &Result<u32, EffectError<HttpError>>) -> String {
    match end {
        Ok(number) => number.to_string(),
        Err(error) if error.kind() == ErrorKind::Escaped => "escaped".to_owned(),
        Err(error) => format!("{:?}: {error}", error.kind()).replace('\n', " "),
    }
}

/// Calls twice, and tells what it got and what is stored: the second call finds what the first left.
async fn finish(executor: Executor, class: Class, order: String, world: World) {
    let receipt = Receipt::new();
    let scope = executor.tenant("acme").expect("a tenant").with_receipt(&receipt);
    let first = gives(&call(&scope, class, order.clone(), world.clone()).await);
    let again = gives(&call(&scope, class, order.clone(), world).await);
    let id = receipt.effect_id().expect("an identity");
    let history = executor.inspect(&id).await.expect("a read").expect("it is recorded");
    tell(format_args!("{order}|{first}|{again}|{}", described(&history)));
}

fn said(name: &str) -> Option<String> {
    env::var(name).ok()
}

fn named<T: Copy + std::fmt::Debug>(all: &[T], name: &str) -> T {
    *all.iter().find(|one| format!("{one:?}") == name).expect("a name that the parent knows")
}

fn stop() -> Option<Stop> {
    let text = said(STOP)?;
    let (boundary, nth) = text.split_once(' ').expect("a boundary and a number");
    Some((named(&boundary::ALL, boundary), nth.parse().expect("a number")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the sweep in processes of their own"]
async fn child_works() {
    let (place, generation) = told();
    let place = place.into_os_string().into_string().expect("UTF-8");
    let offset_ms = LATER_MS * i64::try_from(generation).expect("few generations");
    let ledger = open(&said(LEDGER).expect("a ledger"), &place, offset_ms).await;
    let brake = Arc::new(Brake::new(stop(), said(GATE)));
    let provider = said(PROVIDER).expect("a provider");
    let authority = provider.trim_start_matches("http://").to_owned();
    let http = HttpClient::new(Charges::profile(), &provider);
    let http = http.and_then(HttpClient::without_proxy).expect("a client");
    let world = World { http, authority, brake: Arc::clone(&brake) };
    let lease_ms = said(LEASE_MS).map(|text| text.parse().expect("milliseconds"));
    let executor = executor(Braked { ledger: Arc::clone(&ledger), brake }, lease_ms);
    let mut calls = JoinSet::new();
    for line in said(ORDERS).expect("orders").lines() {
        let (class, order) = line.split_once(' ').expect("a class and an order");
        calls.spawn(finish(executor.clone(), named(&CLASSES, class), order.to_owned(), world.clone()));
    }
    tokio::time::timeout(LIMIT, calls.join_all()).await.expect("a worker that is not stuck");
    executor.drain(Duration::from_secs(5)).await;
    ledger.close().await;
}
