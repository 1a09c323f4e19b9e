//! The layer over a handler whose effects are performed: the request runs again, the effects do not.

use std::sync::Arc;

use axum::{Router, http::StatusCode, routing::post as on_post};
use effectual::{EffectContext, Executor, Ledger, MemoryLedger, PostgresLedger, SqliteLedger, effect};
use effectual_tests::{
    database::{PostgresDatabase, SqliteFile},
    scripted::{Act, Done, Scripted, ScriptedError},
    servers,
};

use crate::{
    client::{fresh_key, post},
    support::{Runs, Store, serve},
};

#[effect(keying = business_identity, on_unknown = hold)]
async fn refund(
    cx: &EffectContext,
    #[key] order: String,
    #[skip] provider: Scripted,
) -> effectual::Result<Done, ScriptedError> {
    Ok(provider.send(cx, &order).await?)
}

/// A handler that performs one effect and then fails as `first` says, on its first run.
fn app(executor: &Executor, provider: &Scripted, runs: &Runs) -> Router {
    let (executor, provider, runs) = (executor.clone(), provider.clone(), runs.clone());
    let handler = move |order: String| async move {
        let scope = executor.tenant("acme").expect("a tenant");
        let performed = refund(&scope, order, provider).await;
        match (runs.one(), performed) {
            (1, _) => (StatusCode::SERVICE_UNAVAILABLE, String::new()),
            (_, Ok(_)) => (StatusCode::CREATED, "refunded".to_owned()),
            (_, Err(error)) => (StatusCode::BAD_GATEWAY, format!("{:?}", error.kind())),
        }
    };
    Router::new().route("/refunds", on_post(handler))
}

/// 5xx after an effect: the handler runs again, and the effect replays or says that it is unknown; one performance.
async fn f67_a_failed_request_runs_again_and_its_effects_replay(ledger: Arc<dyn Ledger>, store: Store) {
    let executor = Executor::builder(ledger).build().expect("a valid set-up");
    for (act, status, said) in [(Act::Perform, 201, "refunded"), (Act::PerformAndLose, 502, "Escaped")] {
        let (provider, runs) = (Scripted::forgetful([act]), Runs::default());
        let layer = store.layer().build().expect("a layer");
        let to = serve(app(&executor, &provider, &runs).layer(layer)).await;
        let request = post("/refunds", fresh_key()).key(&fresh_key());
        assert_eq!(request.send(to).await.status, 503);
        let again = request.send(to).await;
        assert_eq!((again.status, again.text(), again.is_replay()), (status, said, false));
        let last = request.send(to).await;
        assert_eq!((last.status, last.is_replay()), (status, status == 201), "only a final answer is kept");
        assert_eq!(provider.performed(), 1, "at the provider");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f67_both_layers_in_memory() {
    f67_a_failed_request_runs_again_and_its_effects_replay(Arc::new(MemoryLedger::new()), Store::memory())
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f67_both_layers_in_one_file() {
    let file = SqliteFile::new();
    let ledger = SqliteLedger::open(file.path()).await.expect("a ledger");
    let store = Store::new(ledger.requests(), ());
    f67_a_failed_request_runs_again_and_its_effects_replay(Arc::new(ledger), store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f67_both_layers_in_one_database() {
    let Some(server) = servers::postgres("http_layer: both layers on PostgreSQL") else { return };
    let database = PostgresDatabase::create(&server).await;
    let ledger = PostgresLedger::connect(database.url()).await.expect("a ledger");
    let store = Store::new(ledger.requests(), ());
    f67_a_failed_request_runs_again_and_its_effects_replay(Arc::new(ledger), store).await;
}
