//! Requests under one key, many at once.

use std::{collections::BTreeMap, sync::Arc};

use effectual_tests::wire::Answer;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    on_each_database,
    serve::{Host, Place, key, noop, run_of},
};

const MANY: usize = 50;

/// Sends the same request to these hosts, `MANY` times at once.
pub(crate) async fn at_once(hosts: &[Arc<Host>], key: &str, body: &Value) -> Vec<Answer> {
    let mut sending = JoinSet::new();
    for number in 0..MANY {
        let host = Arc::clone(&hosts[number % hosts.len()]);
        let (key, body) = (key.to_owned(), body.clone());
        sending.spawn(async move { host.create(&key, &body).await });
    }
    sending.join_all().await
}

/// One answer is the run's own; every other is that one, marked, or in flight.
pub(crate) fn one_run_among(answers: &[Answer]) -> String {
    let mut counts = BTreeMap::new();
    let mut body = None;
    for answer in answers {
        let replayed = answer.header("openwop-idempotent-replay") == Some("true");
        *counts.entry((answer.status, replayed)).or_insert(0) += 1;
        match answer.status {
            201 => assert_eq!(body.get_or_insert(&answer.body), &&answer.body, "all bodies are equal"),
            _ => assert_eq!(answer.json()["error"], "idempotency_in_flight", "{answer:?}"),
        }
    }
    assert_eq!(counts.get(&(201, false)), Some(&1), "one execution: {counts:?}");
    assert!(counts.keys().all(|(status, _)| [201, 409].contains(status)), "{counts:?}");
    serde_json::from_slice::<Value>(body.expect("an answer")).expect("JSON")["runId"]
        .as_str()
        .expect("a run")
        .to_owned()
}

/// The handler ran once: as many runs are in the host's table as there were keys.
async fn f73_fifty_at_once_under_one_key_are_one_run(place: Place) {
    let host = Arc::new(Host::start(&place).await);
    let before = runs_in(&place).await;
    for round in 0..5 {
        let key = key();
        let run = one_run_among(&at_once(&[Arc::clone(&host)], &key, &noop()).await);
        let again = host.create(&key, &noop()).await;
        assert_eq!((again.status, run_of(&again)), (201, run));
        assert_eq!(runs_in(&place).await, before + round + 1, "one row for each key");
    }
}

/// Another body under the key is refused and runs nothing; another endpoint is another record.
async fn another_body_under_the_key_is_a_mismatch(place: Place) {
    let host = Host::start(&place).await;
    let key = key();
    let first =
        host.create(&key, &json!({ "workflowId": "conformance-noop", "inputs": { "a": 1, "b": 2 } })).await;
    let reordered =
        host.create(&key, &json!({ "inputs": { "b": 2, "a": 1 }, "workflowId": "conformance-noop" })).await;
    assert_eq!((first.status, &first.body), (201, &reordered.body), "the order of fields says nothing");
    let other = host.create(&key, &json!({ "workflowId": "conformance-noop", "inputs": { "a": 2 } })).await;
    assert_eq!((other.status, &other.json()["error"]), (409, &json!("idempotency_key_mismatch")));
    assert_ne!(other.body, first.body);
    assert_eq!(runs_in(&place).await, 1);
    // A final refusal is kept as well, and one that a correction mends is not.
    let unknown = json!({ "workflowId": "none" });
    let final_key = crate::serve::key();
    for replayed in [None, Some("true")] {
        let answer = host.create(&final_key, &unknown).await;
        assert_eq!((answer.status, answer.header("openwop-idempotent-replay")), (404, replayed));
    }
    let corrected = crate::serve::key();
    let wrong = host.create(&corrected, &json!({ "workflowId": "conformance-noop", "inputs": 1 })).await;
    assert_eq!((wrong.status, &wrong.json()["error"]), (400, &json!("validation_error")));
    assert_eq!(
        host.create(&corrected, &noop()).await.status,
        201,
        "f68: a corrected body is a fresh request"
    );
}

on_each_database!(f73_fifty_at_once_under_one_key_are_one_run, another_body_under_the_key_is_a_mismatch,);

/// How many runs the host has stored.
pub(crate) async fn runs_in(place: &Place) -> i64 {
    count(place, "SELECT count(*) FROM host_runs").await
}

/// How many keys have a record.
pub(crate) async fn records_in(place: &Place) -> i64 {
    count(place, "SELECT count(*) FROM effectual_requests").await
}

async fn count(place: &Place, count: &'static str) -> i64 {
    use sqlx::Connection;
    match place {
        Place::Sqlite(file) => {
            let url = format!("sqlite://{}", file.path().display());
            let mut connection = sqlx::SqliteConnection::connect(&url).await.expect("the file");
            sqlx::query_scalar(count).fetch_one(&mut connection).await.expect("the count")
        }
        Place::Postgres(database) => {
            let mut connection = sqlx::PgConnection::connect(&database.url()).await.expect("a connection");
            sqlx::query_scalar(count).fetch_one(&mut connection).await.expect("the count")
        }
    }
}
