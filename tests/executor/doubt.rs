//! A doubt is not erased by what comes after it.

use std::{sync::Arc, time::Duration};

use effectual::{
    ErrorKind, Ledger,
    ledger::record::{AttemptVerdict, State},
};
use effectual_tests::{
    on_each_ledger,
    scripted::{Act, Scripted},
};

use crate::effects::*;

on_each_ledger![
    a_later_429_does_not_erase_a_doubt,
    a_later_refused_connection_does_not_erase_a_doubt,
    a_later_refusal_is_evidence_and_not_the_outcome,
    a_later_answer_ends_the_doubt,
];

/// The first answer is lost, the next attempt ends as `then` says, and no further attempt is made in this call.
async fn doubted(
    ledger: &Arc<dyn Ledger>,
    order: &str,
    then: Act,
) -> (Scripted, effectual::Executor, effectual::Receipt) {
    let provider = Scripted::deduplicating([Act::PerformAndLose, then]);
    let executor = builder(ledger).retry(quick().attempts_max(2)).build().expect("a valid set-up");
    let (receipt, scope) = receipted(&executor);
    let error = resending(&scope, order.into(), 5, provider.clone()).await.expect_err("still in doubt");
    assert_eq!(error.kind(), ErrorKind::Escaped, "{error}");
    let record = record(&executor, &receipt).await;
    assert_eq!((record.state, record.attempt), (State::Escaped, 2));
    assert_eq!(record.doubt.expect("in doubt").attempt, 1);
    assert_eq!((provider.performed(), provider.keys().len()), (1, 2));
    (provider, executor, receipt)
}

async fn a_later_429_does_not_erase_a_doubt(ledger: Arc<dyn Ledger>) {
    let (provider, executor, receipt) = doubted(&ledger, "o-1", Act::TooBusy(None)).await;
    let end = record(&executor, &receipt).await.end.expect("closed");
    assert_eq!(end.verdict, AttemptVerdict::NotPerformed);
    let (_, scope) = receipted(&executor);
    let done = resending(&scope, "o-1".into(), 5, provider.clone()).await.expect("recognised by its key");
    assert_eq!((done.number, provider.performed()), (1, 1));
}

async fn a_later_refused_connection_does_not_erase_a_doubt(ledger: Arc<dyn Ledger>) {
    let (provider, ..) = doubted(&ledger, "o-2", Act::NoConnection).await;
    assert_eq!(provider.performed(), 1);
}

async fn a_later_refusal_is_evidence_and_not_the_outcome(ledger: Arc<dyn Ledger>) {
    let (provider, executor, receipt) = doubted(&ledger, "o-3", Act::Refuse).await;
    let known = history(&executor, &receipt).await;
    assert_eq!(known.evidence.len(), 1);
    assert_eq!(known.evidence[0].verdict, AttemptVerdict::Refused);
    assert_eq!(known.effect.outcome, None);
    let (_, scope) = receipted(&executor);
    let done = resending(&scope, "o-3".into(), 5, provider.clone()).await.expect("recognised by its key");
    assert_eq!((done.number, provider.performed()), (1, 1));
}

async fn a_later_answer_ends_the_doubt(ledger: Arc<dyn Ledger>) {
    let provider =
        Scripted::deduplicating([Act::PerformAndLose, Act::TooBusy(Some(Duration::from_millis(1)))]);
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    let done =
        resending(&scope, "o-4".into(), 5, provider.clone()).await.expect("the third attempt is answered");
    assert_eq!((done.number, provider.performed()), (1, 1));
    let known = history(&executor, &receipt).await;
    assert_eq!((known.effect.doubt, known.closed.len()), (None, 2));
}
