//! One effect for each recovery class, and the bank as they see it.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use effectual::{
    EffectContext, Executor, Failure, Found, Ledger, Profile, Provider, RecoveryClass, SendRefused,
    TenantScope, effect,
    provider::{InFlightMeaning, KeyPlace},
    retry::RetryPolicy,
};
use serde::{Deserialize, Serialize};
use tokio::{
    net::{TcpStream, tcp::OwnedWriteHalf},
    sync::{Mutex as AsyncMutex, RwLock, oneshot},
};

use crate::wire::{Reader, say, split};

pub(crate) const LEASE: Duration = Duration::from_secs(3);
pub(crate) const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1);
const MARGIN: Duration = Duration::from_millis(300);

/// The class of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Resend,
    Reconcile,
    Hold,
    Rerun,
}

impl Class {
    pub(crate) fn of(order: u32) -> Self {
        match order % 4 {
            0 => Self::Resend,
            1 => Self::Reconcile,
            2 => Self::Hold,
            _ => Self::Rerun,
        }
    }
}

#[derive(Debug, thiserror::Error, Serialize, Deserialize, Failure)]
pub(crate) enum BankError {
    #[error("not sent: {0}")]
    #[failure(not_performed, retry)]
    NotSent(#[from] SendRefused),
    #[error("no connection")]
    #[failure(not_performed, retry)]
    NoConnection,
    #[error("busy")]
    #[failure(not_performed, retry)]
    Busy,
    #[error("the answer was lost")]
    Lost,
}

/// Deduplicates for an hour.
struct Windowed;

impl Provider for Windowed {
    const NAME: &'static str = "bank";

