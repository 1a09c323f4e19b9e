//! Bodies that run in the caller's task, and callers that go away.

use std::{
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use effectual::{
    EffectContext, EffectId, ErrorKind, Found, Ledger, LedgerError, effect,
    ledger::{Change, Changed, Claim, ClaimRequest, EffectHistory, Owner, record::State},
};
use effectual_tests::{
    on_each_ledger,
    scripted::{Act, Done, PANIC_CANARY, Scripted, ScriptedError},
    wait::until,
};

use crate::effects::*;

on_each_ledger![
    retries_borrow_again,
    a_caller_that_goes_before_its_body_is_polled_leaves_it_released,
    a_caller_that_goes_after_its_body_was_polled_leaves_it_escaped,
    a_caller_that_goes_while_it_claims_leaves_no_claim_behind,
    a_caller_that_goes_between_two_attempts_gives_the_claim_back,
    a_panic_ends_the_attempt_and_not_the_caller,
    an_attempt_that_takes_too_long_is_dropped,
    a_drain_drops_the_body_at_its_deadline,
    a_look_up_runs_in_the_callers_task,
    a_loser_replays_what_the_winner_stored,
];

/// Far longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(20);

/// Says when it is dropped.
#[derive(Clone)]
struct Dropped(Arc<std::sync::atomic::AtomicU32>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

#[effect(keying = business_identity, attached)]
async fn lent(
    cx: &EffectContext,
    #[key] order: &str,
    #[skip] attempts: &mut Vec<u32>,
    #[skip] provider: &Scripted,
) -> effectual::Result<Done, ScriptedError> {
    attempts.push(cx.attempt());
    Ok(provider.send(cx, order).await?)
}

#[effect(keying = business_identity, attached, on_unknown = reconcile(lent_found))]
async fn lent_and_asked(
    cx: &EffectContext,
    #[key] order: &str,
    #[skip] provider: &Scripted,
    #[skip] _dropped: Dropped,
) -> effectual::Result<Done, ScriptedError> {
    Ok(provider.send(cx, order).await?)
}

async fn lent_found(
    cx: &EffectContext,
    _order: &str,
    provider: &Scripted,
    _dropped: Dropped,
) -> Result<Found<Done, ScriptedError>, ScriptedError> {
    Ok(provider.find(cx.idempotency_key()).map_or(Found::Absent, Found::Done))
}

fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

async fn retries_borrow_again(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([Act::NoConnection, Act::NoConnection]);
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    let (order, mut attempts) = (String::from("a-1"), Vec::new());
    let first = lent(&scope, &order, &mut attempts, &provider).await.expect("performed");
    let again = lent(&scope, &order, &mut attempts, &provider).await.expect("replayed");
    assert_eq!((first, attempts, provider.performed()), (again, vec![1, 2, 3], 1));
    assert!(receipt.replayed());
}

/// The identity of a call that did not end, by one that replays or is refused.
async fn state_after(executor: &effectual::Executor, order: &str) -> Option<State> {
    let id = lent_id(order);
    executor.inspect(&id).await.expect("the ledger answers").map(|history| history.effect.state)
}

fn lent_id(order: &str) -> EffectId {
    let tenant = effectual::Tenant::parse("acme").expect("a tenant");
    let key = effectual::identity::KeyFields::new().field("order", order);
    effectual::identity::business_identity(&tenant, "lent", 1, &key)
}

/// A ledger that holds claims back until it is opened: so the caller's first poll finds nothing to run.
#[derive(Debug)]
struct LateClaims {
    ledger: Arc<dyn Ledger>,
    open: tokio::sync::Semaphore,
}

#[async_trait::async_trait]
impl Ledger for LateClaims {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        let _open = self.open.acquire().await;
        self.ledger.claim(request).await
    }

    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        self.ledger.change(owner, change).await
    }

    async fn read(&self, id: &EffectId) -> Result<Option<EffectHistory>, LedgerError> {
        self.ledger.read(id).await
    }

    async fn unsettled(
        &self,
        query: &effectual::ledger::UnsettledQuery,
    ) -> Result<effectual::ledger::UnsettledPage, LedgerError> {
        self.ledger.unsettled(query).await
    }

    async fn input(&self, id: &EffectId) -> Result<Option<effectual::ledger::Payload>, LedgerError> {
        self.ledger.input(id).await
    }

    fn name(&self) -> &'static str {
        "late claims"
    }

    async fn close(&self) {
        self.ledger.close().await;
    }
}

async fn a_caller_that_goes_before_its_body_is_polled_leaves_it_released(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let late = Arc::new(LateClaims { ledger, open: tokio::sync::Semaphore::new(0) });
    let ledger: Arc<dyn Ledger> = late.clone();
    let executor = executor(&ledger);
    let (_, scope) = receipted(&executor);
    let mut attempts = Vec::new();
    {
        let mut call = pin!(lent(&scope, "a-2", &mut attempts, &provider));
        assert!(poll_once(call.as_mut()).is_pending());
        late.open.add_permits(1);
        let claimed = async || state_after(&executor, "a-2").await == Some(State::Claimed);
        until("the claim is held", LIMIT, claimed).await;
    }
    let released = async || state_after(&executor, "a-2").await == Some(State::Released);
    until("it is released", LIMIT, released).await;
    assert_eq!((attempts.as_slice(), provider.keys().len()), (&[][..], 0));
    lent(&scope, "a-2", &mut attempts, &provider).await.expect("the next call performs");
}

