//! The same identity with another input, on every path.

use std::{sync::Arc, time::Duration};

use effectual::{ErrorKind, Executor, Ledger, ledger::record::State};
use effectual_tests::{
    on_each_ledger,
    scripted::{Act, Scripted},
    wait::until,
};

use crate::effects::*;

on_each_ledger![
    f23_another_input_is_a_mismatch_in_flight_and_while_waiting,
    f23_another_input_is_a_mismatch_in_every_state,
    f23_another_input_is_a_mismatch_after_a_lease_and_after_a_takeover,
];

const LIMIT: Duration = Duration::from_secs(30);

/// Asks for the effect with another amount, and finds that nothing was asked of the provider.
async fn differs(executor: &Executor, order: &str, when: &str) {
    let provider = Scripted::forgetful([]);
    let (_, scope) = receipted(executor);
    let error = resending(&scope, order.to_owned(), 6, provider.clone()).await.expect_err(when);
    assert_eq!((error.kind(), provider.keys().len()), (ErrorKind::Mismatch, 0), "{when}");
    assert!(error.to_string().contains("`amount`"), "{error}");
}

async fn f23_another_input_is_a_mismatch_in_flight_and_while_waiting(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::deduplicating([Act::PerformAndHang]);
    let slow = || {
        builder(&ledger)
            .attempt_timeout(Duration::from_secs(20))
            .lease(Duration::from_secs(30))
            .wait(Duration::from_secs(20))
    };
    let executor = slow().build().expect("a valid set-up");
    let (_, scope) = receipted(&executor);
    let call = tokio::spawn(resending(&scope, "o-1".into(), 5, provider.clone()));
    provider.next_arrival().await;
    // Told at once, although they would wait for 20 s: in the winner's process, and in another one.
    differs(&executor, "o-1", "in flight in this process").await;
    let elsewhere = slow().build().expect("a valid set-up");
    differs(&elsewhere, "o-1", "in flight in another process").await;
    let impatient = slow().wait(Duration::ZERO).build().expect("a valid set-up");
    differs(&impatient, "o-1", "in flight, without waiting").await;

    let waiting = tokio::spawn(resending(&scope, "o-1".into(), 5, provider.clone()));
    tokio::task::yield_now().await;
    differs(&executor, "o-1", "beside one that waits").await;
    assert!(!call.is_finished() && !waiting.is_finished());
    executor.drain(Duration::ZERO).await;
    drop((call.await, waiting.await));
    assert_eq!(provider.performed(), 1);
}

async fn f23_another_input_is_a_mismatch_in_every_state(ledger: Arc<dyn Ledger>) {
    let executor = builder(&ledger).retry(quick().attempts_max(1)).build().expect("a valid set-up");
    for (act, state_then) in [
        (Act::Perform, State::Completed),
        (Act::Refuse, State::Completed),
        (Act::PerformAndLose, State::Escaped),
        (Act::NoConnection, State::Released),
    ] {
        let order = format!("o-{act:?}");
        let provider = Scripted::deduplicating([act]);
        let (receipt, scope) = receipted(&executor);
        drop(resending(&scope, order.clone(), 5, provider.clone()).await);
        assert_eq!(state(&executor, &receipt).await, state_then);
        differs(&executor, &order, &order).await;
        assert_eq!(state(&executor, &receipt).await, state_then, "the mismatch changed nothing");
    }
}

async fn f23_another_input_is_a_mismatch_after_a_lease_and_after_a_takeover(ledger: Arc<dyn Ledger>) {
    let executor = executor(&ledger);
    let provider = Scripted::deduplicating([Act::PerformAndLose, Act::Perform]);
    // Claimed by a process that has died since: the claim is left as it is.
    let (receipt, scope) = receipted(&executor);
    let probe = Scripted::deduplicating([]);
    resending(&scope, "o-3".into(), 5, probe.clone()).await.expect("to see its request");
    let template = record(&executor, &receipt).await;
    let orphan = effectual::ledger::ClaimRequest {
        id: effectual::EffectId::parse(format!("acme/{}", "0f".repeat(32))).expect("a valid id"),
        fingerprints: template.fingerprints.clone(),
        class: template.class,
        ..crate::claims::request(template.class, 1)
    };
    crate::claims::win(&ledger, &orphan).await;
    let other = |amount: u8| {
        let mut request = crate::claims::request(template.class, 600_000);
        request.id = orphan.id.clone();
        request.fingerprints = template.fingerprints.clone();
        request.resend_window_ms = Some(600_000);
        if amount != 5 {
            for digest in std::sync::Arc::make_mut(&mut request.fingerprints)
                .iter_mut()
                .filter(|digest| digest.name == "amount")
            {
                digest.digest = [amount; 32];
            }
        }
        request
    };
    let mismatch = async |when: &str| {
        let claim = crate::claims::claim(&ledger, &other(6)).await;
        assert!(matches!(claim, effectual::ledger::Claim::Mismatch { .. }), "{when}: {claim:?}");
    };
    mismatch("after the lease, or just before its end").await;
    until("the takeover", LIMIT, async || {
        mismatch("while it can be taken over").await;
        matches!(crate::claims::claim(&ledger, &other(5)).await, effectual::ledger::Claim::Won { .. })
    })
    .await;
    mismatch("after the takeover").await;

    // And the same through the executor: the second attempt has settled, the first one is in the history.
    let (receipt, scope) = receipted(&executor);
    resending(&scope, "o-4".into(), 5, provider.clone()).await.expect("the second attempt");
    assert_eq!(record(&executor, &receipt).await.attempt, 2);
    differs(&executor, "o-4", "after a second attempt").await;
    assert_eq!(provider.performed(), 1);
}