    fn profile() -> Profile {
        Profile::undocumented(Self::NAME, "2026-11-30")
            .with_key_place(KeyPlace::Header("key".to_owned()))
            .with_window(Duration::from_secs(3600))
            .with_in_flight(InFlightMeaning::Refuses, None)
            .with_on_unknown(RecoveryClass::Resend)
    }
}

/// The bank over one connection that many effects share; clones share everything.
#[derive(Clone)]
pub(crate) struct Teller {
    address: Arc<str>,
    line: Arc<AsyncMutex<Option<Line>>>,
    /// Held for reading from the permit until the bytes have left: who holds it for writing knows that no request is
    /// between the two. A process that is stopped there for longer than its lease is what no lease can see.
    pub(crate) sending: Arc<RwLock<()>>,
    next: Arc<AtomicU64>,
}

struct Line {
    writes: OwnedWriteHalf,
    asked: Asked,
}

impl Line {
    /// Whether somebody still listens for answers.
    fn is_heard(&self) -> bool {
        Arc::strong_count(&self.asked) > 1
    }
}

/// Who waits for which answer; all are dropped with the connection.
type Asked = Arc<Mutex<HashMap<u64, oneshot::Sender<Answer>>>>;

#[derive(Debug)]
enum Answer {
    Number(u32),
    Nothing,
    Busy,
}

fn lock(asked: &Asked) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Answer>>> {
    asked.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Teller {
    pub(crate) fn new(address: &str) -> Self {
        Self { address: address.into(), line: Arc::default(), sending: Arc::default(), next: Arc::default() }
    }

    /// Sends a line under a permit, where one is asked for, and waits for the answer.
    async fn ask(&self, cx: &EffectContext, what: char, order: u32) -> Result<Answer, BankError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let text = format!("{what} {number} {order} {}\n", cx.idempotency_key());
        let (sender, answer) = oneshot::channel();
        {
            let _sending = self.sending.read().await;
            let mut shared = self.line.lock().await;
            // Taken out while it is written to: a body that is aborted amid a line takes the connection with it.
            let mut line = match shared.take().filter(Line::is_heard) {
                Some(line) => line,
                None => connect(&self.address).await.map_err(|_| BankError::NoConnection)?,
            };
            let permit = if what == 'c' { cx.send_permit().map(drop) } else { Ok(()) };
            if permit.is_ok() {
                lock(&line.asked).insert(number, sender);
                say(&mut line.writes, &text).await.map_err(|_| BankError::Lost)?;
            }
            *shared = Some(line);
            permit?;
        }
        answer.await.map_err(|_| BankError::Lost)
    }

    async fn charge(&self, cx: &EffectContext, order: u32) -> Result<u32, BankError> {
        match self.ask(cx, 'c', order).await? {
            Answer::Number(number) => Ok(number),
            Answer::Busy => Err(BankError::Busy),
            Answer::Nothing => Err(BankError::Lost),
        }
    }
}

async fn connect(address: &str) -> std::io::Result<Line> {
    let (reads, writes) = split(TcpStream::connect(address).await?)?;
    let asked = Asked::default();
    tokio::spawn(hear(reads, Arc::clone(&asked)));
    Ok(Line { writes, asked })
}

/// Hands out answers until the connection ends; whoever still waits then has lost theirs.
async fn hear(mut reads: Reader, asked: Asked) {
    while let Ok(Some(line)) = reads.next_line().await {
        let mut words = line.split(' ');
        let (kind, number, value) = (words.next(), words.next(), words.next());
        let waiting =
            number.and_then(|number| number.parse().ok()).and_then(|number| lock(&asked).remove(&number));
        let answer = match (kind, value.and_then(|value| value.parse().ok())) {
            (Some("a"), Some(number)) => Answer::Number(number),
            (Some("b"), _) => Answer::Busy,
            _ => Answer::Nothing,
        };
        // The attempt may have ended.
        if let Some(waiting) = waiting {
            let _ = waiting.send(answer);
        }
    }
    lock(&asked).clear();
}

#[effect(keying = business_identity, provider = Windowed)]
async fn resend(
    cx: &EffectContext,
    #[key] order: u32,
    #[skip] teller: Teller,
) -> effectual::Result<u32, BankError> {
    Ok(teller.charge(cx, order).await?)
}

#[effect(keying = business_identity, on_unknown = hold)]
async fn hold(
    cx: &EffectContext,
    #[key] order: u32,
    #[skip] teller: Teller,
) -> effectual::Result<u32, BankError> {
    Ok(teller.charge(cx, order).await?)
}

#[effect(keying = business_identity, on_unknown = rerun)]
async fn rerun(
    cx: &EffectContext,
    #[key] order: u32,
    #[skip] teller: Teller,
) -> effectual::Result<u32, BankError> {
    Ok(teller.charge(cx, order).await?)
}

#[effect(keying = business_identity, on_unknown = reconcile(look_up))]
async fn reconcile(
    cx: &EffectContext,
    #[key] order: u32,
    #[skip] teller: Teller,
) -> effectual::Result<u32, BankError> {
    Ok(teller.charge(cx, order).await?)
}

async fn look_up(cx: &EffectContext, order: u32, teller: Teller) -> Result<Found<u32, BankError>, BankError> {
    match teller.ask(cx, 'q', order).await? {
        Answer::Number(number) => Ok(Found::Done(number)),
        Answer::Nothing => Ok(Found::Absent),
        Answer::Busy => Ok(Found::Unknown),
    }
}

pub(crate) async fn call(
    scope: &TenantScope,
    order: u32,
    teller: Teller,
) -> effectual::Result<u32, BankError> {
    match Class::of(order) {
        Class::Resend => resend(scope, order, teller).await,
        Class::Reconcile => reconcile(scope, order, teller).await,
        Class::Hold => hold(scope, order, teller).await,
        Class::Rerun => rerun(scope, order, teller).await,
    }
}

pub(crate) fn executor(ledger: Arc<dyn Ledger>) -> Result<Executor, effectual::ConfigError> {
    let retry = RetryPolicy::default().attempts_max(4).base(Duration::from_millis(5));
    Executor::builder(ledger)
        .lease(LEASE)
        .attempt_timeout(ATTEMPT_TIMEOUT)
        .margin(MARGIN)
        .wait(Duration::from_secs(5))
        .retry(retry.elapsed_max(Duration::from_secs(20)))
        .build()
}
