//! What an unknown outcome leads to, by class.

use std::{sync::Arc, time::Duration};

use effectual::{ErrorKind, Ledger, ProviderCalled, ledger::record::State};
use effectual_tests::{
    on_each_ledger,
    scripted::{Act, Scripted, ScriptedError},
};

use crate::effects::*;

on_each_ledger![
    resend_sends_the_same_key_until_it_is_answered,
    f14_hold_never_sends_again,
    rerun_performs_again,
    reconcile_takes_what_was_performed,
    reconcile_performs_what_is_absent,
    f08_a_look_up_that_cannot_tell_changes_nothing,
    a_body_that_took_no_key_is_held,
    f13_no_resend_outside_the_window,
];

async fn resend_sends_the_same_key_until_it_is_answered(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::deduplicating([Act::PerformAndLose, Act::PerformAndLose]);
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    let done = resending(&scope, "o-1".into(), 5, provider.clone()).await.expect("answered in the end");
    assert_eq!((done.number, provider.performed()), (1, 1));
    let keys = provider.keys();
    assert_eq!(keys.len(), 3);
    assert!(keys.iter().all(|key| *key == keys[0]), "one key: {keys:?}");
    let history = history(&executor, &receipt).await;
    assert_eq!((history.effect.state, history.effect.attempt), (State::Completed, 3));
    assert_eq!(history.closed.len(), 2);
    assert_eq!(history.effect.doubt, None);
}

async fn f14_hold_never_sends_again(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([Act::PerformAndLose]);
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    for _ in 0..3 {
        let error = holding(&scope, "o-2".into(), 5, provider.clone()).await.expect_err("unknown");
        assert_eq!(error.kind(), ErrorKind::Escaped);
        assert_eq!(error.provider_called(), ProviderCalled::Maybe);
    }
    assert_eq!(provider.performed(), 1);
    assert_eq!(state(&executor, &receipt).await, State::Escaped);
}

async fn rerun_performs_again(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([Act::PerformAndLose]);
    let executor = executor(&ledger);
    let (_, scope) = receipted(&executor);
    let done = rerunning(&scope, "o-3".into(), 5, provider.clone()).await.expect("the second time");
    assert_eq!((done.number, provider.performed()), (2, 2));
}

async fn reconcile_takes_what_was_performed(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([Act::PerformAndLose]);
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    let done = reconciling(&scope, "o-4".into(), 5, provider.clone()).await.expect("found");
    assert_eq!((done.number, provider.performed()), (1, 1));
    let record = record(&executor, &receipt).await;
    assert_eq!((record.state, record.attempt, record.doubt), (State::Completed, 1, None));
}

async fn reconcile_performs_what_is_absent(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([Act::LoseOnly]);
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    let done = reconciling(&scope, "o-5".into(), 5, provider.clone()).await.expect("performed then");
    assert_eq!((done.number, provider.performed()), (1, 1));
    let history = history(&executor, &receipt).await;
    assert_eq!((history.effect.attempt, history.closed.len()), (2, 1));
}

async fn f08_a_look_up_that_cannot_tell_changes_nothing(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([Act::PerformAndLose]);
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    for _ in 0..2 {
        let error =
            asking_in_vain(&scope, "o-6".into(), 5, provider.clone()).await.expect_err("nobody can tell");
        assert_eq!(error.kind(), ErrorKind::Escaped);
    }
    assert_eq!(provider.performed(), 1);
    let record = record(&executor, &receipt).await;
    assert_eq!((record.state, record.attempt), (State::Escaped, 1));
}

/// Declared `resend`, but the body never took the key: nothing at the provider could recognise a second request.
#[effectual::effect(keying = business_identity, provider = Windowed)]
async fn keyless(
    cx: &effectual::EffectContext,
    #[key] order: String,
    #[skip] sent: Arc<std::sync::atomic::AtomicU32>,
) -> effectual::Result<(), ScriptedError> {
    let _permit = cx.send_permit().map_err(ScriptedError::from)?;
    sent.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    let _ = order;
    Err(ScriptedError::Lost)?
}

async fn a_body_that_took_no_key_is_held(ledger: Arc<dyn Ledger>) {
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    let sent = Arc::default();
    for _ in 0..2 {
        let error = keyless(&scope, "o-7".into(), Arc::clone(&sent)).await.expect_err("unknown");
        assert_eq!(error.kind(), ErrorKind::Escaped);
    }
    assert_eq!(sent.load(std::sync::atomic::Ordering::SeqCst), 1);
    let doubt = record(&executor, &receipt).await.doubt.expect("in doubt");
    assert_eq!(doubt.class, effectual::RecoveryClass::Hold);
}

async fn f13_no_resend_outside_the_window(ledger: Arc<dyn Ledger>) {
    use effectual::Provider as _;
    let mut profile = Windowed::profile();
    profile.window_s = Some(1);
    // The margin of a re-send is the attempt's timeout, 300 ms: 700 ms of the window are left.
    let provider = Scripted::forgetful(std::iter::repeat_n(Act::PerformAndLose, 1));
    let once = quick().attempts_max(1);
    let executor = builder(&ledger).profile(profile).retry(once).build().expect("a valid set-up");
    let (receipt, scope) = receipted(&executor);
    let first = resending(&scope, "o-8".into(), 5, provider.clone()).await.expect_err("one attempt, lost");
    assert_eq!(first.kind(), ErrorKind::Escaped);
    let since = record(&executor, &receipt).await.doubt.expect("in doubt").since;
    effectual_tests::wait::until("the window to pass", Duration::from_secs(10), async || {
        now_ms() > since + 1_000
    })
    .await;
    let later =
        resending(&scope, "o-8".into(), 5, provider.clone()).await.expect_err("too late to send again");
    assert_eq!(later.kind(), ErrorKind::Escaped);
    assert_eq!(provider.performed(), 1);
}

fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_millis()).expect("before the year 292 million")
}
