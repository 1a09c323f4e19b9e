//! Outcomes that are kept in memory: what is answered without asking the ledger, and what never is.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use effectual::{
    ErrorKind, Executor, Ledger, OutcomeCache, RunId, RunScope, TenantScope, effect,
    ledger::{Forgot, RunPage, resolution::By},
};
use effectual_tests::{
    counting::Counting,
    on_each_ledger,
    scripted::{Act, Done, Scripted, ScriptedError},
    wait::until,
};

use crate::effects::*;

on_each_ledger![
    a_repeated_call_does_not_ask_the_ledger,
    f23_other_arguments_and_other_tenants_are_told_apart,
    two_executors_keep_what_each_learned,
    what_this_process_forgets_is_gone_at_once,
    what_another_process_forgets_is_gone_after_a_while,
    the_first_touch_by_another_run_is_stored_once,
    a_refusal_is_not_kept,
    a_draining_executor_answers_nothing,
    an_attached_effect_is_answered_without_its_body,
];

/// Far longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) fn by() -> By {
    By::new("the privacy job", "request 17").expect("who and why")
}

/// An executor that keeps outcomes, and the count of what it asks.
pub(crate) fn keeping(ledger: &Arc<dyn Ledger>, cache: OutcomeCache) -> (Executor, Counting) {
    let counting = Counting::new(ledger);
    let shared: Arc<dyn Ledger> = Arc::new(counting.clone());
    (builder(&shared).outcome_cache(cache).build().expect("a valid set-up"), counting)
}

async fn call(
    scope: &TenantScope,
    order: &str,
    provider: &Scripted,
) -> effectual::Result<Done, ScriptedError> {
    holding(scope, order.to_owned(), 5, provider.clone()).await
}

