//! A ledger that does not answer, or whose answer is lost.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use effectual::{
    EffectId, ErrorKind, Ledger, LedgerError, LedgerErrorKind, MemoryLedger, ProviderCalled,
    ledger::{Change, Changed, Claim, ClaimRequest, EffectHistory, Owner, record::State},
};
use effectual_tests::{
    scripted::{Act, Scripted},
    wait::until,
};

use crate::effects::*;

/// What happens to a call of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// Nothing is stored.
    Before,
    /// It is stored, and the acknowledgement is lost.
    After,
}

/// A ledger in memory behind a line that fails by script: one list for claims, one for settles and ends.
#[derive(Debug, Default)]
struct Faulty {
    memory: MemoryLedger,
    claims: Mutex<VecDeque<Fault>>,
    changes: Mutex<VecDeque<Fault>>,
}

impl Faulty {
    fn ledger(claims: &[Fault], changes: &[Fault]) -> Arc<dyn Ledger> {
        Arc::new(Self {
            memory: MemoryLedger::new(),
            claims: Mutex::new(claims.iter().copied().collect()),
            changes: Mutex::new(changes.iter().copied().collect()),
        })
    }
}

fn next(script: &Mutex<VecDeque<Fault>>) -> Fault {
    script.lock().expect("not poisoned").pop_front().unwrap_or(Fault::None)
}

async fn through<T>(
    fault: Fault,
    call: impl Future<Output = Result<T, LedgerError>>,
) -> Result<T, LedgerError> {
    let lost = || LedgerError::new(LedgerErrorKind::Unavailable, "the line was cut");
    match fault {
        Fault::None => call.await,
        Fault::Before => Err(lost()),
        Fault::After => call.await.and(Err(lost())),
    }
}

#[async_trait]
impl Ledger for Faulty {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        through(next(&self.claims), self.memory.claim(request)).await
    }

    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        let fault = if matches!(change, Change::Renew { .. }) { Fault::None } else { next(&self.changes) };
        through(fault, self.memory.change(owner, change)).await
    }

    async fn read(&self, id: &EffectId) -> Result<Option<EffectHistory>, LedgerError> {
        self.memory.read(id).await
    }

    async fn unsettled(
        &self,
        query: &effectual::ledger::UnsettledQuery,
    ) -> Result<effectual::ledger::UnsettledPage, LedgerError> {
        self.memory.unsettled(query).await
    }

    async fn input(&self, id: &EffectId) -> Result<Option<effectual::ledger::Payload>, LedgerError> {
        self.memory.input(id).await
    }

    fn name(&self) -> &'static str {
        "faulty"
    }

    async fn close(&self) {
        self.memory.close().await;
    }
}

/// A ledger in memory that takes no change before it is told that it is back.
#[derive(Debug)]
struct Down {
    memory: MemoryLedger,
    back: std::sync::atomic::AtomicBool,
}

#[async_trait]
impl Ledger for Down {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        self.memory.claim(request).await
    }

    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        let fault =
            if self.back.load(std::sync::atomic::Ordering::SeqCst) { Fault::None } else { Fault::Before };
        through(fault, self.memory.change(owner, change)).await
    }

    async fn read(&self, id: &EffectId) -> Result<Option<EffectHistory>, LedgerError> {
        self.memory.read(id).await
    }

    async fn unsettled(
        &self,
        query: &effectual::ledger::UnsettledQuery,
    ) -> Result<effectual::ledger::UnsettledPage, LedgerError> {
        self.memory.unsettled(query).await
    }

    async fn input(&self, id: &EffectId) -> Result<Option<effectual::ledger::Payload>, LedgerError> {
        self.memory.input(id).await
    }

    fn name(&self) -> &'static str {
        "down"
    }

    async fn close(&self) {
        self.memory.close().await;
    }
}

#[tokio::test]
async fn f35_a_ledger_that_is_down_before_the_claim_starts_nothing() {
    let ledger = Faulty::ledger(&[Fault::Before], &[]);
    let provider = Scripted::forgetful([]);
    let executor = executor(&ledger);
    let (_, scope) = receipted(&executor);
    let error = holding(&scope, "o-1".into(), 5, provider.clone()).await.expect_err("not started");
    assert_eq!((error.kind(), error.provider_called()), (ErrorKind::Ledger, ProviderCalled::No));
    assert_eq!(provider.keys().len(), 0);
    holding(&scope, "o-1".into(), 5, provider.clone()).await.expect("once it is back");
    assert_eq!(provider.performed(), 1);
}

#[tokio::test]
async fn f04_a_claim_whose_acknowledgement_is_lost_is_given_back() {
    let ledger = Faulty::ledger(&[Fault::After], &[]);
    let provider = Scripted::forgetful([]);
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    let error = holding(&scope, "o-2".into(), 5, provider.clone()).await.expect_err("not started");
    assert_eq!(error.kind(), ErrorKind::Ledger);
    until("the claim to be given back", Duration::from_secs(10), async || {
        state(&executor, &receipt).await == State::Released
    })
    .await;
    holding(&scope, "o-2".into(), 5, provider.clone()).await.expect("performed");
    assert_eq!(provider.performed(), 1);
}

