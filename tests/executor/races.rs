//! What happens at the same time as something else.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use effectual::{
    EffectContext, EffectId, ErrorKind, Ledger, LedgerError, LedgerErrorKind, MemoryLedger, effect,
    ledger::{Change, Changed, Claim, ClaimRequest, EffectHistory, Owner, record::State},
};
use effectual_tests::{
    scripted::{Act, Scripted, ScriptedError},
    wait::until,
};
use tokio::sync::Notify;

use crate::effects::*;

/// A ledger in memory that counts, and whose claims and openings wait at a gate, or fail, where that is asked for.
#[derive(Debug, Default)]
struct Watched {
    memory: MemoryLedger,
    calls: AtomicU32,
    renewals: AtomicU32,
    gated: AtomicBool,
    opens_gated: AtomicBool,
    failing: AtomicBool,
    at_gate: Notify,
    gate: Notify,
}

#[async_trait]
impl Ledger for Watched {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if self.failing.load(Ordering::SeqCst) {
            return Err(LedgerError::new(LedgerErrorKind::Unavailable, "no claim gets through"));
        }
        let claim = self.memory.claim(request).await;
        if self.gated.load(Ordering::SeqCst) {
            self.at_gate.notify_one();
            self.gate.notified().await;
        }
        claim
    }

    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        if matches!(change, Change::Renew { .. }) {
            self.renewals.fetch_add(1, Ordering::SeqCst);
        }
        let changed = self.memory.change(owner, change).await;
        if matches!(change, Change::Open { .. }) && self.opens_gated.load(Ordering::SeqCst) {
            self.at_gate.notify_one();
            self.gate.notified().await;
        }
        changed
    }

    async fn read(&self, id: &EffectId) -> Result<Option<EffectHistory>, LedgerError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
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
        "watched"
    }

    async fn close(&self) {
        self.memory.close().await;
    }
}

fn watched() -> (Arc<Watched>, Arc<dyn Ledger>) {
    let ledger = Arc::new(Watched::default());
    (ledger.clone(), ledger)
}

