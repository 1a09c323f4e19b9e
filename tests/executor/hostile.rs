//! Bodies, arguments and callers that misbehave.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use effectual::{EffectContext, ErrorKind, Found, Ledger, Nested as _, effect, ledger::record::State};
use effectual_tests::{
    on_each_ledger,
    scripted::{Act, Scripted, ScriptedError},
};
use serde::{Deserialize, Serialize};

use crate::effects::*;

on_each_ledger![
    an_accepted_effect_is_not_submitted_again_whatever_its_body_says,
    an_effect_that_calls_itself_ends,
    a_rerun_may_send_something_else,
    a_call_that_is_polled_late_has_its_whole_time,
    a_panic_where_a_look_up_clones_its_arguments_is_no_answer,
    a_panic_where_the_outcome_is_encoded_is_unknown,
    a_panic_where_an_argument_is_dropped_loses_nothing,
    the_longest_durations_are_taken,
];

#[effect(keying = business_identity)]
async fn queued(
    cx: &EffectContext,
    #[key] order: u64,
    #[skip] provider: Scripted,
) -> effectual::Result<u32, ScriptedError> {
    let done = provider.send(cx, &order.to_string()).await?;
    cx.accepted("job-1", Duration::from_secs(60)).await.expect("stored");
    assert_eq!(done.number, 1);
    Err(ScriptedError::TooBusy { delay: None })?
}

async fn an_accepted_effect_is_not_submitted_again_whatever_its_body_says(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let executor = executor(&ledger);
    let (_, scope) = receipted(&executor);
    for _ in 0..2 {
        let error = queued(&scope, 1, provider.clone()).await.expect_err("not finished");
        assert_eq!((error.kind(), error.handle()), (ErrorKind::Accepted, Some("job-1")));
    }
    assert_eq!(provider.performed(), 1);
}

#[effect(keying = business_identity, wait = "100ms")]
async fn recursive(
    cx: &EffectContext,
    #[key] order: u64,
    #[skip] ran: Arc<AtomicU32>,
) -> effectual::Result<u32, ScriptedError> {
    ran.fetch_add(1, Ordering::SeqCst);
    let scope = cx;
    let inner: effectual::Call<u32, ScriptedError> = recursive(scope, order, ran.clone());
    inner.await.nested()
}

async fn an_effect_that_calls_itself_ends(ledger: Arc<dyn Ledger>) {
    let executor = builder(&ledger)
        .attempt_timeout(Duration::from_secs(10))
        .lease(Duration::from_secs(30))
        .build()
        .expect("a valid set-up");
    let (receipt, scope) = receipted(&executor);
    let ran = Arc::default();
    let call = recursive(&scope, 1, Arc::clone(&ran));
    let error =
        tokio::time::timeout(Duration::from_secs(8), call).await.expect("an end").expect_err("no value");
    assert_eq!((error.kind(), ran.load(Ordering::SeqCst)), (ErrorKind::Escaped, 1));
    assert_eq!(state(&executor, &receipt).await, State::Escaped);
}

/// Sends bytes that differ with each attempt, and accepts repeats.
#[effect(keying = business_identity, on_unknown = rerun)]
async fn fickle(
    cx: &EffectContext,
    #[key] order: u64,
    #[skip] provider: Scripted,
) -> effectual::Result<u32, ScriptedError> {
    let _permit =
        cx.begin_send([u8::try_from(cx.attempt()).unwrap_or(0); 32]).map_err(ScriptedError::from)?;
    Ok(provider.send(cx, &order.to_string()).await?.number)
}

async fn a_rerun_may_send_something_else(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([Act::PerformAndLose]);
    let executor = executor(&ledger);
    let (_, scope) = receipted(&executor);
    assert_eq!(fickle(&scope, 1, provider.clone()).await.expect("performed again"), 2);
}

async fn a_call_that_is_polled_late_has_its_whole_time(ledger: Arc<dyn Ledger>) {
    let elapsed = Duration::from_secs(2);
    let retry = quick().elapsed_max(elapsed);
    let executor = builder(&ledger).retry(retry).build().expect("a valid set-up");
    let provider = Scripted::forgetful([Act::NoConnection]);
    let call = holding(&receipted(&executor).1, "o-1".into(), 5, provider.clone());
    let made = std::time::Instant::now();
    effectual_tests::wait::until("a caller that takes its time", elapsed * 4, async || {
        made.elapsed() > elapsed
    })
    .await;
    call.await.expect("the second attempt connects");
}

/// Cannot be cloned once the fuse has burnt.
#[derive(Debug)]
struct Fused(Arc<AtomicU32>);

impl Clone for Fused {
    fn clone(&self) -> Self {
        assert_ne!(self.0.fetch_sub(1, Ordering::SeqCst), 1, "the fuse has burnt");
        Self(self.0.clone())
    }
}

#[effect(keying = business_identity, on_unknown = reconcile(cannot_say))]
async fn fused(
    cx: &EffectContext,
    #[key] order: u64,
    #[skip] provider: Scripted,
    #[skip] fuse: Fused,
) -> effectual::Result<u32, ScriptedError> {
    let _ = fuse;
    Ok(provider.send(cx, &order.to_string()).await?.number)
}

