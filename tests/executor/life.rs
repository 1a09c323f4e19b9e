//! From the call to its end.

use std::{sync::Arc, time::Duration};

use effectual::{ErrorKind, Ledger, ProviderCalled, ledger::record::State};
use effectual_tests::{
    on_each_ledger,
    scripted::{Act, PANIC_CANARY, Scripted, ScriptedError},
    wait::until,
};

use crate::effects::*;

on_each_ledger![
    a_second_call_replays,
    f58_an_operator_reads_the_key_beside_the_hash,
    another_tenant_is_another_effect,
    a_mismatch_is_refused_before_the_provider,
    a_refusal_is_stored_and_replays_as_the_same_error,
    a_bad_credential_is_not_stored,
    a_delay_beyond_the_budget_is_kept_for_everybody,
    attempts_of_one_call_are_bounded_and_go_on_in_the_next,
    f05_a_dropped_caller_loses_nothing,
    f40_a_panic_is_unknown_and_kills_nothing,
    f07_an_attempt_that_takes_too_long_is_unknown,
    a_call_that_lasts_longer_than_its_lease_keeps_it,
];

async fn a_second_call_replays(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    let first = holding(&scope, "o-1".into(), 5, provider.clone()).await.expect("performed");
    assert!(!receipt.replayed());
    let again = holding(&scope, "o-1".into(), 5, provider.clone()).await.expect("replayed");
    assert!(receipt.replayed());
    assert_eq!(first, again);
    assert_eq!(provider.performed(), 1);
}

async fn another_tenant_is_another_effect(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let executor = executor(&ledger);
    for tenant in ["acme", "globex"] {
        let scope = executor.tenant(tenant).expect("a tenant");
        holding(&scope, "o-2".into(), 5, provider.clone()).await.expect("performed");
    }
    assert_eq!(provider.performed(), 2);
}

async fn a_mismatch_is_refused_before_the_provider(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let executor = executor(&ledger);
    let (_, scope) = receipted(&executor);
    holding(&scope, "o-3".into(), 5, provider.clone()).await.expect("performed");
    let error = holding(&scope, "o-3".into(), 6, provider.clone()).await.expect_err("another amount");
    assert_eq!(error.kind(), ErrorKind::Mismatch);
    assert_eq!(error.provider_called(), ProviderCalled::No);
    let text = error.to_string();
    assert!(text.contains("`amount`") && !text.contains("`order`"), "{text}");
    assert_eq!(provider.performed(), 1);
}

async fn a_refusal_is_stored_and_replays_as_the_same_error(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([Act::Refuse]);
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    let first = holding(&scope, "o-4".into(), 5, provider.clone()).await.expect_err("refused");
    let again = holding(&scope, "o-4".into(), 5, provider.clone()).await.expect_err("refused again");
    let declined = ScriptedError::Declined { code: "insufficient_funds".into() };
    for error in [&first, &again] {
        assert_eq!((error.kind(), error.error()), (ErrorKind::Refused, Some(&declined)));
    }
    assert!(!first.replayed() && again.replayed() && receipt.replayed());
    assert_eq!((provider.performed(), provider.keys().len()), (0, 1));
}

async fn a_bad_credential_is_not_stored(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([Act::BadCredential]);
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    let error = holding(&scope, "o-5".into(), 5, provider.clone()).await.expect_err("401");
    assert_eq!((error.kind(), error.error()), (ErrorKind::Failed, Some(&ScriptedError::BadCredential)));
    assert_eq!(state(&executor, &receipt).await, State::Released);
    holding(&scope, "o-5".into(), 5, provider.clone()).await.expect("the rotated secret works");
    assert_eq!((provider.performed(), record(&executor, &receipt).await.attempt), (1, 2));
}

async fn a_delay_beyond_the_budget_is_kept_for_everybody(ledger: Arc<dyn Ledger>) {
    let hour = Duration::from_secs(3600);
    let provider = Scripted::forgetful([Act::TooBusy(Some(hour))]);
    let executor = executor(&ledger);
    let (_, scope) = receipted(&executor);
    let first = holding(&scope, "o-6".into(), 5, provider.clone()).await.expect_err("429");
    assert_eq!((first.kind(), first.retry_after()), (ErrorKind::RetryLater, Some(hour)));
    let early = holding(&scope, "o-6".into(), 5, provider.clone()).await.expect_err("too early");
    assert_eq!((early.kind(), early.provider_called()), (ErrorKind::RetryLater, ProviderCalled::No));
    let left = early.retry_after().expect("a delay");
    assert!(left <= hour && left > hour - Duration::from_secs(60), "{left:?}");
    assert_eq!(provider.keys().len(), 1);
}

