//! Leave to send.

use std::{sync::Arc, time::Duration};

use effectual::{EffectContext, ErrorKind, Ledger, SendRefused, effect};
use effectual_tests::{
    on_each_ledger,
    scripted::{Scripted, ScriptedError},
};

use crate::effects::*;

on_each_ledger![
    one_request_an_attempt,
    f11_a_re_send_that_differs_is_refused_before_the_network,
    a_look_up_does_not_send,
];

#[effect(keying = business_identity)]
async fn sending_twice(
    cx: &EffectContext,
    #[key] order: u64,
    #[skip] provider: Scripted,
) -> effectual::Result<(), ScriptedError> {
    let _ = (order, provider);
    let _first = cx.begin_send([1; 32]).map_err(ScriptedError::from)?;
    assert_eq!(cx.begin_send([1; 32]).expect_err("a second request"), SendRefused::SecondSend);
    Ok(())
}

async fn one_request_an_attempt(ledger: Arc<dyn Ledger>) {
    let executor = executor(&ledger);
    let (_, scope) = receipted(&executor);
    sending_twice(&scope, 1, Scripted::default()).await.expect("the first was let through");
}

/// Sends bytes that differ with each attempt, as a body with a timestamp does.
#[effect(keying = business_identity, provider = Windowed)]
async fn restless(
    cx: &EffectContext,
    #[key] order: u64,
    #[skip] provider: Scripted,
) -> effectual::Result<(), ScriptedError> {
    let _ = (order, cx.idempotency_key());
    let digest = [u8::try_from(cx.attempt()).unwrap_or(0); 32];
    let _permit = cx.begin_send(digest).map_err(ScriptedError::from)?;
    provider.send(cx, "restless").await?;
    Err(ScriptedError::Lost)?
}

async fn f11_a_re_send_that_differs_is_refused_before_the_network(ledger: Arc<dyn Ledger>) {
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    let provider = Scripted::deduplicating([]);
    let error = restless(&scope, 1, provider.clone()).await.expect_err("in doubt");
    assert_eq!(error.kind(), ErrorKind::Escaped);
    assert_eq!(error.error(), Some(&ScriptedError::NotSent(SendRefused::ChangedRequest)));
    assert_eq!((provider.performed(), provider.keys().len()), (1, 1));
    let doubt = record(&executor, &receipt).await.doubt.expect("still in doubt");
    assert_eq!((doubt.attempt, doubt.send_digest), (1, Some([1; 32])));
}

#[effect(keying = business_identity, on_unknown = reconcile(acting))]
async fn looked_up(
    cx: &EffectContext,
    #[key] order: u64,
    #[skip] provider: Scripted,
) -> effectual::Result<(), ScriptedError> {
    let _ = order;
    provider.send(cx, "looked up").await?;
    Err(ScriptedError::Lost)?
}

async fn acting(
    cx: &EffectContext,
    _order: u64,
    _provider: Scripted,
) -> Result<effectual::Found<(), ScriptedError>, ScriptedError> {
    assert_eq!(cx.send_permit().expect_err("a look-up"), SendRefused::LookUp);
    Ok(effectual::Found::Done(()))
}

async fn a_look_up_does_not_send(ledger: Arc<dyn Ledger>) {
    let executor = executor(&ledger);
    let (_, scope) = receipted(&executor);
    looked_up(&scope, 1, Scripted::default()).await.expect("found");
}

#[effect(keying = business_identity)]
async fn slow_to_send(
    cx: &EffectContext,
    #[key] order: u64,
    #[skip] short: Duration,
) -> effectual::Result<u32, ScriptedError> {
    let _ = order;
    if cx.attempt() == 1 {
        let mut ticks = tokio::time::interval(Duration::from_millis(5));
        while cx.remaining_lease() >= short {
            ticks.tick().await;
        }
    }
    let _permit = cx.send_permit().map_err(ScriptedError::from)?;
    Ok(cx.attempt())
}

/// A ledger that stores claims and does not answer renewals: the lease runs out while the body prepares its request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_permit_refuses_when_the_lease_was_not_renewed() {
    let ledger: Arc<dyn Ledger> = Arc::new(crate::effects::NoRenewals::default());
    let executor = builder(&ledger)
        .attempt_timeout(Duration::from_secs(2))
        .margin(Duration::from_millis(50))
        .lease(Duration::from_millis(2_200))
        .build()
        .expect("a valid set-up");
    let (receipt, scope) = receipted(&executor);
    // With less than timeout and margin left, a request could outlast the lease.
    let call = slow_to_send(&scope, 1, Duration::from_millis(2_050));
    let attempt = call.await.expect("the next attempt has a lease of its own");
    assert_eq!(attempt, 2);
    let known = history(&executor, &receipt).await;
    assert_eq!(known.closed[0].end.verdict, effectual::ledger::record::AttemptVerdict::NotPerformed);
}