async fn cannot_say(
    _cx: &EffectContext,
    _order: u64,
    _provider: Scripted,
    _fuse: Fused,
) -> Result<Found<u32, ScriptedError>, ScriptedError> {
    Ok(Found::Unknown)
}

async fn a_panic_where_a_look_up_clones_its_arguments_is_no_answer(ledger: Arc<dyn Ledger>) {
    let executor = executor(&ledger);
    for clones in 1..=6 {
        let provider = Scripted::forgetful([Act::PerformAndLose]);
        let (receipt, scope) = receipted(&executor);
        // The function itself may panic where the call is made: then there is no call.
        let fuse = Fused(Arc::new(AtomicU32::new(clones)));
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            fused(&scope, u64::from(clones), provider.clone(), fuse)
        }));
        let Ok(call) = made else { continue };
        let error = call.await.expect_err("no answer");
        assert_eq!(error.kind(), ErrorKind::Escaped, "{error}");
        assert!(!error.to_string().contains("runtime"), "{error}");
        assert_eq!(state(&executor, &receipt).await, State::Escaped);
        assert!(provider.performed() <= 1);
    }
}

/// Panics where it is encoded.
#[derive(Debug, Deserialize)]
struct Explosive;

impl Serialize for Explosive {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("not to be encoded")
    }
}

#[effect(keying = business_identity)]
async fn explosive(
    _cx: &EffectContext,
    #[key] order: u64,
    #[skip] ran: Arc<AtomicU32>,
) -> effectual::Result<Explosive, ScriptedError> {
    let _ = (order, ran.fetch_add(1, Ordering::SeqCst));
    Ok(Explosive)
}

async fn a_panic_where_the_outcome_is_encoded_is_unknown(ledger: Arc<dyn Ledger>) {
    let executor = executor(&ledger);
    let ran = Arc::default();
    for _ in 0..2 {
        let error = explosive(&receipted(&executor).1, 1, Arc::clone(&ran)).await.expect_err("no value");
        assert_eq!(error.kind(), ErrorKind::Escaped);
    }
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

/// Panics when its last copy is dropped, if nothing else panics.
#[derive(Debug, Clone)]
struct Mine(Arc<()>);

impl Drop for Mine {
    fn drop(&mut self) {
        assert!(Arc::strong_count(&self.0) > 2 || std::thread::panicking(), "the last copy is dropped");
    }
}

#[effect(keying = business_identity)]
async fn mined(
    cx: &EffectContext,
    #[key] order: u64,
    #[skip] provider: Scripted,
    #[skip] mine: Mine,
) -> effectual::Result<u32, ScriptedError> {
    let number = provider.send(cx, &order.to_string()).await?.number;
    drop(mine);
    Ok(number)
}

async fn a_panic_where_an_argument_is_dropped_loses_nothing(ledger: Arc<dyn Ledger>) {
    let executor = executor(&ledger);
    let provider = Scripted::forgetful([]);
    let held = Arc::new(());
    let (receipt, scope) = receipted(&executor);
    let mine = Mine(held.clone());
    // Dropped with the call, after the outcome is stored.
    drop(mined(&scope, 1, provider.clone(), mine).await);
    assert_eq!(state(&executor, &receipt).await, State::Completed);
    let harmless = Mine(Arc::new(()));
    let more = [harmless.0.clone(), harmless.0.clone(), harmless.0.clone()];
    assert_eq!(mined(&scope, 1, provider.clone(), harmless).await.expect("replayed"), 1);
    assert_eq!((provider.performed(), more.len()), (1, 3));
}

async fn the_longest_durations_are_taken(ledger: Arc<dyn Ledger>) {
    let executor = effectual::Executor::builder(ledger.clone())
        .attempt_timeout(Duration::from_secs(3_600))
        .lease(Duration::MAX)
        .wait(Duration::MAX)
        .retention(Duration::MAX)
        .retry(
            quick()
                .base(Duration::ZERO)
                .delay_max(Duration::MAX)
                .elapsed_max(Duration::MAX)
                .attempts_max(u32::MAX),
        )
        .build()
        .expect("a valid set-up");
    let provider = Scripted::forgetful([Act::NoConnection, Act::NoConnection]);
    let calls: Vec<_> = (0..4)
        .map(|_| tokio::spawn(holding(&receipted(&executor).1, "o-1".into(), 5, provider.clone())))
        .collect();
    for call in calls {
        assert_eq!(call.await.expect("no panic").expect("performed or replayed").number, 1);
    }
    let provider = Scripted::forgetful([Act::TooBusy(Some(Duration::MAX))]);
    let once = builder(&ledger).build().expect("a valid set-up");
    let error =
        holding(&receipted(&once).1, "o-2".into(), 5, provider.clone()).await.expect_err("much later");
    assert_eq!(error.kind(), ErrorKind::RetryLater);
    let error = holding(&receipted(&once).1, "o-2".into(), 5, provider.clone()).await.expect_err("too early");
    assert_eq!((error.kind(), provider.keys().len()), (ErrorKind::RetryLater, 1));
}