#[tokio::test]
async fn f04_a_settle_is_tried_until_it_is_stored_and_recognised() {
    for faults in [[Fault::Before, Fault::Before], [Fault::After, Fault::None], [Fault::Before, Fault::After]]
    {
        let ledger = Faulty::ledger(&[], &faults);
        let provider = Scripted::forgetful([]);
        let executor = executor(&ledger);
        let (receipt, scope) = receipted(&executor);
        let done = holding(&scope, "o-3".into(), 5, provider.clone()).await.expect("performed and stored");
        assert_eq!((done.number, provider.performed()), (1, 1), "{faults:?}");
        let known = history(&executor, &receipt).await;
        assert_eq!((known.effect.state, known.evidence.len()), (State::Completed, 0), "{faults:?}");
    }
}

#[tokio::test]
async fn each_write_of_a_retried_call_may_lose_its_acknowledgement() {
    // Close, open, close, open, settle: each stored, each acknowledged only the second time.
    let faults = [Fault::After, Fault::None].repeat(5);
    let ledger = Faulty::ledger(&[], &faults);
    let provider = Scripted::deduplicating([Act::PerformAndLose, Act::NoConnection]);
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    let done = resending(&scope, "o-4".into(), 5, provider.clone()).await.expect("performed");
    assert_eq!((done.number, provider.performed(), provider.keys().len()), (1, 1, 3));
    let known = history(&executor, &receipt).await;
    assert_eq!((known.effect.attempt, known.closed.len()), (3, 2));
}

#[tokio::test]
async fn f35_a_ledger_that_comes_back_after_the_drain_gets_the_outcome() {
    let provider = Scripted::forgetful([]);
    let ledger = Arc::new(Down { memory: MemoryLedger::new(), back: false.into() });
    let shared: Arc<dyn Ledger> = Arc::clone(&ledger) as _;
    let executor = executor(&shared);
    let (receipt, scope) = receipted(&executor);
    let call = tokio::spawn(holding(&scope, "o-6".into(), 5, provider.clone()));
    provider.next_arrival().await;
    executor.drain(Duration::from_millis(50)).await;
    let error = call.await.expect("no panic").expect_err("not stored yet");
    assert_eq!(error.kind(), ErrorKind::Escaped);
    ledger.back.store(true, std::sync::atomic::Ordering::SeqCst);
    until("the outcome to be stored", Duration::from_secs(20), async || {
        state(&executor, &receipt).await == State::Completed
    })
    .await;
    assert_eq!(provider.performed(), 1);
}

#[tokio::test]
async fn f35_a_ledger_that_stays_down_after_the_effect_leaves_it_escaped_at_the_drain() {
    let ledger = Faulty::ledger(&[], &[Fault::Before; 10_000]);
    let provider = Scripted::forgetful([]);
    let executor = executor(&ledger);
    let (_, scope) = receipted(&executor);
    let call = tokio::spawn(holding(&scope, "o-5".into(), 5, provider.clone()));
    provider.next_arrival().await;
    executor.drain(Duration::from_millis(100)).await;
    let error = call.await.expect("no panic").expect_err("not stored");
    assert_eq!((error.kind(), error.provider_called()), (ErrorKind::Escaped, ProviderCalled::Maybe));
    assert_eq!(provider.performed(), 1);
}

/// A ledger that stores claims and does not say so, and is not to be read before it is told that it is back.
#[derive(Debug)]
struct Deaf {
    memory: Arc<MemoryLedger>,
    back: tokio::sync::Semaphore,
}

#[async_trait]
impl Ledger for Deaf {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        through(Fault::After, self.memory.claim(request)).await
    }

    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        self.memory.change(owner, change).await
    }

    async fn read(&self, id: &EffectId) -> Result<Option<EffectHistory>, LedgerError> {
        drop(self.back.acquire().await);
        self.memory.read(id).await
    }

    fn name(&self) -> &'static str {
        "deaf"
    }

    async fn close(&self) {
        self.memory.close().await;
    }
}

/// A claim whose process was not told of it ends, and another process can only say that nobody knows. When the first is back it
/// says that it never began: the next call performs.
#[tokio::test]
async fn an_effect_that_escaped_before_its_claim_was_given_back_is_performed_by_the_next_call() {
    let memory = Arc::new(MemoryLedger::new());
    let deaf = Arc::new(Deaf { memory: Arc::clone(&memory), back: tokio::sync::Semaphore::new(0) });
    let provider = Scripted::forgetful([]);
    let of_deaf = builder(&(Arc::clone(&deaf) as Arc<dyn Ledger>))
        .attempt_timeout(Duration::from_millis(10))
        .margin(Duration::ZERO)
        .lease(Duration::from_millis(40))
        .build()
        .expect("a valid set-up");
    let call = holding(&receipted(&of_deaf).1, "o-7".into(), 5, provider.clone());
    assert_eq!(call.await.expect_err("not started").kind(), ErrorKind::Ledger);

    let other = executor(&(Arc::clone(&memory) as Arc<dyn Ledger>));
    let (receipt, scope) = receipted(&other);
    let error = holding(&scope, "o-7".into(), 5, provider.clone()).await.expect_err("nobody knows");
    assert_eq!((error.kind(), state(&other, &receipt).await), (ErrorKind::Escaped, State::Escaped));

    deaf.back.add_permits(1);
    until("the claim to be given back", Duration::from_secs(20), async || {
        state(&other, &receipt).await == State::Released
    })
    .await;
    assert_eq!(provider.keys().len(), 0);
    let done = holding(&scope, "o-7".into(), 5, provider.clone()).await.expect("performed at last");
    assert_eq!((done.number, provider.performed()), (1, 1));
}
