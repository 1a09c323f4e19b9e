//! Callers that go away at every await of a call, under every class; then a new call. Never performed twice where the class
//! forbids it, and never a claim without an owner.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use effectual::{
    EffectContext, EffectError, EffectId, ErrorKind, Executor, Found, Ledger, LedgerError, Receipt, effect,
    ledger::{Change, Changed, Claim, ClaimRequest, EffectHistory, Owner, record::State},
};
use effectual_tests::{
    on_each_ledger,
    scripted::{Act, Done, Scripted, ScriptedError},
};
use tokio::{sync::Notify, task::JoinSet};

use crate::effects::*;

const LIMIT: Duration = Duration::from_secs(60);

on_each_ledger![
    f05_a_caller_that_goes_away_at_any_write_leaves_no_claim_and_performs_nothing_twice,
    f05_a_caller_that_goes_away_at_any_poll_leaves_no_claim_and_performs_nothing_twice,
    f05_an_attached_caller_that_goes_away_at_any_poll_leaves_no_claim_and_performs_nothing_twice,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Resend,
    Reconcile,
    Hold,
    Rerun,
}

const CLASSES: [Class; 4] = [Class::Resend, Class::Reconcile, Class::Hold, Class::Rerun];

/// What the provider does with the first request: the ways that a call can take.
const FIRST: [Act; 3] = [Act::Perform, Act::NoConnection, Act::PerformAndLose];

#[effect(keying = business_identity, provider = Windowed, attached)]
async fn resend(
    cx: &EffectContext,
    #[key] order: &str,
    #[skip] provider: &Scripted,
) -> effectual::Result<Done, ScriptedError> {
    Ok(slowly(cx, order, provider).await?)
}

#[effect(keying = business_identity, attached)]
async fn hold(
    cx: &EffectContext,
    #[key] order: &str,
    #[skip] provider: &Scripted,
) -> effectual::Result<Done, ScriptedError> {
    Ok(slowly(cx, order, provider).await?)
}

#[effect(keying = business_identity, on_unknown = rerun, attached)]
async fn rerun(
    cx: &EffectContext,
    #[key] order: &str,
    #[skip] provider: &Scripted,
) -> effectual::Result<Done, ScriptedError> {
    Ok(slowly(cx, order, provider).await?)
}

#[effect(keying = business_identity, on_unknown = reconcile(find), attached)]
async fn reconcile(
    cx: &EffectContext,
    #[key] order: &str,
    #[skip] provider: Scripted,
) -> effectual::Result<Done, ScriptedError> {
    Ok(slowly(cx, order, &provider).await?)
}

async fn find(
    cx: &EffectContext,
    _order: &str,
    provider: Scripted,
) -> Result<Found<Done, ScriptedError>, ScriptedError> {
    tokio::task::yield_now().await;
    Ok(provider.find(cx.idempotency_key()).map_or(Found::Absent, Found::Done))
}

/// Has awaits of its own before and after the request.
async fn slowly(cx: &EffectContext, order: &str, provider: &Scripted) -> Result<Done, ScriptedError> {
    tokio::task::yield_now().await;
    let done = provider.send(cx, order).await?;
    tokio::task::yield_now().await;
    Ok(done)
}

/// One effect that is called twice, the first time by a caller that goes away.
#[derive(Clone)]
struct Effect {
    executor: Executor,
    class: Class,
    is_attached: bool,
    order: String,
    provider: Scripted,
}

impl Effect {
    fn new(executor: &Executor, class: Class, first: &Act, at: usize, is_attached: bool) -> Self {
        let script = [first.clone()];
        let provider = if class == Class::Resend {
            Scripted::deduplicating(script)
        } else {
            Scripted::forgetful(script)
        };
        let order = format!("{class:?} {first:?} {at} {is_attached}");
        Self { executor: executor.clone(), class, is_attached, order, provider }
    }

    async fn call(&self) -> (Result<Done, EffectError<ScriptedError>>, Receipt) {
        let (receipt, scope) = receipted(&self.executor);
        let (order, provider) = (self.order.clone(), self.provider.clone());
        let end = match (self.class, self.is_attached) {
            (Class::Resend, true) => resend(&scope, &order, &provider).await,
            (Class::Reconcile, true) => reconcile(&scope, &order, provider).await,
            (Class::Hold, true) => hold(&scope, &order, &provider).await,
            (Class::Rerun, true) => rerun(&scope, &order, &provider).await,
            (Class::Resend, false) => resending(&scope, order, 5, provider).await,
            (Class::Reconcile, false) => reconciling(&scope, order, 5, provider).await,
            (Class::Hold, false) => holding(&scope, order, 5, provider).await,
            (Class::Rerun, false) => rerunning(&scope, order, 5, provider).await,
        };
        (end, receipt)
    }

    /// Calls until it is told more than that a claim was just given back, or is somebody's.
    async fn answered(&self) -> (Result<Done, EffectError<ScriptedError>>, Receipt) {
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        loop {
            ticks.tick().await;
            match self.call().await {
                (Err(error), _) if matches!(error.kind(), ErrorKind::RetryLater | ErrorKind::InFlight) => {}
                ended => return ended,
            }
        }
    }

