//! An operator resolves what is in doubt and opens refusals again, and the next call follows. Counted at the provider.

use std::{sync::Arc, time::Duration};

use effectual::{
    By, EffectId, ErrorKind, Executor, Ledger, ProviderCalled, Resolution, ResolveError, ResolveErrorKind,
    ledger::{EffectRecord, audit::OperatorAction, record::State},
};
use effectual_tests::{
    on_each_ledger,
    scripted::{Act, Done, Scripted},
    wait::for_value,
};
use tokio::task::JoinSet;

use crate::effects::*;

on_each_ledger![
    f38_an_effect_resolved_as_done_replays_its_value,
    f38_an_effect_resolved_as_refused_says_so_and_why,
    f38_what_never_happened_is_performed_by_the_next_call,
    f38_a_live_claim_is_not_resolved,
    f57_calls_after_a_resolution_are_one_performance,
    a_refusal_that_is_opened_again_is_performed_by_the_next_call,
    a_decision_on_an_older_state_changes_nothing,
    a_value_of_another_type_is_never_performed_again,
];

fn ana() -> By {
    By::new("ana", "looked at the provider").expect("who and why")
}

/// A call under `hold` whose answer is lost.
async fn escaped(ledger: &Arc<dyn Ledger>, order: &str, act: Act) -> (Scripted, Executor, EffectId) {
    let provider = Scripted::forgetful([act]);
    let executor = executor(ledger);
    let (receipt, scope) = receipted(&executor);
    let error = holding(&scope, order.into(), 5, provider.clone()).await.expect_err("its answer is lost");
    assert_eq!(error.kind(), ErrorKind::Escaped, "{error}");
    (provider, executor, receipt.effect_id().expect("an identity"))
}

/// Resolves as soon as no request can arrive any more.
async fn resolve(executor: &Executor, id: &EffectId, resolution: Resolution) -> EffectRecord {
    let ask = async || match executor.resolve(id, resolution.clone(), &ana()).await {
        Ok(record) => Some(record),
        Err(error) if error.kind() == ResolveErrorKind::NotYet => {
            let delay = error.retry_after().expect("how long to wait");
            assert!(delay <= Duration::from_millis(301), "longer than an attempt takes: {delay:?}");
            None
        }
        Err(error) => panic!("{error}"),
    };
    for_value(Duration::from_secs(30), ask).await.expect("no request can arrive any more")
}

async fn audited(executor: &Executor, id: &EffectId) -> Vec<(OperatorAction, String, String)> {
    let history = executor.inspect(id).await.expect("an answer").expect("the effect");
    history.audit.into_iter().map(|entry| (entry.action, entry.who, entry.why)).collect()
}

async fn f38_an_effect_resolved_as_done_replays_its_value(ledger: Arc<dyn Ledger>) {
    for json in [false, true] {
        let order = format!("done-{json}");
        let (provider, executor, id) = escaped(&ledger, &order, Act::PerformAndLose).await;
        let found = Done { number: 1, what: format!("{order}/5") };
        let resolution = match json {
            true => Resolution::done(&serde_json::json!({ "number": 1, "what": found.what })),
            false => Resolution::done(&found),
        };
        let record = executor.resolve(&id, resolution, &ana()).await.expect("resolved");
        assert_eq!(record.state, State::Completed);
        let (receipt, scope) = receipted(&executor);
        let done = holding(&scope, order.clone(), 5, provider.clone()).await.expect("the operator's value");
        assert_eq!((done, receipt.replayed()), (found, true));
        assert_eq!((provider.performed(), provider.keys().len()), (1, 1));
        let expected = (OperatorAction::Done, "ana".to_owned(), "looked at the provider".to_owned());
        assert_eq!(audited(&executor, &id).await, [expected]);
        let again =
            executor.resolve(&id, Resolution::never_happened(), &ana()).await.expect_err("it is over");
        assert_eq!(again.kind(), ResolveErrorKind::Settled, "{again}");
    }
}