const ENOUGH: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_waits_for_a_claim_that_is_on_its_way() {
    let (watched, ledger) = watched();
    let executor = executor(&ledger);
    let provider = Scripted::forgetful([]);
    watched.gated.store(true, Ordering::SeqCst);
    let call = tokio::spawn(holding(&receipted(&executor).1, "o-1".into(), 5, provider.clone()));
    watched.at_gate.notified().await;
    let drain = tokio::spawn({
        let executor = executor.clone();
        async move { executor.drain(ENOUGH).await }
    });
    let draining = || async {
        watched.gated.store(false, Ordering::SeqCst);
        let error =
            holding(&receipted(&executor).1, "o-2".into(), 5, Scripted::forgetful([Act::Refuse])).await;
        error.expect_err("refused by the provider or by the drain").kind() == ErrorKind::Draining
    };
    until("the drain to begin", ENOUGH, async || draining().await).await;
    assert!(!drain.is_finished(), "a claim that was stored may still be performed");
    watched.gate.notify_one();
    call.await.expect("no panic").expect("claimed before the drain");
    assert_eq!((drain.await.expect("no panic").unfinished, provider.performed()), (0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f36_a_claim_that_is_answered_after_the_drain_sends_nothing() {
    let (watched, ledger) = watched();
    let executor = builder(&ledger)
        .attempt_timeout(Duration::from_secs(30))
        .lease(Duration::from_secs(40))
        .build()
        .expect("a valid set-up");
    let running = tokio::spawn(patient(&receipted(&executor).1, 1, Arc::default()));
    until("the first claim", ENOUGH, async || watched.calls.load(Ordering::SeqCst) == 1).await;
    let provider = Scripted::forgetful([]);
    watched.gated.store(true, Ordering::SeqCst);
    let (receipt, scope) = receipted(&executor);
    let call = tokio::spawn(holding(&scope, "o-1".into(), 5, provider.clone()));
    watched.at_gate.notified().await;
    let drain = tokio::spawn({
        let executor = executor.clone();
        async move { executor.drain(Duration::ZERO).await }
    });
    // Its body is aborted at the deadline.
    assert!(running.await.expect("no panic").is_err());
    watched.gate.notify_one();
    let error = call.await.expect("no panic").expect_err("too late");
    assert_eq!((error.kind(), provider.keys().len()), (ErrorKind::Draining, 0));
    assert_eq!(drain.await.expect("no panic").unfinished, 2);
    until("the claim to be given back", ENOUGH, async || state(&executor, &receipt).await == State::Released)
        .await;
}

#[effect(keying = business_identity)]
async fn patient(
    cx: &EffectContext,
    #[key] order: u64,
    #[skip] gate: Arc<Notify>,
) -> effectual::Result<u64, ScriptedError> {
    let _permit = cx.send_permit().map_err(ScriptedError::from)?;
    gate.notified().await;
    Ok(order)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f31_claims_that_fail_one_after_the_other_do_not_stop_the_renewals() {
    let (watched, ledger) = watched();
    let executor = builder(&ledger)
        .attempt_timeout(Duration::from_secs(3))
        .margin(Duration::ZERO)
        .lease(Duration::from_millis(3_200))
        .build()
        .expect("a valid set-up");
    let gate = Arc::new(Notify::new());
    let call = tokio::spawn(patient(&receipted(&executor).1, 1, gate.clone()));
    until("the claim", ENOUGH, async || watched.calls.load(Ordering::SeqCst) == 1).await;
    watched.failing.store(true, Ordering::SeqCst);
    // A lease of 3.2 s is looked at every 400 ms, and due after 1.1 s; the attempt ends after 3 s.
    let begun = std::time::Instant::now();
    let mut failed = 0;
    while watched.renewals.load(Ordering::SeqCst) == 0 && begun.elapsed() < Duration::from_millis(2_900) {
        let error = holding(&receipted(&executor).1, format!("o-{failed}"), 5, Scripted::forgetful([])).await;
        assert_eq!(error.expect_err("the ledger is down").kind(), ErrorKind::Ledger);
        failed += 1;
        tokio::task::yield_now().await;
    }
    assert!(watched.renewals.load(Ordering::SeqCst) > 0, "not renewed beside {failed} failing claims");
    gate.notify_one();
    assert_eq!(call.await.expect("no panic").expect("performed"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_for_a_labelled_attempt_asks_less_and_less_often() {
    let (watched, ledger) = watched();
    let lease = Duration::from_secs(3);
    let first = builder(&ledger).attempt_timeout(Duration::from_secs(2)).lease(lease).build().expect("valid");
    let provider = Scripted::deduplicating([Act::PerformAndHang]);
    let (receipt, scope) = receipted(&first);
    let call = tokio::spawn(resending(&scope, "o-1".into(), 5, provider.clone()));
    provider.next_arrival().await;
    let id = {
        // The identity of the effect, from a caller that does not wait.
        let impatient = builder(&ledger).wait(Duration::ZERO).build().expect("valid");
        let (receipt, scope) = receipted(&impatient);
        drop(resending(&scope, "o-1".into(), 5, provider.clone()).await);
        receipt.effect_id().expect("an identity")
    };
    let row = ledger.read(&id).await.expect("answers").expect("known").effect;
    ledger.change(&Owner::of(&row), &Change::Label).await.expect("labelled");
    let other = executor(&ledger);
    let before = watched.calls.load(Ordering::SeqCst);
    let done = resending(&receipted(&other).1, "o-1".into(), 5, provider.clone()).await.expect("its answer");
    let asked = watched.calls.load(Ordering::SeqCst) - before;
    assert_eq!((done.number, provider.performed()), (1, 1));
    assert!(asked < 60, "asked {asked} times in 3 s");
    drop((call.await.expect("no panic"), receipt));
}

#[test]
fn f05_a_call_that_goes_away_while_it_opens_an_attempt_leaves_no_doubt() {
    let (watched, ledger) = watched();
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let (first, other) = (runtime().expect("a runtime"), runtime().expect("a runtime"));
    let executor = {
        let _in = first.enter();
        executor(&ledger)
    };
    let provider = Scripted::forgetful([Act::NoConnection]);
    let id = {
        let (receipt, scope) = receipted(&executor);
        first
            .block_on(holding(&scope, "o-1".into(), 4, Scripted::forgetful([Act::BadCredential])))
            .expect_err("401");
        receipt.effect_id().expect("an identity")
    };
    watched.opens_gated.store(true, Ordering::SeqCst);
    first.spawn(holding(&receipted(&executor).1, "o-1".into(), 4, provider.clone()));
    other.block_on(watched.at_gate.notified());
    first.shutdown_timeout(Duration::from_secs(5));
    other.block_on(until("the opened attempt to be released", Duration::from_secs(1), async || {
        let row = ledger.read(&id).await.expect("answers").expect("known").effect;
        row.state == State::Released && row.attempt == 3
    }));
    assert_eq!((provider.keys().len(), provider.performed()), (1, 0));
}