async fn attempts_of_one_call_are_bounded_and_go_on_in_the_next(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful(std::iter::repeat_n(Act::NoConnection, 5));
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    let error = holding(&scope, "o-7".into(), 5, provider.clone()).await.expect_err("never connected");
    assert_eq!((error.kind(), error.error()), (ErrorKind::Failed, Some(&ScriptedError::NoConnection)));
    assert_eq!(provider.keys().len(), 4);
    holding(&scope, "o-7".into(), 5, provider.clone()).await.expect("the sixth attempt connects");
    let known = history(&executor, &receipt).await;
    assert_eq!((known.effect.attempt, provider.performed()), (6, 1));
    let numbers: Vec<_> = known.closed.iter().map(|attempt| attempt.attempt).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
}

async fn f05_a_dropped_caller_loses_nothing(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    let arrival = provider.next_arrival();
    tokio::select! {
        biased;
        () = arrival => {}
        _ = holding(&scope, "o-8".into(), 5, provider.clone()) => {}
    }
    // The caller's future is gone; the effect's own task is not.
    let done = holding(&scope, "o-8".into(), 5, provider.clone()).await.expect("its outcome");
    assert_eq!((done.number, provider.performed()), (1, 1));
    assert_eq!(state(&executor, &receipt).await, State::Completed);
}

async fn f40_a_panic_is_unknown_and_kills_nothing(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([Act::PerformAndPanic]);
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    let error = holding(&scope, "o-9".into(), 5, provider.clone()).await.expect_err("unknown");
    assert_eq!(error.kind(), ErrorKind::Escaped);
    assert!(!format!("{error} {error:?}").contains(PANIC_CANARY));
    let known = format!("{:?}", history(&executor, &receipt).await);
    assert!(!known.contains(PANIC_CANARY));
    holding(&scope, "o-9b".into(), 5, provider.clone()).await.expect("the executor lives");
    assert_eq!(provider.performed(), 2);
}

async fn f07_an_attempt_that_takes_too_long_is_unknown(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::deduplicating([Act::PerformAndHang]);
    let executor = executor(&ledger);
    let (_, scope) = receipted(&executor);
    let held = holding(&scope, "o-10".into(), 5, provider.clone()).await.expect_err("unknown");
    assert_eq!(held.kind(), ErrorKind::Escaped);
    let provider = Scripted::deduplicating([Act::PerformAndHang]);
    resending(&scope, "o-10".into(), 5, provider.clone()).await.expect("recognised by its key");
    assert_eq!((provider.performed(), provider.keys().len()), (1, 2));
}

async fn a_call_that_lasts_longer_than_its_lease_keeps_it(ledger: Arc<dyn Ledger>) {
    // Four attempts of 300 ms each that hang, under a lease of 850 ms, renewed all along.
    let provider = Scripted::deduplicating([Act::PerformAndHang, Act::PerformAndHang, Act::PerformAndHang]);
    let lease = Duration::from_millis(850);
    let executor = builder(&ledger).lease(lease).build().expect("a valid set-up");
    let (receipt, scope) = receipted(&executor);
    let call = tokio::spawn({
        let (scope, provider) = (scope.clone(), provider.clone());
        async move { resending(&scope, "o-11".into(), 5, provider).await }
    });
    provider.next_arrival().await;
    let other = executor.tenant("acme").expect("a tenant");
    until("the call to end", Duration::from_secs(20), async || {
        if call.is_finished() {
            return true;
        }
        let waited = tokio::time::timeout(
            Duration::from_millis(1),
            resending(&other, "o-11".into(), 5, provider.clone()),
        );
        // An answer is the stored one, perhaps a moment before the call itself has ended.
        waited.await.is_ok_and(|answer| answer.expect("nobody takes over").number == 1)
    })
    .await;
    call.await.expect("no panic").expect("the fourth attempt is answered");
    assert_eq!((provider.performed(), provider.keys().len()), (1, 4));
    assert_eq!(record(&executor, &receipt).await.fence, 1);
}

async fn f58_an_operator_reads_the_key_beside_the_hash(ledger: Arc<dyn Ledger>) {
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    holding(&scope, "order-1042".into(), 5, Scripted::forgetful([])).await.expect("performed");
    let known = record(&executor, &receipt).await;
    assert_eq!((&*known.operation, known.readable.as_deref()), ("holding", Some("order=…1042")));
}
