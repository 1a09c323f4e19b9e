//! Which requests have a record, and which record.

use axum::{Router, http::HeaderValue, routing::post as on_post};
use effectual::Tenant;

use crate::{
    client::{Request, fresh_key, post},
    support::{Runs, Store, User, on_each_store, serve},
};

/// An application that answers with the number of its run.
fn counting(runs: &Runs) -> Router {
    let count = |runs: Runs| move || async move { runs.one().to_string() };
    Router::new()
        .route("/runs", on_post(count(runs.clone())).put(count(runs.clone())).get(count(runs.clone())))
        .route("/orders/{order}/refund", on_post(count(runs.clone())))
        .route("/other", on_post(count(runs.clone())))
}

async fn f72_keys_outside_the_grammar(store: Store) {
    let runs = Runs::default();
    let layer = store.layer().build().expect("a layer");
    let to = serve(counting(&runs).layer(layer)).await;
    let key = "0123456789abcdefABCDEF._~-";
    let long = "x".repeat(129);
    let odd: [&[u8]; 11] = [
        b"",
        b"   ",
        &key.as_bytes()[..21],
        long.as_bytes(),
        b"0123456789abcdef01234\xc3\xa9",
        b"0123456789abcdef0123456\xff",
        b"0123456789abcdef 0123456789",
        b"0123456789abcdef\t0123456789",
        b"\"0123456789abcdef012345\"",
        b"0123456789abcdef012345,0123456789abcdef012346",
        b"0123456789abcdef/0123456789",
    ];
    for value in odd {
        let answer = post("/runs", "{}").with("Idempotency-Key", value).send(to).await;
        answer.is_refused(400, "idempotency_key_invalid");
    }
    let twice = post("/runs", "{}").key(key).key(key).send(to).await;
    twice.is_refused(400, "idempotency_key_invalid");
    assert_eq!(runs.count(), 0);
    // What was refused has left no record of itself.
    assert_eq!(post("/runs", "{}").key(key).send(to).await.text(), "1");
    for length in [22, 128] {
        assert_eq!(post("/runs", "{}").key(&"y".repeat(length)).send(to).await.status, 200);
    }
    assert_eq!(runs.count(), 3);
}

async fn f33_records_are_of_a_tenant_and_an_endpoint(store: Store) {
    let runs = Runs::default();
    let layer = store.layer().build().expect("a layer");
    let to = serve(counting(&runs).layer(layer)).await;
    let key = fresh_key();
    let ours = post("/runs", "{\"tenant\":\"other\"}").key(&key);
    let theirs = ours.clone().without("x-tenant").with("x-tenant", "other");
    let elsewhere = Request { path: "/other".to_owned(), ..ours.clone() };
    for (request, run) in
        [(&ours, "1"), (&theirs, "2"), (&elsewhere, "3"), (&ours.clone().method("PUT"), "4")]
    {
        let first = request.send(to).await;
        assert_eq!((first.text(), first.is_replay()), (run, false));
        let again = request.send(to).await;
        assert_eq!((again.text(), again.is_replay()), (run, true));
    }
    let nobody = ours.without("x-tenant").send(to).await;
    nobody.is_refused(401, "unauthenticated");
    assert_eq!(runs.count(), 4);
}

async fn f34_a_rotated_credential_gets_its_replay(store: Store) {
    let runs = Runs::default();
    let layer = store.layer().build().expect("a layer");
    let to = serve(counting(&runs).layer(layer)).await;
    let request = post("/runs", "{}").key(&fresh_key());
    assert_eq!(request.clone().with("authorization", "old").send(to).await.text(), "1");
    assert!(request.with("authorization", "new").send(to).await.is_replay());
    assert_eq!(runs.count(), 1);
}

async fn f32_a_replay_is_for_the_same_principal(store: Store) {
    let runs = Runs::default();
    let layer = store.layer().principal(|extensions| Some(extensions.get::<User>()?.0.clone()));
    let to = serve(counting(&runs).layer(layer.build().expect("a layer"))).await;
    let request = post("/runs", "{}").key(&fresh_key());
    let alice = request.clone().with("x-user", "alice");
    assert_eq!(alice.send(to).await.text(), "1");
    let other = request.clone().with("x-user", "bob").send(to).await;
    other.is_refused(409, "idempotency_response_unavailable");
    request.send(to).await.is_refused(401, "unauthenticated");
    assert!(alice.send(to).await.is_replay());
    assert_eq!(runs.count(), 1);
}

async fn another_request_under_a_key_is_a_mismatch(store: Store) {
    let runs = Runs::default();
    let layer = store.layer().build().expect("a layer");
    let to = serve(counting(&runs).layer(layer)).await;
    let key = fresh_key();
    let first = post("/orders/1/refund?a=1", "{\"x\": 1, \"y\": [true]}").key(&key);
    assert_eq!(first.send(to).await.text(), "1");
    let equal = Request { body: b"{\"y\":[true],\"x\":1}".to_vec(), ..first.clone() };
    assert!(equal.send(to).await.is_replay(), "the order of names and white space do not matter");
    for (path, body) in [
        ("/orders/2/refund?a=1", "{\"x\": 1, \"y\": [true]}"),
        ("/orders/1/refund?a=2", "{\"x\": 1, \"y\": [true]}"),
        ("/orders/1/refund", "{\"x\": 1, \"y\": [true]}"),
        ("/orders/1/refund?a=1", "{\"x\": 2, \"y\": [true]}"),
        ("/orders/1/refund?a=1", ""),
    ] {
        post(path, body).key(&key).send(to).await.is_refused(409, "idempotency_key_mismatch");
    }
    assert_eq!(runs.count(), 1);
}

