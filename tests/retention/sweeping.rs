//! The sweeper that an executor starts.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use effectual::{
    EffectId, Executor, Ledger, LedgerError, LedgerErrorKind, MemoryLedger,
    ledger::{
        Change, Changed, Claim, ClaimRequest, EffectHistory, Owner, Payload, Sweep, Swept, UnsettledPage,
        UnsettledQuery,
        record::{AbsentReason, OutcomeBody},
    },
    retention::RetentionPolicy,
};
use effectual_tests::{scripted::Scripted, wait};

use crate::{
    effects::*,
    place::{DAY, Place, TODAY},
};

const LIMIT: Duration = Duration::from_secs(30);

fn often() -> RetentionPolicy {
    RetentionPolicy::default().every(Duration::from_secs(1)).batch(3).pause(Duration::from_millis(1))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn executors_that_sweep_at_once_forget_everything_once() {
    for place in Place::all("retention: several sweepers").await {
        let provider = Scripted::forgetful([]);
        let now = place.open(TODAY).await;
        let mut receipts = Vec::new();
        for order in 0..20 {
            let (receipt, scope) = receipted(&executor(&now));
            holding(&scope, order.to_string(), 5, provider.clone()).await.expect("performed");
            receipts.push(receipt);
        }
        let mut sweepers = Vec::new();
        for _ in 0..3 {
            let later = place.open(DAY * 31).await;
            sweepers.push(builder(&later).sweep(often()).build().expect("a valid set-up"));
        }
        let looker = executor(&now);
        for receipt in &receipts {
            wait::until("the sweep", LIMIT, async || {
                let outcome = record(&looker, receipt).await.outcome.expect("completed");
                outcome.body == OutcomeBody::Absent(AbsentReason::Expired)
            })
            .await;
            // Its claim, its settle, its forgetting.
            assert_eq!(record(&looker, receipt).await.revision, 3, "on {}", place.name());
        }
        for sweeper in sweepers {
            assert_eq!(sweeper.drain(LIMIT).await.unfinished, 0);
        }
        assert_eq!(provider.performed(), 20);
    }
}

/// Counts how often it is asked to sweep, and answers as it is told.
#[derive(Debug, Default)]
struct Counting {
    inner: MemoryLedger,
    sweeps: AtomicU32,
    refuses: Option<LedgerErrorKind>,
}

#[async_trait::async_trait]
impl Ledger for Counting {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        self.inner.claim(request).await
    }

    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        self.inner.change(owner, change).await
    }

    async fn read(&self, id: &EffectId) -> Result<Option<EffectHistory>, LedgerError> {
        self.inner.read(id).await
    }

    async fn sweep(&self, batch: Sweep) -> Result<Swept, LedgerError> {
        self.sweeps.fetch_add(1, Ordering::SeqCst);
        match self.refuses {
            Some(kind) => Err(LedgerError::new(kind, "as told")),
            None => self.inner.sweep(batch).await,
        }
    }

    async fn unsettled(&self, query: &UnsettledQuery) -> Result<UnsettledPage, LedgerError> {
        self.inner.unsettled(query).await
    }

    async fn input(&self, id: &EffectId) -> Result<Option<Payload>, LedgerError> {
        self.inner.input(id).await
    }

    fn name(&self) -> &'static str {
        "counting"
    }

    async fn close(&self) {}
}

fn sweeping(refuses: Option<LedgerErrorKind>) -> (Arc<Counting>, Executor) {
    let ledger = Arc::new(Counting { refuses, ..Counting::default() });
    let executor = Executor::builder(Arc::clone(&ledger)).sweep(often()).build().expect("a valid set-up");
    (ledger, executor)
}

impl Counting {
    async fn asked(&self, times: u32) {
        wait::until("a pass", LIMIT, async || self.sweeps.load(Ordering::SeqCst) >= times).await;
    }

    /// Whether another pass comes within more than the longest time between two.
    async fn is_asked_again(&self) -> bool {
        let before = self.sweeps.load(Ordering::SeqCst);
        let again = async || (self.sweeps.load(Ordering::SeqCst) > before).then_some(());
        wait::for_value(Duration::from_millis(1_800), again).await.is_some()
    }
}

#[tokio::test]
async fn a_sweeper_goes_on_until_its_executor_drains() {
    let (ledger, executor) = sweeping(None);
    ledger.asked(2).await;
    executor.drain(Duration::ZERO).await;
    assert!(!ledger.is_asked_again().await);
}

#[tokio::test]
async fn a_sweeper_ends_with_the_last_clone_of_its_executor() {
    let (ledger, executor) = sweeping(None);
    let clone = executor.clone();
    drop(executor);
    ledger.asked(1).await;
    drop(clone);
    // The task holds the ledger as long as it lives.
    wait::until("the sweeper's end", LIMIT, async || Arc::strong_count(&ledger) == 1).await;
}

#[tokio::test]
async fn a_sweeper_waits_out_trouble_and_ends_where_the_ledger_does_not_sweep() {
    let (ledger, _executor) = sweeping(Some(LedgerErrorKind::Unavailable));
    ledger.asked(2).await;
    let (ledger, _executor) = sweeping(Some(LedgerErrorKind::Unsupported));
    ledger.asked(1).await;
    assert!(!ledger.is_asked_again().await);
}

#[tokio::test]
async fn a_policy_that_makes_no_sense_is_refused_at_start() {
    let ledger: Arc<dyn Ledger> = Arc::new(MemoryLedger::new());
    let policy = RetentionPolicy::default().remove_tombstones_after(DAY);
    let text = builder(&ledger).sweep(policy).build().expect_err("too short").to_string();
    assert!(text.contains("remove_tombstones_after") && text.contains("14 days"), "{text}");
}

#[tokio::test]
async fn f18_a_retention_shorter_than_the_retry_horizon_is_refused() {
    let ledger: Arc<dyn Ledger> = Arc::new(MemoryLedger::new());
    let patient = || builder(&ledger).retry(quick().elapsed_max(DAY * 31));
    let text = patient().retention(DAY * 30).build().expect_err("too short").to_string();
    assert!(text.contains("`retention`") && text.contains("retry horizon"), "{text}");
    patient().retention(DAY * 31).build().expect("as long as calls may go on");
}
