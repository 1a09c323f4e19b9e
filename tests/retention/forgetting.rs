//! What a call gets when its outcome is no longer kept.

use std::sync::Arc;

use effectual::{
    ErrorKind, Executor, Ledger, TenantScope,
    ledger::{
        Forgot,
        record::{AbsentReason, OutcomeBody, State},
        resolution::By,
    },
    retention::{RetentionPolicy, sweep},
};
use effectual_tests::{
    on_each_ledger,
    scripted::{Act, Scripted},
};

use crate::{
    effects::*,
    place::{DAY, Place, TODAY},
};

on_each_ledger![
    f42_an_outcome_that_a_privacy_job_forgot_is_expired,
    only_a_completed_effect_can_be_forgotten,
];

/// A value that nobody wants to find anywhere.
const CANARY: &str = "canary-5a1e7c";

fn by() -> By {
    By::new("the privacy job", "request 17").expect("who and why")
}

async fn expired(scope: &TenantScope, order: &str, provider: &Scripted) {
    let error = holding(scope, order.to_owned(), 5, provider.clone()).await.expect_err("no longer kept");
    assert_eq!(error.kind(), ErrorKind::Expired);
}

async fn tombstone(executor: &Executor, receipt: &effectual::Receipt) {
    let history = history(executor, receipt).await;
    assert_eq!((history.effect.state, history.effect.readable), (State::Completed, None));
    let outcome = history.effect.outcome.expect("completed");
    assert_eq!(outcome.body, OutcomeBody::Absent(AbsentReason::Expired));
    assert!(history.evidence.iter().all(|evidence| evidence.payload.is_none()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f18_a_call_after_retention_is_told_expired_swept_or_not() {
    for place in Place::all("retention: expired").await {
        let provider = Scripted::forgetful([Act::Perform, Act::Refuse]);
        let (now, later) = (place.open(TODAY).await, place.open(DAY * 31).await);
        let (today, in_a_month) = (executor(&now), executor(&later));
        let (receipt, scope) = receipted(&today);
        holding(&scope, "o-1".into(), 5, provider.clone()).await.expect("performed");
        let refused = holding(&scope, "o-2".into(), 5, provider.clone()).await.expect_err("refused");
        assert_eq!(refused.kind(), ErrorKind::Refused);

        let (_, late) = receipted(&in_a_month);
        for order in ["o-1", "o-2", "o-1"] {
            expired(&late, order, &provider).await;
        }
        assert_eq!(sweep(&*now, &RetentionPolicy::default()).await.expect("a pass").forgotten, 0);
        let pass = sweep(&*later, &RetentionPolicy::default()).await.expect("a pass");
        assert_eq!((pass.forgotten, pass.removed), (2, 0), "on {}", place.name());
        tombstone(&in_a_month, &receipt).await;
        for (scope, order) in [(&late, "o-1"), (&late, "o-2"), (&scope, "o-1")] {
            expired(scope, order, &provider).await;
        }
        let mismatch = holding(&late, "o-1".into(), 6, provider.clone()).await.expect_err("another amount");
        assert_eq!(mismatch.kind(), ErrorKind::Mismatch, "what was asked is still known");
        assert_eq!(provider.keys().len(), 2, "nothing was asked of the provider again on {}", place.name());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_effect_whose_tombstone_was_removed_is_a_new_one() {
    for place in Place::all("retention: a removed tombstone").await {
        let provider = Scripted::forgetful([]);
        let now = place.open(TODAY).await;
        let (_, scope) = receipted(&executor(&now));
        holding(&scope, "o-1".into(), 5, provider.clone()).await.expect("performed");
        let policy = RetentionPolicy::default().remove_tombstones_after(DAY * 365);
        for (days, removed) in [(31, 0), (30 + 364, 0), (30 + 366, 1)] {
            let later = place.open(DAY * days).await;
            assert_eq!(sweep(&*later, &policy).await.expect("a pass").removed, removed, "after {days} days");
        }
        let again = holding(&scope, "o-1".into(), 5, provider.clone()).await.expect("performed anew");
        assert_eq!((again.number, provider.performed()), (2, 2), "as the policy says of itself");
    }
}

async fn f42_an_outcome_that_a_privacy_job_forgot_is_expired(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    holding(&scope, CANARY.into(), 5, provider.clone()).await.expect("performed");
    holding(&scope, CANARY.into(), 5, provider.clone()).await.expect("replayed");
    let id = receipt.effect_id().expect("an identity");
    let by = by();
    let forget = || executor.forget(&id, &by);
    assert_eq!(forget().await.expect("an answer"), Forgot::Forgotten);
    tombstone(&executor, &receipt).await;
    for _ in 0..2 {
        expired(&scope, CANARY, &provider).await;
        assert_eq!(forget().await.expect("an answer"), Forgot::Already);
    }
    assert_eq!(provider.performed(), 1);
}

async fn only_a_completed_effect_can_be_forgotten(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([Act::PerformAndLose, Act::NoConnection]);
    let executor = builder(&ledger).retry(quick().attempts_max(1)).build().expect("a valid set-up");
    let (receipt, scope) = receipted(&executor);
    let mut ends = Vec::new();
    for order in ["escaped", "released"] {
        holding(&scope, order.into(), 5, provider.clone()).await.expect_err("no outcome");
        let id = receipt.effect_id().expect("an identity");
        assert_eq!(executor.forget(&id, &by()).await.expect("an answer"), Forgot::Unsettled);
        ends.push(state(&executor, &receipt).await);
    }
    assert_eq!(ends, [State::Escaped, State::Released]);
    let unknown = effectual::EffectId::parse(format!("acme/{}", "0".repeat(64))).expect("an id");
    assert_eq!(executor.forget(&unknown, &by()).await.expect("an answer"), Forgot::NotFound);
}

/// What is forgotten is in no column, and not in the file of SQLite once its log is moved into it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f42_what_was_forgotten_is_gone_and_who_did_it_is_kept() {
    for place in Place::all("retention: forgotten").await {
        let provider = Scripted::forgetful([]);
        let ledger = place.open(TODAY).await;
        let executor = executor(&ledger);
        let (receipt, scope) = receipted(&executor);
        // Long enough for pages of its own.
        let order = CANARY.repeat(1_000);
        holding(&scope, order.clone(), 5, provider.clone()).await.expect("performed");
        let id = receipt.effect_id().expect("an identity");
        assert_eq!(executor.forget(&id, &by()).await.expect("an answer"), Forgot::Forgotten);
        let columns = match place.file() {
            Some(_) => {
                "SELECT count(*) || '' FROM effectual_effects WHERE payload IS NOT NULL OR readable IS NOT NULL"
            }
            None => {
                "SELECT count(*)::text FROM effectual_effects WHERE effectual_effects::text LIKE '%canary%'"
            }
        };
        assert_eq!(place.texts(columns).await, ["0"]);
        let audit = "SELECT who || ', ' || why || ', ' || action || ', ' || before FROM effectual_audit";
        let [entry] = place.texts(audit).await.try_into().expect("one entry");
        let (said, stood) = entry.split_at(entry.find('{').expect("where it stood"));
        assert_eq!(said, "the privacy job, request 17, forgotten, ");
        let stood: serde_json::Value = serde_json::from_str(stood).expect("JSON");
        let expected = serde_json::json!({"state": "completed", "attempt": 1, "fence": 1, "outcome": "success",
            "accepted": false, "late_success": false});
        assert_eq!(stood, expected, "on {}", place.name());
        executor.drain(DAY).await;
        ledger.close().await;
        if let Some(file) = place.file() {
            let bytes = std::fs::read(file).expect("the file");
            assert!(
                !bytes.windows(CANARY.len()).any(|found| found == CANARY.as_bytes()),
                "it is in the file"
            );
        }
    }
}