async fn a_caller_that_goes_after_its_body_was_polled_leaves_it_escaped(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([Act::PerformAndHang]);
    let executor = builder(&ledger).attempt_timeout(Duration::from_secs(60)).lease(Duration::from_secs(90));
    let executor = executor.build().expect("a valid set-up");
    let (_, scope) = receipted(&executor);
    let mut attempts = Vec::new();
    let arrival = provider.next_arrival();
    tokio::select! {
        _ = lent(&scope, "a-3", &mut attempts, &provider) => panic!("the provider never answers"),
        () = arrival => {}
    }
    until("it is escaped", LIMIT, async || state_after(&executor, "a-3").await == Some(State::Escaped)).await;
    let error = lent(&scope, "a-3", &mut attempts, &provider).await.expect_err("it is in doubt");
    assert_eq!((error.kind(), provider.performed(), attempts.len()), (ErrorKind::Escaped, 1, 1));
}

async fn a_caller_that_goes_while_it_claims_leaves_no_claim_behind(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let executor = executor(&ledger);
    let (_, scope) = receipted(&executor);
    for number in 0..50 {
        let (order, mut attempts) = (format!("a-4-{number}"), Vec::new());
        {
            let mut call = pin!(lent(&scope, &order, &mut attempts, &provider));
            // The call's task may have begun, and may even be at its end.
            let _ = poll_once(call.as_mut());
        }
        let done = lent(&scope, &order, &mut attempts, &provider);
        match tokio::time::timeout(Duration::from_secs(1), done).await.expect("nobody holds a claim") {
            Ok(_) => {}
            // It waited for the call that went away.
            Err(error) => assert_eq!(error.kind(), ErrorKind::RetryLater),
        }
    }
}

async fn a_caller_that_goes_between_two_attempts_gives_the_claim_back(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([Act::NoConnection]);
    let hour = Duration::from_secs(3600);
    let slow = quick().base(hour).delay_max(hour).elapsed_max(hour * 10);
    let executor = builder(&ledger).retry(slow).build().expect("a valid set-up");
    let (_, scope) = receipted(&executor);
    let mut attempts = Vec::new();
    {
        let mut call = pin!(lent(&scope, "a-5", &mut attempts, &provider));
        let closed = async || {
            let known = executor.inspect(&lent_id("a-5")).await.expect("the ledger answers");
            known.is_some_and(|history| history.effect.end.is_some())
        };
        tokio::select! {
            _ = &mut call => panic!("the backoff is long"),
            () = until("the attempt is closed", LIMIT, closed) => {}
        }
    }
    until("it is released", LIMIT, async || state_after(&executor, "a-5").await == Some(State::Released))
        .await;
    assert_eq!((attempts.len(), provider.performed()), (1, 0));
}

async fn a_panic_ends_the_attempt_and_not_the_caller(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([Act::PerformAndPanic]);
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    let mut attempts = Vec::new();
    let error = lent(&scope, "a-6", &mut attempts, &provider).await.expect_err("unknown");
    assert_eq!((error.kind(), state(&executor, &receipt).await), (ErrorKind::Escaped, State::Escaped));
    assert!(!format!("{error} {error:?}").contains(PANIC_CANARY));
}

async fn an_attempt_that_takes_too_long_is_dropped(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([Act::PerformAndHang]);
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    let dropped = Dropped(Arc::default());
    let count = dropped.0.clone();
    let found = lent_and_asked(&scope, "a-7", &provider, dropped).await;
    // The attempt's clone, the look-up's, and the call's own.
    assert_eq!(count.load(std::sync::atomic::Ordering::SeqCst), 3);
    found.expect("the look-up finds what the dropped body did");
    assert_eq!((provider.performed(), state(&executor, &receipt).await), (1, State::Completed));
}

async fn a_drain_drops_the_body_at_its_deadline(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([Act::PerformAndHang]);
    let executor = builder(&ledger).attempt_timeout(Duration::from_secs(60)).lease(Duration::from_secs(90));
    let executor = executor.build().expect("a valid set-up");
    let (receipt, scope) = receipted(&executor);
    let mut attempts = Vec::new();
    let arrival = provider.next_arrival();
    let drain = async {
        arrival.await;
        executor.drain(Duration::from_millis(50)).await
    };
    let (error, drained) = tokio::join!(lent(&scope, "a-8", &mut attempts, &provider), drain);
    assert_eq!(error.expect_err("its body was dropped").kind(), ErrorKind::Escaped);
    assert_eq!((drained.unfinished, drained.unwritten), (1, 0));
    assert_eq!(state(&executor, &receipt).await, State::Escaped);
}

async fn a_look_up_runs_in_the_callers_task(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::deduplicating([Act::PerformAndLose]);
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    let done = lent_and_asked(&scope, "a-9", &provider, Dropped(Arc::default())).await;
    assert_eq!(done.expect("the look-up finds it").number, 1);
    assert_eq!((provider.performed(), state(&executor, &receipt).await), (1, State::Completed));
}

async fn a_loser_replays_what_the_winner_stored(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let executor = executor(&ledger);
    let (_, scope) = receipted(&executor);
    let (mut one, mut other) = (Vec::new(), Vec::new());
    let (first, second) =
        tokio::join!(lent(&scope, "a-10", &mut one, &provider), lent(&scope, "a-10", &mut other, &provider));
    assert_eq!(first.expect("performed"), second.expect("replayed"));
    assert_eq!((provider.performed(), one.len() + other.len()), (1, 1));
}
