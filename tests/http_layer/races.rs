//! Requests that meet: one runs, the others wait, are replayed or refused.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, http::StatusCode, routing::post as on_post};
use effectual::idempotency_key::IdempotencyKeyLayer;
use effectual_tests::wait;
use tokio::{sync::Semaphore, task::JoinSet};

use crate::{
    client::{Answer, Request, fresh_key, post},
    support::{Runs, Store, on_each_store, serve},
};

const LIMIT: Duration = Duration::from_secs(20);

/// An application whose handler waits to be let on, and then answers with the number of its run.
#[derive(Clone)]
struct Gated {
    runs: Runs,
    gate: Arc<Semaphore>,
    ended: Runs,
}

impl Gated {
    fn new() -> Self {
        Self { runs: Runs::default(), gate: Arc::new(Semaphore::new(0)), ended: Runs::default() }
    }

    fn app(&self, answer: impl Fn(u64) -> StatusCode + Clone + Send + Sync + 'static) -> Router {
        let this = self.clone();
        let handler = move || async move {
            let run = this.runs.one();
            this.gate.acquire().await.expect("open").forget();
            this.ended.one();
            (answer(run), run.to_string())
        };
        Router::new().route("/runs", on_post(handler))
    }

    async fn serve(&self, layer: IdempotencyKeyLayer) -> SocketAddr {
        serve(self.app(|_| StatusCode::CREATED).layer(layer)).await
    }

    async fn runs_are(&self, count: u64) {
        wait::until("a run", LIMIT, async || self.runs.count() == count).await;
    }

    fn let_on(&self) {
        self.gate.add_permits(1);
    }
}

async fn f73_fifty_at_once_are_one_run(store: Store) {
    let gated = Gated::new();
    let to = gated.serve(store.layer().build().expect("a layer")).await;
    let request = post("/runs", "{}").key(&fresh_key());
    let mut all = JoinSet::new();
    for _ in 0..50 {
        let request = request.clone();
        all.spawn(async move { request.send(to).await });
    }
    gated.runs_are(1).await;
    gated.let_on();
    let answers = all.join_all().await;
    assert_eq!(gated.runs.count(), 1);
    assert!(answers.iter().all(|answer| answer.status == 201 && answer.text() == "1"));
    assert_eq!(answers.iter().filter(|answer| answer.is_replay()).count(), 49);
}

async fn a_route_may_refuse_at_once(store: Store) {
    let gated = Gated::new();
    let to = gated.serve(store.layer().wait(Duration::ZERO).build().expect("a layer")).await;
    let request = post("/runs", "{}").key(&fresh_key());
    let first = request.start(to).await;
    gated.runs_are(1).await;
    let refused = request.send(to).await;
    refused.is_refused(409, "idempotency_in_flight");
    assert_eq!(refused.header("retry-after"), Some("1"));
    let other = Request { body: b"[]".to_vec(), ..request.clone() }.send(to).await;
    other.is_refused(409, "idempotency_key_mismatch");
    gated.let_on();
    assert_eq!(Answer::read(first).await.expect("an answer").status, 201);
    assert!(request.send(to).await.is_replay());
}

async fn a_wait_is_bounded(store: Store) {
    let gated = Gated::new();
    let to = gated.serve(store.layer().wait(Duration::from_millis(60)).build().expect("a layer")).await;
    let request = post("/runs", "{}").key(&fresh_key());
    let first = request.start(to).await;
    gated.runs_are(1).await;
    request.send(to).await.is_refused(409, "idempotency_in_flight");
    gated.let_on();
    assert_eq!(Answer::read(first).await.expect("an answer").status, 201);
}

