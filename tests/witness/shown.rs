//! What is shown of a run: attempts, touches, states; and what is never shown.

use std::sync::{Arc, atomic::Ordering};

use effectual::{EffectContext, EffectScope, Executor, Ledger, Profile, Provider, RecoveryClass, effect};
use effectual::{
    provider::{InFlightMeaning, KeyPlace},
    retry::RetryPolicy,
};
use effectual_tests::{
    on_each_ledger,
    scripted::{Act, Done, Scripted, ScriptedError},
    wire::Request,
};
use serde_json::{Value, json};

use crate::serve::{ACME, GLOBEX, NARROW, Served};

/// A provider with a documented window: a lost answer is sent again at once.
struct Windowed;

impl Provider for Windowed {
    const NAME: &'static str = "windowed";

    fn profile() -> Profile {
        Profile::undocumented(Self::NAME, "2026-11-30")
            .with_key_place(KeyPlace::Header("Idempotency-Key".to_owned()))
            .with_window(std::time::Duration::from_secs(24 * 60 * 60))
            .with_in_flight(InFlightMeaning::Refuses, None)
            .with_on_unknown(RecoveryClass::Resend)
    }
}

#[effect(keying = business_identity, provider = Windowed)]
async fn refund(
    cx: &EffectContext,
    #[key] order: String,
    note: String,
    #[skip] provider: Scripted,
) -> effectual::Result<Done, ScriptedError> {
    Ok(provider.send(cx, &format!("{order}/{note}")).await?)
}

#[effect(keying = activity_recipe)]
async fn mail(
    cx: &EffectContext,
    text: String,
    #[skip] provider: Scripted,
) -> effectual::Result<Done, ScriptedError> {
    Ok(provider.send(cx, &text).await?)
}

fn executor(ledger: &Arc<dyn Ledger>) -> Executor {
    let retry = RetryPolicy::default().attempts_max(3).base(std::time::Duration::from_millis(5));
    Executor::builder(Arc::clone(ledger)).retry(retry).build().expect("a valid set-up")
}

async fn refunded(scope: &impl EffectScope, provider: &Scripted) -> effectual::Result<Done, ScriptedError> {
    refund(scope, "o-1".into(), "canary of an argument".into(), provider.clone()).await
}

/// One field of every row.
fn each<'a>(rows: &'a [Value], field: &str) -> Vec<&'a Value> {
    rows.iter().map(|row| &row[field]).collect()
}

/// A lost answer makes a second attempt under the same effect and key; replays add nothing.
async fn a_transport_retry_is_two_rows_of_one_effect(ledger: Arc<dyn Ledger>) {
    let served = Served::start(Arc::clone(&ledger)).await;
    let run = served.run();
    let executor = executor(&ledger);
    let provider = Scripted::deduplicating([Act::PerformAndLose]);
    let tenant = executor.tenant("acme").expect("a tenant");
    let node = || tenant.run(run.clone()).expect("a run").node("charge").expect("a node");
    let node = || node().invocation("execution-1").expect("an invocation");
    refunded(&node(), &provider).await.expect("the second attempt finds it done");
    let rows = served.effects(&run).await;
    assert_eq!(each(&rows, "attempt"), [1, 2]);
    assert_eq!(each(&rows, "state"), ["escaped", "completed"]);
    assert_eq!(each(&rows, "nodeId"), ["charge", "charge"]);
    assert_eq!(each(&rows, "invocationId"), ["execution-1", "execution-1"]);
    assert_eq!(each(&rows, "keying"), ["business-identity", "business-identity"]);
    assert_eq!(rows[0]["effectId"], rows[1]["effectId"]);
    let keys = provider.keys();
    assert_eq!(each(&rows, "providerKey"), keys.iter().collect::<Vec<_>>(), "what the provider was given");
    assert_eq!(keys[0], keys[1]);

    refunded(&node(), &provider).await.expect("a replay");
    assert_eq!(served.effects(&run).await, rows, "a replay in its own run adds no row");
    assert_eq!(provider.keys().len(), 2);
}

/// Another run that calls the effect lists it once, where it stands, from the first time on.
async fn a_run_that_met_an_effect_shows_it(ledger: Arc<dyn Ledger>) {
    let served = Served::start(Arc::clone(&ledger)).await;
    let (one, other, neither) = (served.run(), served.run(), served.run());
    let executor = executor(&ledger);
    let provider = Scripted::deduplicating([]);
    let tenant = executor.tenant("acme").expect("a tenant");
    let node = |run: &effectual::RunId, name: &str| {
        tenant.run(run.clone()).expect("a run").node(name.to_owned()).expect("a node")
    };
    refunded(&node(&one, "charge"), &provider).await.expect("performed");
    refunded(&node(&other, "repair"), &provider).await.expect("replayed");
    let [own, met] = [served.effects(&one).await, served.effects(&other).await];
    assert_eq!((own.len(), met.len()), (1, 1));
    assert_eq!((&met[0]["nodeId"], &met[0]["state"]), (&json!("repair"), &json!("completed")));
    for same in ["effectId", "attempt", "keying", "providerKey"] {
        assert_eq!(met[0][same], own[0][same], "{same}");
    }
    assert!(met[0]["at"].as_str() >= own[0]["at"].as_str(), "the time of the touch");
    // In a run and outside any node; and one that looks again.
    refunded(&tenant.run(other.clone()).expect("a run"), &provider).await.expect("replayed");
    assert_eq!(served.effects(&other).await, met, "the first touch stays");
    assert_eq!(served.effects(&neither).await, Vec::<Value>::new());
    assert_eq!(provider.keys().len(), 1);
}

