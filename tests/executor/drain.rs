//! Ending the work.

use std::{sync::Arc, time::Duration};

use effectual::{EffectContext, ErrorKind, Ledger, SendRefused, effect, ledger::record::State};
use effectual_tests::{
    on_each_ledger,
    scripted::{Act, Scripted, ScriptedError},
    wait::until,
};
use tokio::sync::Notify;

use crate::effects::*;

on_each_ledger![
    a_drain_waits_for_running_bodies_and_takes_no_new_ones,
    f36_at_the_deadline_what_may_have_acted_is_escaped,
    a_backoff_ends_with_the_drain,
];

#[effect(keying = business_identity)]
async fn gated(
    cx: &EffectContext,
    #[key] order: u64,
    #[skip] provider: Scripted,
    #[skip] gate: Arc<Notify>,
) -> effectual::Result<u32, ScriptedError> {
    let done = provider.send(cx, &order.to_string()).await?;
    gate.notified().await;
    Ok(done.number)
}

async fn a_drain_waits_for_running_bodies_and_takes_no_new_ones(ledger: Arc<dyn Ledger>) {
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    let (provider, gate) = (Scripted::forgetful([]), Arc::new(Notify::new()));
    let call = tokio::spawn(gated(&scope, 1, provider.clone(), gate.clone()));
    provider.next_arrival().await;
    let drain = tokio::spawn({
        let executor = executor.clone();
        async move { executor.drain(Duration::from_secs(20)).await }
    });
    until("new effects to be refused", Duration::from_secs(10), async || {
        let refused =
            holding(&receipted(&executor).1, "o-1".into(), 5, Scripted::forgetful([Act::Refuse])).await;
        refused.expect_err("refused by the provider or by the drain").kind() == ErrorKind::Draining
    })
    .await;
    gate.notify_one();
    assert_eq!(call.await.expect("no panic").expect("its outcome"), 1);
    assert_eq!(drain.await.expect("no panic").unfinished, 0);
    assert_eq!(state(&executor, &receipt).await, State::Completed);
}

/// Acts, and asks for another permit when it is told to stop.
#[effect(keying = business_identity)]
async fn endless(
    cx: &EffectContext,
    #[key] order: u64,
    #[skip] provider: Scripted,
    #[skip] late: Arc<std::sync::Mutex<Option<SendRefused>>>,
) -> effectual::Result<(), ScriptedError> {
    struct AsksLate<'a>(&'a EffectContext, Arc<std::sync::Mutex<Option<SendRefused>>>);
    impl Drop for AsksLate<'_> {
        fn drop(&mut self) {
            *self.1.lock().expect("not poisoned") = self.0.send_permit().err();
        }
    }
    let _asks = AsksLate(cx, late);
    provider.send(cx, &order.to_string()).await?;
    std::future::pending().await
}

async fn f36_at_the_deadline_what_may_have_acted_is_escaped(ledger: Arc<dyn Ledger>) {
    let executor = builder(&ledger)
        .attempt_timeout(Duration::from_secs(30))
        .lease(Duration::from_secs(40))
        .build()
        .expect("a valid set-up");
    let (receipt, scope) = receipted(&executor);
    let (provider, late) = (Scripted::forgetful([]), Arc::default());
    let call = tokio::spawn(endless(&scope, 2, provider.clone(), Arc::clone(&late)));
    provider.next_arrival().await;
    let drained = executor.drain(Duration::from_millis(50)).await;
    assert_eq!((drained.unfinished, drained.unwritten), (1, 0));
    assert_eq!(call.await.expect("no panic").expect_err("unknown").kind(), ErrorKind::Escaped);
    assert_eq!(state(&executor, &receipt).await, State::Escaped);
    assert_eq!(*late.lock().expect("not poisoned"), Some(SendRefused::Draining));
    // Another process finds it escaped, and does not perform it again.
    let next = crate::effects::executor(&ledger);
    let error = endless(&receipted(&next).1, 2, provider.clone(), Arc::default()).await.expect_err("held");
    assert_eq!((error.kind(), provider.performed()), (ErrorKind::Escaped, 1));
}

async fn a_backoff_ends_with_the_drain(ledger: Arc<dyn Ledger>) {
    let hour = Duration::from_secs(3600);
    let retry = quick().base(hour).delay_max(hour).elapsed_max(hour * 10);
    let executor = builder(&ledger).retry(retry).build().expect("a valid set-up");
    let (receipt, scope) = receipted(&executor);
    let provider = Scripted::forgetful([Act::NoConnection]);
    let call = tokio::spawn(holding(&scope, "o-3".into(), 5, provider.clone()));
    provider.next_arrival().await;
    assert_eq!(executor.drain(Duration::from_secs(20)).await.unfinished, 0);
    assert_eq!(call.await.expect("no panic").expect_err("not performed").kind(), ErrorKind::Failed);
    assert_eq!(state(&executor, &receipt).await, State::Released);
}
