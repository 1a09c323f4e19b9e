//! Renewals live as long as their attempt.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use effectual::{
    EffectContext, EffectId, ErrorKind, Executor, Ledger, LedgerError, LedgerErrorKind, MemoryLedger, effect,
    ledger::{Change, Changed, Claim, ClaimRequest, EffectHistory, Owner, record::State},
};
use effectual_tests::{
    scripted::{PANIC_CANARY, ScriptedError},
    wait::{for_value, until_true},
};

use crate::{LIMIT, effects::*};

/// A ledger that counts renewals, and does not answer the first ones.
#[derive(Debug, Default)]
struct Watched {
    memory: MemoryLedger,
    /// The effects that were renewed, in the order of their renewals.
    renewed: Mutex<Vec<EffectId>>,
    failing: AtomicU32,
}

impl Watched {
    fn renewed(&self) -> MutexGuard<'_, Vec<EffectId>> {
        self.renewed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn renewals(&self, id: &EffectId) -> usize {
        self.renewed().iter().filter(|renewed| *renewed == id).count()
    }

    /// The first effect that is renewed and was not before.
    async fn newly_renewed(&self, before: &[EffectId]) -> EffectId {
        let new = for_value(LIMIT, async || self.renewed().iter().find(|id| !before.contains(id)).cloned());
        new.await.expect("a renewal")
    }
}

#[async_trait::async_trait]
impl Ledger for Watched {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        self.memory.claim(request).await
    }

    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        if matches!(change, Change::Renew { .. }) {
            let lower = |left: u32| left.checked_sub(1);
            if self.failing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, lower).is_ok() {
                return Err(LedgerError::new(LedgerErrorKind::Unavailable, "no renewal gets through"));
            }
            self.renewed().push(owner.id.clone());
        }
        self.memory.change(owner, change).await
    }

    async fn read(&self, id: &EffectId) -> Result<Option<EffectHistory>, LedgerError> {
        self.memory.read(id).await
    }

    fn name(&self) -> &'static str {
        "watched"
    }

    async fn close(&self) {
        self.memory.close().await;
    }
}

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Returns,
    Panics,
    /// Its caller, which it borrows from, goes away.
    Dropped,
}

/// Lasts until it was renewed once.
async fn last(cx: &EffectContext, watched: &Watched, end: End) -> usize {
    let id = cx.effect_id().clone();
    until_true(|| watched.renewals(&id) > 0).await;
    match end {
        End::Returns => watched.renewals(&id),
        End::Panics => panic!("{PANIC_CANARY}"),
        End::Dropped => std::future::pending().await,
    }
}

#[effect(keying = business_identity, attached)]
async fn lasting(
    cx: &EffectContext,
    #[key] order: &str,
    #[skip] watched: &Watched,
    #[skip] end: End,
) -> effectual::Result<usize, ScriptedError> {
    let _ = order;
    Ok(last(cx, watched, end).await)
}

/// Renewed after 0.4 s, looked at every 0.15 s.
fn quickly_renewed(ledger: &Arc<Watched>, lease: Duration) -> Executor {
    let shared: Arc<dyn Ledger> = Arc::clone(ledger) as _;
    let builder = builder(&shared).lease(lease).attempt_timeout(lease * 10 / 12).margin(lease / 12);
    builder.build().expect("a valid set-up")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f31_the_heartbeat_ends_with_the_effect() {
    let watched = Arc::new(Watched::default());
    let executor = quickly_renewed(&watched, Duration::from_millis(1_200));
    for end in [End::Returns, End::Panics, End::Dropped] {
        let (_, scope) = receipted(&executor);
        let (order, before) = (format!("{end:?}"), watched.renewed().clone());
        let call = lasting(&scope, &order, &watched, end);
        let ended = match end {
            End::Dropped => tokio::select! {
                ended = call => Some(ended),
                _ = watched.newly_renewed(&before) => None,
            },
            _ => Some(call.await),
        };
        match ended {
            Some(Ok(_)) => assert_eq!(end, End::Returns),
            Some(Err(error)) => assert_eq!((end, error.kind()), (End::Panics, ErrorKind::Escaped)),
            None => assert_eq!(end, End::Dropped),
        }
        let id = watched.newly_renewed(&before).await;
        let at_its_end = watched.renewals(&id);
        let mut after = Vec::new();
        for clock in 0..2 {
            // Another effect of the same executor is renewed: three ticks have passed.
            let (_, scope) = receipted(&executor);
            lasting(&scope, &format!("{end:?} {clock}"), &watched, End::Returns).await.expect("it returns");
            after.push(watched.renewals(&id));
        }
        // One may have been on its way.
        assert!(after[0] <= at_its_end + 1, "{end:?}: {at_its_end}, then {after:?}");
        assert_eq!(after[0], after[1], "{end:?}: {at_its_end}, then {after:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f31_three_heartbeats_that_fail_do_not_end_an_effect_whose_lease_goes_on() {
    let watched = Arc::new(Watched { failing: AtomicU32::new(3), ..Watched::default() });
    let executor = quickly_renewed(&watched, Duration::from_millis(2_400));
    let (receipt, scope) = receipted(&executor);
    lasting(&scope, "o-1", &watched, End::Returns).await.expect("it goes on, and is renewed at last");
    assert_eq!(watched.failing.load(Ordering::SeqCst), 0);
    let record = record(&executor, &receipt).await;
    assert_eq!((record.state, record.attempt, record.fence), (State::Completed, 1, 1));
}