async fn f38_an_effect_resolved_as_refused_says_so_and_why(ledger: Arc<dyn Ledger>) {
    let (provider, executor, id) = escaped(&ledger, "refused", Act::LoseOnly).await;
    resolve(&executor, &id, Resolution::refused("the account is closed")).await;
    for _ in 0..2 {
        let (receipt, scope) = receipted(&executor);
        let error = holding(&scope, "refused".into(), 5, provider.clone()).await.expect_err("refused");
        assert_eq!((error.kind(), error.error()), (ErrorKind::Refused, None), "{error}");
        assert_eq!(error.operator_reason(), Some("the account is closed"));
        assert_eq!((error.provider_called(), receipt.replayed()), (ProviderCalled::No, true));
        assert!(
            !format!("{error} {error:?}").contains("account"),
            "an operator's words are no text of the library's"
        );
    }
    assert_eq!((provider.performed(), provider.keys().len()), (0, 1));
}

async fn f38_what_never_happened_is_performed_by_the_next_call(ledger: Arc<dyn Ledger>) {
    let (provider, executor, id) = escaped(&ledger, "never", Act::LoseOnly).await;
    let early = executor.resolve(&id, Resolution::never_happened(), &ana()).await.map(drop);
    assert_eq!(early.map_err(|error| error.kind()), Err(ResolveErrorKind::NotYet));
    let record = resolve(&executor, &id, Resolution::never_happened()).await;
    assert_eq!(record.state, State::Released);
    let (receipt, scope) = receipted(&executor);
    let done = holding(&scope, "never".into(), 5, provider.clone()).await.expect("performed");
    assert_eq!((done.number, receipt.replayed(), provider.performed()), (1, false, 1));
    let keys = provider.keys();
    assert_eq!((keys.len(), &keys[0]), (2, &keys[1]), "one key for the effect's whole life");
    let history = executor.inspect(&id).await.expect("an answer").expect("the effect");
    assert_eq!((history.effect.attempt, history.closed.len()), (2, 1));
}

/// While its executor may act nobody resolves an effect, and what it then says counts.
async fn f38_a_live_claim_is_not_resolved(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([Act::PerformAndHang]);
    let executor = builder(&ledger).attempt_timeout(Duration::from_secs(1)).build().expect("a valid set-up");
    let (receipt, scope) = receipted(&executor);
    let call = tokio::spawn({
        let provider = provider.clone();
        async move { holding(&scope, "live".into(), 5, provider).await }
    });
    provider.next_arrival().await;
    let id = identity_of_running(&executor).await;
    let error = executor.resolve(&id, Resolution::done(&1), &ana()).await.expect_err("it is live");
    assert_eq!(error.kind(), ResolveErrorKind::InFlight, "{error}");
    assert!(error.retry_after().is_some_and(|delay| !delay.is_zero() && delay <= Duration::from_secs(2)));
    let error = call.await.expect("no panic").expect_err("it takes too long");
    assert_eq!((error.kind(), receipt.effect_id()), (ErrorKind::Escaped, Some(id.clone())));
    executor
        .resolve(&id, Resolution::done(&Done { number: 1, what: "live/5".into() }), &ana())
        .await
        .expect("now");
    assert_eq!(provider.performed(), 1);
}

/// The identity of the running call, by an effect that is refused as another request for it.
async fn identity_of_running(executor: &Executor) -> EffectId {
    let (receipt, scope) = receipted(executor);
    let error = holding(&scope, "live".into(), 6, Scripted::forgetful([])).await.expect_err("another amount");
    assert_eq!(error.kind(), ErrorKind::Mismatch);
    receipt.effect_id().expect("an identity")
}

/// What an operator lets go on is claimed like everything else: of many calls one performs.
async fn f57_calls_after_a_resolution_are_one_performance(ledger: Arc<dyn Ledger>) {
    let (provider, executor, id) = escaped(&ledger, "retry", Act::LoseOnly).await;
    resolve(&executor, &id, Resolution::never_happened()).await;
    let mut calls = JoinSet::new();
    for _ in 0..32 {
        let (_, scope) = receipted(&executor);
        let provider = provider.clone();
        calls.spawn(async move {
            holding(&scope, "retry".into(), 5, provider).await.expect("one outcome").number
        });
    }
    assert_eq!(calls.join_all().await, [1; 32]);
    assert_eq!((provider.performed(), provider.keys().len()), (1, 2));
}