async fn a_request_without_a_key_or_that_changes_nothing_runs(store: Store) {
    let runs = Runs::default();
    let layer = store.layer().build().expect("a layer");
    let to = serve(counting(&runs).layer(layer)).await;
    let reads =
        [post("/runs", "").method("GET").key("short"), post("/runs", "").method("GET").key(&fresh_key())];
    for request in reads.iter().chain([&post("/runs", "{}")]).chain(&reads) {
        let answer = request.send(to).await;
        assert_eq!((answer.status, answer.is_replay()), (200, false));
    }
    assert_eq!(runs.count(), 5);
}

on_each_store!(
    f72_keys_outside_the_grammar,
    f33_records_are_of_a_tenant_and_an_endpoint,
    f34_a_rotated_credential_gets_its_replay,
    f32_a_replay_is_for_the_same_principal,
    another_request_under_a_key_is_a_mismatch,
    a_request_without_a_key_or_that_changes_nothing_runs,
);

#[tokio::test]
async fn f75_a_layer_outside_the_authentication_runs_nothing_under_a_key() {
    let runs = Runs::default();
    let layer = Store::memory().layer().required(true).build().expect("a layer");
    // The wrong way round: the tenant is found after the layer has looked for it.
    let late =
        axum::middleware::from_fn(|mut request: axum::extract::Request, next: axum::middleware::Next| {
            request.extensions_mut().insert(Tenant::parse("acme").expect("a tenant"));
            next.run(request)
        });
    let to = serve(counting(&runs).layer(late).layer(layer)).await;
    let request = post("/runs", "{}").without("x-tenant").key(&fresh_key());
    request.send(to).await.is_refused(401, "unauthenticated");
    assert_eq!(runs.count(), 0);
}

#[tokio::test]
async fn a_route_may_require_a_key_or_take_a_quoted_one() {
    let runs = Runs::default();
    let layer = Store::memory().layer().required(true).build().expect("a layer");
    let quoted = layer.adjust().required(false).accept_quoted(true).build().expect("a layer");
    let count = |runs: Runs| move || async move { runs.one().to_string() };
    let app = Router::new()
        .route("/strict", on_post(count(runs.clone())).layer(layer))
        .route("/quoted", on_post(count(runs.clone())).layer(quoted));
    let to = serve(app).await;
    post("/strict", "{}").send(to).await.is_refused(400, "idempotency_key_required");
    assert_eq!(post("/quoted", "{}").send(to).await.text(), "1");
    let key = fresh_key();
    assert_eq!(post("/quoted", "{}").key(&format!("\"{key}\"")).send(to).await.text(), "2");
    assert!(post("/quoted", "{}").key(&key).send(to).await.is_replay(), "it is the key that is quoted");
}

#[tokio::test]
async fn of_two_layers_the_outer_one_has_the_record() {
    let runs = Runs::default();
    let layer = Store::memory().layer().build().expect("a layer");
    let strict = layer.adjust().required(true).build().expect("a layer");
    let count = |runs: Runs| move || async move { runs.one().to_string() };
    let app = Router::new().route("/runs", on_post(count(runs.clone())).layer(strict));
    let to = serve(app.layer(layer)).await;
    let request = post("/runs", "{}").key(&fresh_key());
    assert_eq!(request.send(to).await.text(), "1");
    assert!(request.send(to).await.is_replay());
    post("/runs", "{}").send(to).await.is_refused(400, "idempotency_key_required");
    assert_eq!(runs.count(), 1);
}

#[test]
fn settings_outside_their_bounds_are_refused() {
    use std::time::Duration;
    let refused = |builder: effectual::idempotency_key::IdempotencyKeyBuilder| {
        builder.build().expect_err("out of bounds").to_string()
    };
    let store = Store::memory();
    let day = Duration::from_secs(24 * 3600);
    assert!(refused(store.layer().retention(day - Duration::from_secs(1))).contains("24 hours"));
    assert!(refused(store.layer().lease(Duration::from_millis(5))).contains("`lease`"));
    assert!(store.layer().retention(day).build().is_ok());
}

#[tokio::test]
async fn marker_and_refusals_are_the_applications() {
    let runs = Runs::default();
    let layer = Store::memory().layer().marker("x-again".parse().expect("a name")).render(|refusal| {
        let mut response = axum::http::Response::new(format!("my {}", refusal.code()).into());
        *response.status_mut() = refusal.status();
        response
    });
    let to = serve(counting(&runs).layer(layer.build().expect("a layer"))).await;
    let request = post("/runs", "{}").key(&fresh_key());
    request.send(to).await;
    assert_eq!(
        request.send(to).await.header("x-again"),
        Some(HeaderValue::from_static("true").to_str().expect("text"))
    );
    let refused = post("/runs", "{}").key("short").send(to).await;
    assert_eq!((refused.status, refused.text()), (400, "my idempotency_key_invalid"));
}