    /// The new call, once the lease of the first is over where it has to be; and what must hold then.
    async fn check_new_call(&self) {
        let order = &self.order;
        let (end, receipt) = tokio::time::timeout(LIMIT, self.answered())
            .await
            .unwrap_or_else(|_| panic!("{order}: a claim without an owner"));
        let performed = self.provider.performed();
        // The first request's answer is lost, the second's caller goes away, and the new call sends the third.
        let performed_max = if self.class == Class::Rerun { 3 } else { 1 };
        assert!(performed <= performed_max, "{order}: performed {performed}");
        let expected = match end {
            Ok(done) => {
                assert_eq!((done.number, performed > 0), (performed, true), "{order}");
                (State::Completed, Ok(performed))
            }
            Err(error) => {
                // A body that was dropped before it took its key is held, also where that key would be sent again.
                let last = record(&self.executor, &receipt).await.end;
                let is_held = self.class == Class::Hold
                    || self.class == Class::Resend && last.is_some_and(|end| !end.key_taken);
                assert_eq!((error.kind(), is_held), (ErrorKind::Escaped, true), "{order}: {error}");
                (State::Escaped, Err(ErrorKind::Escaped))
            }
        };
        let (again, _) = self.call().await;
        let again = again.map(|done| done.number).map_err(|error| error.kind());
        assert_eq!((state(&self.executor, &receipt).await, again), expected, "{order}: the third call");
        assert_eq!(self.provider.performed(), performed, "{order}: the third call");
    }
}

/// Polls a future whenever it asks for it, and drops it when it has not ended after so many times. Whether it has ended, and
/// how often it was polled.
async fn dropped_after<T>(polls: usize, future: impl Future<Output = T>) -> (Option<T>, usize) {
    let mut future = pin!(future);
    let mut polled = 0;
    let end = poll_fn(|cx| {
        if polled == polls {
            return Poll::Ready(None);
        }
        polled += 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending if polled == polls => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await;
    (end, polled)
}

/// Every way of a call, dropped after no poll, one, two, … until it ends before it is dropped. All at the same time: some of
/// the leases have to end.
async fn dropped_at_every_poll(ledger: &Arc<dyn Ledger>, is_attached: bool) {
    let executor = executor(ledger);
    let mut checks = JoinSet::new();
    let mut dropped = 0;
    for class in CLASSES {
        for first in &FIRST {
            for polls in 0.. {
                let effect = Effect::new(&executor, class, first, polls, is_attached);
                let (end, polled) = dropped_after(polls, effect.call()).await;
                checks.spawn(async move { effect.check_new_call().await });
                if end.is_some() {
                    assert!(polled > usize::from(is_attached), "{class:?} {first:?}: no await was met");
                    break;
                }
                dropped += 1;
            }
        }
    }
    // At least before the first poll of each.
    assert!(dropped >= CLASSES.len() * FIRST.len(), "{dropped} callers went away");
    while let Some(checked) = checks.join_next().await {
        checked.expect("a check that holds");
    }
}

async fn f05_a_caller_that_goes_away_at_any_poll_leaves_no_claim_and_performs_nothing_twice(
    ledger: Arc<dyn Ledger>,
) {
    dropped_at_every_poll(&ledger, false).await;
}

async fn f05_an_attached_caller_that_goes_away_at_any_poll_leaves_no_claim_and_performs_nothing_twice(
    ledger: Arc<dyn Ledger>,
) {
    dropped_at_every_poll(&ledger, true).await;
}

/// A ledger that says when a write of its is about to begin or has just ended, and waits until the caller is gone.
#[derive(Debug)]
struct Telling {
    ledger: Arc<dyn Ledger>,
    /// Which of these moments, from 0.
    at: usize,
    passed: AtomicUsize,
    reached: Notify,
    is_gone: Notify,
}

impl Telling {
    async fn moment(&self) {
        if self.passed.fetch_add(1, Ordering::SeqCst) == self.at {
            self.reached.notify_one();
            self.is_gone.notified().await;
        }
    }
}

#[async_trait::async_trait]
impl Ledger for Telling {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        self.moment().await;
        let claim = self.ledger.claim(request).await;
        self.moment().await;
        claim
    }

    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        self.moment().await;
        let changed = self.ledger.change(owner, change).await;
        self.moment().await;
        changed
    }

    async fn read(&self, id: &EffectId) -> Result<Option<EffectHistory>, LedgerError> {
        self.ledger.read(id).await
    }

    fn name(&self) -> &'static str {
        self.ledger.name()
    }

    async fn close(&self) {
        self.ledger.close().await;
    }
}

/// The caller goes away right before the ledger is asked for a write, and right after the write is stored: for each write of
/// each way of a call.
async fn f05_a_caller_that_goes_away_at_any_write_leaves_no_claim_and_performs_nothing_twice(
    ledger: Arc<dyn Ledger>,
) {
    let mut checks = JoinSet::new();
    let mut moments = 0;
    for (class, first) in CLASSES.into_iter().flat_map(|class| FIRST.iter().map(move |first| (class, first)))
    {
        for at in 0.. {
            let telling = Arc::new(Telling {
                ledger: Arc::clone(&ledger),
                at,
                passed: AtomicUsize::new(0),
                reached: Notify::new(),
                is_gone: Notify::new(),
            });
            let shared: Arc<dyn Ledger> = Arc::clone(&telling) as _;
            let effect = Effect::new(&executor(&shared), class, first, at, false);
            let is_over = tokio::select! {
                biased;
                () = telling.reached.notified() => false,
                _ = effect.call() => true,
            };
            telling.is_gone.notify_one();
            checks.spawn(async move { effect.check_new_call().await });
            if is_over {
                break;
            }
            moments += 1;
        }
    }
    // At least a claim and a settle, before and after, for each.
    assert!(moments >= 4 * CLASSES.len() * FIRST.len(), "{moments} moments");
    while let Some(checked) = checks.join_next().await {
        checked.expect("a check that holds");
    }
}