fn kind<T>(result: effectual::Result<T, ScriptedError>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

async fn a_repeated_call_does_not_ask_the_ledger(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let (executor, asked) = keeping(&ledger, OutcomeCache::new());
    let mut replays = Vec::new();
    for _ in 0..4 {
        let (receipt, scope) = receipted(&executor);
        let done = call(&scope, "o-1", &provider).await.expect("one outcome");
        assert_eq!(done.number, 1);
        assert!(receipt.effect_id().is_some());
        replays.push(receipt.replayed());
    }
    assert_eq!(replays, [false, true, true, true]);
    assert_eq!((provider.performed(), asked.claims(), asked.reads()), (1, 1, 0));
    // Off unless it is asked for.
    let counting = Counting::new(&ledger);
    let without = self::executor(&(Arc::new(counting.clone()) as Arc<dyn Ledger>));
    for _ in 0..3 {
        call(&receipted(&without).1, "o-1", &provider).await.expect("replayed");
    }
    assert_eq!(counting.claims(), 3);
}

async fn f23_other_arguments_and_other_tenants_are_told_apart(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let (executor, asked) = keeping(&ledger, OutcomeCache::new());
    let (_, scope) = receipted(&executor);
    call(&scope, "o-1", &provider).await.expect("performed");
    let error = holding(&scope, "o-1".into(), 6, provider.clone()).await.expect_err("another amount");
    assert_eq!((error.kind(), asked.claims()), (ErrorKind::Mismatch, 1));
    assert!(error.to_string().contains("`amount`"), "{error}");
    let other = executor.tenant("globex").expect("a tenant");
    let numbers = [&other, &other, &scope].map(|scope| call(scope, "o-1", &provider));
    for (done, number) in numbers.into_iter().zip([2, 2, 1]) {
        assert_eq!(done.await.expect("its tenant's own").number, number);
    }
    assert_eq!((provider.performed(), asked.claims()), (2, 2));
}

async fn two_executors_keep_what_each_learned(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let executors = [keeping(&ledger, OutcomeCache::new()), keeping(&ledger, OutcomeCache::new())];
    for _ in 0..3 {
        for (executor, _) in &executors {
            assert_eq!(call(&receipted(executor).1, "o-1", &provider).await.expect("one").number, 1);
        }
    }
    let asked = executors.each_ref().map(|(_, asked)| asked.claims());
    assert_eq!((provider.performed(), asked), (1, [1, 1]));
}

async fn what_this_process_forgets_is_gone_at_once(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let (executor, _) = keeping(&ledger, OutcomeCache::new());
    let (receipt, scope) = receipted(&executor);
    for _ in 0..2 {
        call(&scope, "o-1", &provider).await.expect("one outcome");
    }
    let id = receipt.effect_id().expect("an identity");
    assert_eq!(executor.forget(&id, &by()).await.expect("an answer"), Forgot::Forgotten);
    for _ in 0..2 {
        assert_eq!(kind(call(&scope, "o-1", &provider).await), Some(ErrorKind::Expired));
    }
    assert_eq!(provider.performed(), 1);
}

async fn what_another_process_forgets_is_gone_after_a_while(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let (executor, asked) = keeping(&ledger, OutcomeCache::new().kept_for(Duration::from_secs(1)));
    let (receipt, scope) = receipted(&executor);
    call(&scope, "o-1", &provider).await.expect("performed");
    let id = receipt.effect_id().expect("an identity");
    let another = self::executor(&ledger);
    assert_eq!(another.forget(&id, &by()).await.expect("an answer"), Forgot::Forgotten);
    until("the outcome is too old", LIMIT, async || {
        let ended = kind(call(&scope, "o-1", &provider).await);
        assert!(matches!(ended, None | Some(ErrorKind::Expired)), "{ended:?}");
        ended.is_some()
    })
    .await;
    assert_eq!((provider.performed(), asked.claims()), (1, 2), "the ledger was asked once it was too old");
}

async fn the_first_touch_by_another_run_is_stored_once(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let (executor, asked) = keeping(&ledger, OutcomeCache::new());
    let (_, scope) = receipted(&executor);
    let run = |scope: &TenantScope| {
        let id = RunId::mint(&"acme".parse().expect("a tenant"));
        (id.clone(), scope.run(id).expect("a run"))
    };
    let ((_, one), (two, second)) = (run(&scope), run(&scope));
    let mut claims = Vec::new();
    let call = |scope: &RunScope| holding(scope, "o-1".into(), 5, provider.clone());
    for scope in [&one, &one, &second, &second, &one, &second] {
        call(scope).await.expect("one outcome");
        claims.push(asked.claims());
    }
    assert_eq!(claims, [1, 1, 2, 2, 2, 2], "the run that performed it has met it; another is stored");
    let page = RunPage { after: None, rows_max: NonZeroUsize::MIN.saturating_add(9) };
    let rows = ledger.of_run(&two, &page).await.expect("a list");
    assert_eq!((rows.len(), provider.performed()), (1, 1));
}

async fn a_refusal_is_not_kept(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([Act::Refuse]);
    let (executor, _) = keeping(&ledger, OutcomeCache::new());
    let (receipt, scope) = receipted(&executor);
    for _ in 0..2 {
        assert_eq!(kind(call(&scope, "o-1", &provider).await), Some(ErrorKind::Refused));
    }
    // By another process, which this one does not hear of.
    let another = self::executor(&ledger);
    another.reopen(&receipt.effect_id().expect("an identity"), &by()).await.expect("opened again");
    assert_eq!(call(&scope, "o-1", &provider).await.expect("performed").number, 1);
}

async fn a_draining_executor_answers_nothing(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let (executor, _) = keeping(&ledger, OutcomeCache::new());
    let (_, scope) = receipted(&executor);
    call(&scope, "o-1", &provider).await.expect("performed");
    executor.drain(LIMIT).await;
    assert_eq!(kind(call(&scope, "o-1", &provider).await), Some(ErrorKind::Draining));
}

#[effect(keying = business_identity, attached)]
async fn lent_again(
    cx: &effectual::EffectContext,
    #[key] order: &str,
    #[skip] provider: &Scripted,
) -> effectual::Result<Done, ScriptedError> {
    Ok(provider.send(cx, order).await?)
}

async fn an_attached_effect_is_answered_without_its_body(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let (executor, asked) = keeping(&ledger, OutcomeCache::new());
    let mut replays = Vec::new();
    for _ in 0..3 {
        let (receipt, scope) = receipted(&executor);
        assert_eq!(lent_again(&scope, "o-1", &provider).await.expect("one outcome").number, 1);
        replays.push(receipt.replayed());
    }
    assert_eq!(replays, [false, true, true]);
    assert_eq!((provider.performed(), asked.claims()), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_bounded_and_what_is_used_least_goes_first() {
    let ledger = effectual_tests::ledgers::memory().ledger;
    let provider = Scripted::forgetful([]);
    let (executor, asked) = keeping(&ledger, OutcomeCache::new().effects_max(2));
    let (_, scope) = receipted(&executor);
    for (order, claims) in [("a", 1), ("b", 2), ("a", 2), ("c", 3), ("a", 3), ("b", 4), ("a", 4), ("c", 5)] {
        call(&scope, order, &provider).await.expect("one outcome");
        assert_eq!(asked.claims(), claims, "after {order}");
    }
    // Room for one, and not for a large one.
    let (executor, asked) = keeping(&ledger, OutcomeCache::new().bytes_max(3_000));
    let (_, scope) = receipted(&executor);
    let large = "x".repeat(3_000);
    for (order, claims) in
        [("a", 1), ("a", 1), (&large, 2), ("a", 2), (&large, 3), ("b", 4), ("c", 5), ("a", 6)]
    {
        call(&scope, order, &provider).await.expect("one outcome");
        assert_eq!(asked.claims(), claims, "after one of {}", order.len());
    }
}

#[tokio::test]
async fn a_cache_that_keeps_nothing_is_refused() {
    let ledger = effectual_tests::ledgers::memory().ledger;
    let hour = Duration::from_secs(3600);
    for (cache, names) in [
        (OutcomeCache::new().effects_max(0), "effects_max"),
        (OutcomeCache::new().bytes_max(0), "bytes_max"),
        (OutcomeCache::new().kept_for(Duration::ZERO), "kept_for"),
        (OutcomeCache::new().kept_for(hour + Duration::from_millis(1)), "kept_for"),
    ] {
        let error = builder(&ledger).outcome_cache(cache).build().expect_err("it makes no sense");
        assert!(error.to_string().contains(&format!("`OutcomeCache::{names}`")), "{error}");
    }
    builder(&ledger).outcome_cache(OutcomeCache::new().kept_for(hour)).build().expect("a valid set-up");
}
