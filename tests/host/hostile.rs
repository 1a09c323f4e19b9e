//! What no honest caller sends: clear errors, nothing lost, memory bounded.

use std::{sync::Arc, time::Instant};

use effectual_tests::wire::{Request, raw};
use serde_json::json;
use tokio::task::JoinSet;

use crate::{
    keys::runs_in,
    on_each_database,
    serve::{ACME, Host, Place, key, noop},
};

/// Header, body and path of every bad kind; after each of them the host serves on, and nothing was started.
async fn bad_requests_start_nothing(place: Place) {
    let host = Host::start(&place).await;
    let create = || Request::post("/runs", noop().to_string()).bearer(ACME);
    let long = "k".repeat(129);
    for key in [
        "",
        "short",
        &"k".repeat(21),
        &long,
        "has a space in it, which is none",
        "clé-clé-clé-clé-clé-clé",
        "\"0123456789012345678901\"",
    ] {
        let answer = host.send(create().header("Idempotency-Key", key)).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]),
            (400, &json!("idempotency_key_invalid")),
            "{key:?}"
        );
    }
    let twice = create().header("Idempotency-Key", &key()).header("Idempotency-Key", &key());
    let answer = host.send(twice).await;
    assert_eq!((answer.status, &answer.json()["error"]), (400, &json!("idempotency_key_invalid")));
    let keyed = |body: &[u8]| Request::post("/runs", body).bearer(ACME).header("Idempotency-Key", &key());
    let large = vec![b' '; 10 << 20];
    for (request, status, error) in [
        (keyed(&large), 413, "payload_too_large"),
        (Request::post("/runs", large.clone()).bearer(ACME), 413, "payload_too_large"),
        (keyed(b""), 400, "validation_error"),
        (keyed(b"\0"), 400, "validation_error"),
        (keyed(b"\xff\xfe"), 400, "validation_error"),
        (keyed(b"[[[[[[[[[[[[[[[["), 400, "validation_error"),
        (keyed("[".repeat(100_000).as_bytes()), 400, "validation_error"),
    ] {
        let answer = host.send(request).await;
        assert_eq!((answer.status, answer.json()["error"].as_str()), (status, Some(error)));
    }
    assert_eq!(runs_in(&place).await, 0);
    assert_eq!(host.create(&key(), &noop()).await.status, 201, "it serves on");
}

/// Chunked bodies are bodies; ones that break off start nothing.
async fn chunked_bodies_are_bodies(place: Place) {
    let host = Host::start(&place).await;
    let key = key();
    let head = format!(
        "POST /runs HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAuthorization: Bearer {ACME}\r\nIdempotency-Key: {key}\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let body = noop().to_string();
    let (one, other) = body.split_at(5);
    let chunks = format!("{:x}\r\n{one}\r\n{:x}\r\n{other}\r\n0\r\n\r\n", one.len(), other.len());
    let first = raw(&host.authority, [head.as_bytes(), chunks.as_bytes()].concat()).await.expect("an answer");
    assert_eq!(first.status, 201, "{first:?}");
    let again = host.create(&key, &noop()).await;
    assert_eq!(
        (again.status, &again.body),
        (201, &first.body),
        "the same request, whichever way it is framed"
    );
    let broken = head.replace(&key, &crate::serve::key()) + "5\r\n{\"wor\r\nnot a size\r\n";
    // It is refused or cut off; either way nothing starts.
    if let Ok(answer) = raw(&host.authority, broken.into_bytes()).await {
        assert_eq!(answer.status / 100, 4, "{answer:?}");
    }
    assert_eq!(runs_in(&place).await, 1);
}

on_each_database!(bad_requests_start_nothing, chunked_bodies_are_bodies);

/// Thousands of distinct keys, a body each: all of them start a run, and the process does not grow with them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_keys_are_as_many_runs() {
    const KEYS: usize = 3_000;
    let place = Place::sqlite();
    let host = Arc::new(Host::start(&place).await);
    let started = Instant::now();
    let mut sending = JoinSet::new();
    for worker in 0..32 {
        let host = Arc::clone(&host);
        sending.spawn(async move {
            let share = (worker..KEYS).step_by(32).count();
            for _ in 0..share {
                let answer = host
                    .create(
                        &key(),
                        &json!({ "workflowId": "conformance-noop", "inputs": { "worker": worker } }),
                    )
                    .await;
                assert_eq!(answer.status, 201, "{answer:?}");
            }
        });
    }
    sending.join_all().await;
    println!("{KEYS} keys in {:?}", started.elapsed());
    assert_eq!(runs_in(&place).await, i64::try_from(KEYS).expect("small"));
}
