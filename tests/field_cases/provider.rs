//! What is asked of a provider, and what is made of its answers.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use effectual::{EffectContext, ErrorKind, Found, Ledger, SendRefused, effect, ledger::record::State};
use effectual_tests::{
    on_each_ledger,
    scripted::{Act, Done, PANIC_CANARY, Scripted, ScriptedError},
};

use crate::effects::*;

on_each_ledger![
    f08_a_second_call_asks_first_and_follows_the_answer,
    f40_a_panic_before_the_request_is_unknown_too,
    f52_a_changed_request_never_reaches_the_provider,
    f53_a_replay_at_the_provider_is_marked,
    f54_three_attempts_present_one_key,
];

/// What the look-up says: 0 not known, 1 absent, 2 what the provider has.
type Says = Arc<AtomicU32>;

#[effect(keying = business_identity, on_unknown = reconcile(as_told))]
async fn capture(
    cx: &EffectContext,
    #[key] order: String,
    #[skip] provider: Scripted,
    #[skip] says: Says,
) -> effectual::Result<Done, ScriptedError> {
    let _ = says;
    Ok(provider.send(cx, &order).await?)
}

async fn as_told(
    cx: &EffectContext,
    _order: String,
    provider: Scripted,
    says: Says,
) -> Result<Found<Done, ScriptedError>, ScriptedError> {
    Ok(match says.load(Ordering::SeqCst) {
        0 => Found::Unknown,
        1 => Found::Absent,
        _ => provider.find(cx.idempotency_key()).map_or(Found::Absent, Found::Done),
    })
}

async fn f08_a_second_call_asks_first_and_follows_the_answer(ledger: Arc<dyn Ledger>) {
    let executor = executor(&ledger);
    for (act, answer, state_then, performed) in [
        (Act::PerformAndLose, 0, State::Escaped, 1),
        (Act::PerformAndLose, 2, State::Completed, 1),
        (Act::LoseOnly, 1, State::Completed, 1),
    ] {
        let (provider, says) = (Scripted::forgetful([act]), Says::default());
        let (receipt, scope) = receipted(&executor);
        let call = || capture(&scope, format!("o-{answer}"), provider.clone(), says.clone());
        assert_eq!(call().await.expect_err("nobody can tell").kind(), ErrorKind::Escaped);
        let sent = provider.keys().len();
        says.store(answer, Ordering::SeqCst);
        let second = call().await;
        assert_eq!(state(&executor, &receipt).await, state_then, "answer {answer}");
        match second {
            Ok(done) => assert_eq!(done.number, 1, "answer {answer}"),
            Err(error) => assert_eq!((error.kind(), answer), (ErrorKind::Escaped, 0)),
        }
        let sent_again = provider.keys().len() - sent;
        assert_eq!(
            (provider.performed(), sent_again),
            (performed, usize::from(answer == 1)),
            "answer {answer}"
        );
    }
}

#[effect(keying = business_identity)]
async fn panicking(cx: &EffectContext, #[key] order: String) -> effectual::Result<(), ScriptedError> {
    let _ = (cx.idempotency_key(), order);
    panic!("{PANIC_CANARY}")
}

async fn f40_a_panic_before_the_request_is_unknown_too(ledger: Arc<dyn Ledger>) {
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    for _ in 0..2 {
        let error = panicking(&scope, "o-1".into()).await.expect_err("unknown");
        assert_eq!(error.kind(), ErrorKind::Escaped);
        assert!(!format!("{error} {error:?}").contains(PANIC_CANARY));
    }
    assert_eq!(state(&executor, &receipt).await, State::Escaped);
    holding(&scope, "o-1b".into(), 5, Scripted::forgetful([])).await.expect("the executor lives");
}

/// Writes metadata into its request that is not part of what was asked.
#[effect(keying = business_identity, provider = Windowed)]
async fn with_metadata(
    cx: &EffectContext,
    #[key] order: String,
    #[skip] metadata: u8,
    #[skip] provider: Scripted,
) -> effectual::Result<Done, ScriptedError> {
    let key = cx.idempotency_key().to_owned();
    drop(cx.begin_send([metadata; 32]).map_err(ScriptedError::from)?);
    Ok(provider.send(cx, &format!("{order} {key}")).await?)
}

async fn f52_a_changed_request_never_reaches_the_provider(ledger: Arc<dyn Ledger>) {
    let executor = builder(&ledger).retry(quick().attempts_max(1)).build().expect("a valid set-up");
    let provider = Scripted::deduplicating([Act::PerformAndLose]);
    let (receipt, scope) = receipted(&executor);
    let call = |metadata| with_metadata(&scope, "o-1".into(), metadata, provider.clone());
    assert_eq!(call(1).await.expect_err("lost").kind(), ErrorKind::Escaped);
    let changed = call(2).await.expect_err("other bytes under the same key");
    assert_eq!(changed.error(), Some(&ScriptedError::NotSent(SendRefused::ChangedRequest)));
    assert_eq!((changed.kind(), provider.keys().len()), (ErrorKind::Escaped, 1), "the doubt stays");
    assert_eq!(state(&executor, &receipt).await, State::Escaped);
    call(1).await.expect("the same bytes are sent again, and recognised");
    assert_eq!(provider.performed(), 1);
}

#[effect(keying = business_identity, provider = Windowed)]
async fn marked(
    cx: &EffectContext,
    #[key] order: String,
    #[skip] provider: Scripted,
) -> effectual::Result<Done, ScriptedError> {
    let done = provider.send(cx, &order).await?;
    if provider.keys().len() > 1 {
        cx.mark_provider_replay();
    }
    Ok(done)
}

async fn f53_a_replay_at_the_provider_is_marked(ledger: Arc<dyn Ledger>) {
    let executor = executor(&ledger);
    for (order, script, replayed) in [("o-1", vec![], false), ("o-2", vec![Act::PerformAndLose], true)] {
        let provider = Scripted::deduplicating(script);
        let (receipt, scope) = receipted(&executor);
        marked(&scope, order.into(), provider.clone()).await.expect("performed");
        let outcome = record(&executor, &receipt).await.outcome.expect("an outcome");
        assert_eq!((outcome.provider_replay, provider.performed()), (replayed, 1), "{order}");
        assert!(!receipt.replayed(), "the provider's replay is not the ledger's");
    }
}

async fn f54_three_attempts_present_one_key(ledger: Arc<dyn Ledger>) {
    let executor = executor(&ledger);
    let provider =
        Scripted::deduplicating([Act::NoConnection, Act::PerformAndLose, Act::TooBusy(None), Act::Perform]);
    let (receipt, scope) = receipted(&executor);
    resending(&scope, "o-1".into(), 5, provider.clone()).await.expect("the fourth attempt");
    let keys = provider.keys();
    assert_eq!((keys.len(), provider.performed()), (4, 1));
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    let known = history(&executor, &receipt).await;
    assert_eq!(
        (known.closed.len() + 1, &*known.effect.provider_key),
        (4, keys[0].as_str()),
        "each is an attempt"
    );
}
