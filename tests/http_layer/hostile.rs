//! What a client should not send.

use std::time::Duration;

use axum::{Json, Router, routing::post as on_post};
use tokio::task::JoinSet;

use crate::{
    client::{fresh_key, post},
    support::{Runs, Store, on_each_store, serve},
};

fn echoing(runs: &Runs) -> Router {
    let runs = runs.clone();
    Router::new().route(
        "/runs",
        on_post(move |body: bytes::Bytes| async move {
            runs.one();
            body
        }),
    )
}

async fn bodies_over_the_limit_do_not_run(store: Store) {
    let runs = Runs::default();
    let app = echoing(&runs).layer(axum::extract::DefaultBodyLimit::disable());
    let to = serve(app.layer(store.layer().build().expect("a layer"))).await;
    let large = vec![b'x'; 10 << 20];
    post("/runs", large.clone()).key(&fresh_key()).send(to).await.is_refused(413, "payload_too_large");
    // Its length is not told beforehand.
    let request = post("/runs", large[..(2 << 20) + 1].to_vec()).key(&fresh_key()).chunked();
    request.send(to).await.is_refused(413, "payload_too_large");
    assert_eq!(runs.count(), 0);
    let largest = post("/runs", large[..2 << 20].to_vec()).key(&fresh_key()).send(to).await;
    assert_eq!((largest.status, largest.body.len(), runs.count()), (200, 2 << 20, 1));
    // Without a key the layer reads nothing, and the limit is the application's.
    let unkeyed = post("/runs", large).send(to).await;
    assert_eq!((unkeyed.status, unkeyed.body.len()), (200, 10 << 20));
}

async fn chunked_empty_and_odd_bodies_are_bodies(store: Store) {
    let runs = Runs::default();
    let to = serve(echoing(&runs).layer(store.layer().build().expect("a layer"))).await;
    let bodies: [&[u8]; 6] = [
        b"",
        b"{\"a\":1}",
        b"{\"a\":\"\\u0000\"}",
        b"a\0b\xff\xfe",
        b"{\"a\":1,\"a\":2}",
        b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    ];
    for (number, body) in bodies.iter().enumerate() {
        let plain = post("/runs", *body).key(&fresh_key());
        let first = plain.send(to).await;
        assert_eq!((first.status, &first.body[..], first.is_replay()), (200, *body, false));
        let chunked = plain.clone().chunked().send(to).await;
        assert!(chunked.is_replay() && chunked.body == first.body, "in chunks it is the same body");
        assert_eq!(runs.count(), number as u64 + 1);
    }
}

async fn a_body_that_breaks_off_does_not_run(store: Store) {
    use tokio::io::AsyncWriteExt;
    let runs = Runs::default();
    let to = serve(echoing(&runs).layer(store.layer().build().expect("a layer"))).await;
    let key = fresh_key();
    let mut stream = tokio::net::TcpStream::connect(to).await.expect("the server listens");
    let head = format!(
        "POST /runs HTTP/1.1\r\nhost: test\r\nx-tenant: acme\r\nidempotency-key: {key}\r\ncontent-length: 100\r\n\r\nhalf"
    );
    stream.write_all(head.as_bytes()).await.expect("half a request");
    stream.shutdown().await.expect("its end");
    if let Some(refused) = crate::client::Answer::read(stream).await {
        assert_eq!(refused.status, 400);
    }
    assert_eq!(post("/runs", "whole").key(&key).send(to).await.text(), "whole");
    assert_eq!(runs.count(), 1);
}

async fn a_tenant_in_the_body_is_nobodys(store: Store) {
    let runs = Runs::default();
    let to = serve(echoing(&runs).layer(store.layer().build().expect("a layer"))).await;
    let key = fresh_key();
    let body = Json(serde_json::json!({ "tenant": "other" })).to_string();
    assert_eq!(post("/runs", body.clone()).key(&key).send(to).await.status, 200);
    let other = post("/runs", body).without("x-tenant").with("x-tenant", "other").key(&key).send(to).await;
    assert!(!other.is_replay(), "the other tenant's own");
    assert_eq!(runs.count(), 2);
}

async fn a_thousand_keys_in_a_rush(store: Store) {
    const CLIENTS: usize = 20;
    const EACH: usize = 50;
    let runs = Runs::default();
    let to = serve(echoing(&runs).layer(store.layer().build().expect("a layer"))).await;
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        clients.spawn(async move {
            let mut sent = Vec::new();
            for _ in 0..EACH {
                let key = fresh_key();
                let request = post("/runs", key.clone()).key(&key);
                assert_eq!(request.send(to).await.text(), key);
                sent.push(request);
            }
            let last = sent.last().expect("one of them").send(to).await;
            assert!(last.is_replay(), "and none is lost");
        });
    }
    tokio::time::timeout(Duration::from_secs(120), clients.join_all()).await.expect("in time");
    assert_eq!(runs.count(), (CLIENTS * EACH) as u64);
}

on_each_store!(
    bodies_over_the_limit_do_not_run,
    chunked_empty_and_odd_bodies_are_bodies,
    a_body_that_breaks_off_does_not_run,
    a_tenant_in_the_body_is_nobodys,
    a_thousand_keys_in_a_rush,
);