/// One of two that met was to be processed; a winner that fails does not make a runner of the loser.
async fn a_loser_gets_a_final_answer_or_none(store: Store) {
    let gated = Gated::new();
    let app = gated.app(|run| if run == 1 { StatusCode::BAD_GATEWAY } else { StatusCode::CREATED });
    let to = serve(app.layer(store.layer().build().expect("a layer"))).await;
    let request = post("/runs", "{}").key(&fresh_key());
    let first = request.start(to).await;
    gated.runs_are(1).await;
    let second = tokio::spawn({
        let request = request.clone();
        async move { request.send(to).await }
    });
    gated.let_on();
    assert_eq!(Answer::read(first).await.expect("an answer").status, 502);
    // It began while the first ran, or after it: then it runs.
    gated.let_on();
    let second = second.await.expect("it ends");
    if second.status == 409 {
        second.is_refused(409, "idempotency_in_flight");
        assert_eq!((gated.runs.count(), request.send(to).await.status), (1, 201));
    } else {
        assert_eq!((second.status, second.is_replay(), gated.runs.count()), (201, false, 2));
    }
}

async fn a_client_that_hangs_up_loses_nothing(store: Store) {
    let gated = Gated::new();
    let to = gated.serve(store.layer().build().expect("a layer")).await;
    let request = post("/runs", "{}").key(&fresh_key());
    let hung_up = request.start(to).await;
    gated.runs_are(1).await;
    drop(hung_up);
    // The server has seen that it is gone before the handler goes on, or not: neither may matter.
    assert_eq!(post("/other", "").send(to).await.status, 404);
    gated.let_on();
    let answer = request.send(to).await;
    assert_eq!((answer.status, answer.text(), answer.is_replay()), (201, "1", true));
    assert_eq!(gated.runs.count(), 1);
}

async fn a_handler_outlasts_its_lease(store: Store) {
    let gated = Gated::new();
    let lease = Duration::from_secs(4);
    let to = gated.serve(store.layer().lease(lease).wait(Duration::ZERO).build().expect("a layer")).await;
    let request = post("/runs", "{}").key(&fresh_key());
    let first = request.start(to).await;
    gated.runs_are(1).await;
    // Longer than two leases, by asking: each answer must be that it runs.
    let began = std::time::Instant::now();
    while began.elapsed() < lease * 2 {
        request.send(to).await.is_refused(409, "idempotency_in_flight");
    }
    gated.let_on();
    assert_eq!(Answer::read(first).await.expect("an answer").status, 201);
    assert_eq!(gated.runs.count(), 1);
}

async fn a_panic_is_a_failure_and_its_text_is_not_kept(store: Store) {
    let runs = Runs::default();
    let counted = runs.clone();
    let handler = move || async move {
        assert!(counted.one() > 1, "canary-panic");
        "made"
    };
    let app = Router::new().route("/runs", on_post(handler));
    let to = serve(app.layer(store.layer().build().expect("a layer"))).await;
    let request = post("/runs", "{}").key(&fresh_key());
    let failed = request.send(to).await;
    failed.is_refused(500, "internal_error");
    assert!(!failed.text().contains("canary"));
    assert_eq!(request.send(to).await.text(), "made");
    assert!(request.send(to).await.is_replay());
    assert_eq!(runs.count(), 2);
}

async fn two_servers_on_one_store_are_one_run(store: Store) {
    let gated = Gated::new();
    let one = gated.serve(store.layer().build().expect("a layer")).await;
    let other = gated.serve(store.layer().build().expect("a layer")).await;
    let request = post("/runs", "{}").key(&fresh_key());
    let mut all = JoinSet::new();
    for at in 0..20 {
        let request = request.clone();
        all.spawn(async move { request.send(if at % 2 == 0 { one } else { other }).await });
    }
    gated.runs_are(1).await;
    gated.let_on();
    let answers = all.join_all().await;
    assert_eq!(gated.runs.count(), 1);
    assert!(answers.iter().all(|answer| answer.status == 201 && answer.text() == "1"));
    assert_eq!(answers.iter().filter(|answer| answer.is_replay()).count(), 19);
}

on_each_store!(
    f73_fifty_at_once_are_one_run,
    a_route_may_refuse_at_once,
    a_wait_is_bounded,
    a_loser_gets_a_final_answer_or_none,
    a_client_that_hangs_up_loses_nothing,
    a_handler_outlasts_its_lease,
    a_panic_is_a_failure_and_its_text_is_not_kept,
    two_servers_on_one_store_are_one_run,
);