async fn a_refusal_that_is_opened_again_is_performed_by_the_next_call(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([Act::Refuse]);
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    let error = holding(&scope, "again".into(), 5, provider.clone()).await.expect_err("declined");
    assert_eq!((error.kind(), error.error().is_some()), (ErrorKind::Refused, true));
    let id = receipt.effect_id().expect("an identity");
    let by = By::new("ana", "the customer has another card").expect("who and why");
    assert_eq!(executor.reopen(&id, &by).await.expect("opened").state, State::Released);
    let (_, scope) = receipted(&executor);
    let done = holding(&scope, "again".into(), 5, provider.clone()).await.expect("performed");
    assert_eq!((done.number, provider.performed(), provider.keys().len()), (1, 1, 2));
    let error = executor.reopen(&id, &by).await.expect_err("a success stays");
    assert_eq!(error.kind(), ResolveErrorKind::NotARefusal, "{error}");
    let entry = (OperatorAction::Reopened, "ana".to_owned(), "the customer has another card".to_owned());
    assert_eq!(audited(&executor, &id).await, [entry]);
}

async fn a_decision_on_an_older_state_changes_nothing(ledger: Arc<dyn Ledger>) {
    let (provider, executor, id) = escaped(&ledger, "older", Act::LoseOnly).await;
    let seen = executor.inspect(&id).await.expect("an answer").expect("the effect").effect;
    resolve(&executor, &id, Resolution::never_happened()).await;
    let (_, scope) = receipted(&executor);
    holding(&scope, "older".into(), 5, provider).await.expect("performed");
    let by = ana().having_seen(&seen);
    let kinds = [
        executor.resolve(&id, Resolution::refused("too late"), &by).await.map(drop),
        executor.reopen(&id, &by).await.map(drop),
    ];
    let moved = |result: Result<(), ResolveError>| result.expect_err("it has moved on").kind();
    assert_eq!(kinds.map(moved), [ResolveErrorKind::Moved; 2]);
    let unknown = EffectId::parse(format!("acme/{}", "09".repeat(32))).expect("an identity");
    let error = executor.resolve(&unknown, Resolution::never_happened(), &by).await.expect_err("unknown");
    assert_eq!(error.kind(), ResolveErrorKind::NotFound, "{error}");
}

async fn a_value_of_another_type_is_never_performed_again(ledger: Arc<dyn Ledger>) {
    let (provider, executor, id) = escaped(&ledger, "type", Act::PerformAndLose).await;
    executor.resolve(&id, Resolution::done(&"a text"), &ana()).await.expect("any value is stored");
    let (_, scope) = receipted(&executor);
    let error = holding(&scope, "type".into(), 5, provider.clone()).await.expect_err("no such value");
    assert_eq!((error.kind(), provider.performed()), (ErrorKind::Unreadable, 1), "{error}");
}

#[test]
fn who_and_why_are_texts_of_one_line() {
    for (who, why) in
        [("", "why"), ("who", " "), ("a\nb", "why"), ("who", "a\0b"), (&*"w".repeat(129), "why")]
    {
        let error = By::new(who, why).expect_err("no such person");
        assert!(error.to_string().contains("control characters"), "{error}");
    }
    By::new("w".repeat(128), "y".repeat(2048)).expect("as long as it may be");
}

#[tokio::test]
async fn a_reason_has_a_limit() {
    let ledger: Arc<dyn Ledger> = Arc::new(effectual::MemoryLedger::new());
    let (_, executor, id) = escaped(&ledger, "limit", Act::LoseOnly).await;
    let error =
        executor.resolve(&id, Resolution::refused("r".repeat(4097)), &ana()).await.expect_err("too long");
    assert_eq!(error.kind(), ResolveErrorKind::NoValue, "{error}");
    let executor = builder(&ledger).outcome_size_max(10).build().expect("a valid set-up");
    let error =
        executor.resolve(&id, Resolution::done(&"over the limit"), &ana()).await.expect_err("too large");
    assert_eq!(error.kind(), ResolveErrorKind::NoValue, "{error}");
}