/// An effect of a run outside any node says so; a recipe's says how it was keyed.
async fn where_an_effect_was_called_is_shown(ledger: Arc<dyn Ledger>) {
    let served = Served::start(Arc::clone(&ledger)).await;
    let run = served.run();
    let executor = executor(&ledger);
    let provider = Scripted::deduplicating([]);
    let scope = executor.tenant("acme").expect("a tenant").run(run.clone()).expect("a run");
    refund(&scope, "o-2".into(), "n".into(), provider.clone()).await.expect("performed");
    let node = scope.node("notify:1").expect("a node");
    mail(&node, "one".into(), provider.clone()).await.expect("performed");
    mail(&node, "two".into(), provider.clone()).await.expect("performed");
    let mut rows = served.effects(&run).await;
    // Within one millisecond the effects' ids decide.
    rows.sort_by_key(|row| row["nodeId"].to_string());
    assert_eq!(each(&rows, "nodeId"), ["notify:1", "notify:1", "outside-any-node"]);
    assert_eq!(each(&rows, "keying"), ["activity-recipe", "activity-recipe", "business-identity"]);
    assert_ne!(rows[0]["effectId"], rows[1]["effectId"], "two calls of a node are two effects");
}

/// Neither arguments nor outcomes nor refusals come out.
async fn nothing_of_an_effects_content_is_shown(ledger: Arc<dyn Ledger>) {
    let served = Served::start(Arc::clone(&ledger)).await;
    let run = served.run();
    let executor = executor(&ledger);
    let provider = Scripted::deduplicating([Act::Refuse]);
    let node = executor.tenant("acme").expect("a tenant").run(run.clone()).expect("a run").node("charge");
    refunded(&node.expect("a node"), &provider).await.expect_err("refused");
    let answer = served.get(&format!("/runs/{run}/effects")).await;
    let text = String::from_utf8(answer.body).expect("text");
    for canary in ["canary", "o-1", "declined", "refund"] {
        assert!(!text.contains(canary), "{canary} in {text}");
    }
    assert!(text.contains("\"completed\""), "a stored refusal is the effect's outcome: {text}");
}

on_each_ledger!(
    a_transport_retry_is_two_rows_of_one_effect,
    a_run_that_met_an_effect_shows_it,
    where_an_effect_was_called_is_shown,
    nothing_of_an_effects_content_is_shown,
);

/// Who asks is judged first, then the path, then whose run it is, and only then whether it exists.
#[tokio::test]
async fn the_order_of_refusals() {
    let served = Served::start(effectual_tests::ledgers::memory().ledger.clone()).await;
    let run = served.run();
    let path = format!("/runs/{run}/effects");
    let refused = async |request: Request| {
        let answer = served.ask(request).await;
        (answer.status, answer.json()["error"].as_str().expect("a code").to_owned())
    };
    let bad = "/runs/acme~2/effects";
    for request in [Request::get(&path), Request::get(bad), Request::get(&path).bearer("wrong")] {
        assert_eq!(refused(request).await, (401, "unauthenticated".to_owned()));
    }
    let answer = served.ask(Request::get(&path)).await;
    assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    assert_eq!(refused(Request::get(&path).bearer(NARROW)).await, (403, "forbidden".to_owned()));
    assert_eq!(refused(Request::get(bad).bearer(ACME)).await, (400, "validation_error".to_owned()));
    let unknown = "/runs/acme/0123456789abcdef/effects";
    for foreign in [path.as_str(), unknown] {
        let refusal = refused(Request::get(foreign).bearer(GLOBEX)).await;
        assert_eq!(refusal, (403, "id_tenant_mismatch".to_owned()), "whether it exists or not");
    }
    assert_eq!(served.known.asked.load(Ordering::SeqCst), 0, "nothing was looked up so far");
    assert_eq!(refused(Request::get(unknown).bearer(ACME)).await, (404, "not_found".to_owned()));
    assert_eq!(served.known.asked.load(Ordering::SeqCst), 1);
    served.known.is_down.store(true, Ordering::SeqCst);
    let answer = served.get(&path).await;
    assert_eq!((answer.status, &answer.json()["error"]), (503, &json!("service_unavailable")));
    assert!(!String::from_utf8_lossy(&answer.body).contains("canary"), "the host's error is its own");
}

/// A ledger that cannot be read is no empty list.
#[tokio::test]
async fn a_ledger_that_is_down_is_no_empty_list() {
    let memory = effectual_tests::ledgers::memory();
    let served = Served::start(memory.ledger.clone()).await;
    let run = served.run();
    assert_eq!(served.effects(&run).await, Vec::<Value>::new());
    memory.ledger.close().await;
    let answer = served.get(&format!("/runs/{run}/effects")).await;
    assert_eq!((answer.status, &answer.json()["error"]), (503, &json!("service_unavailable")));
}
