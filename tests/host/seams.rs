//! The test seams, as a conformance suite drives them.

use serde_json::{Value, json};

use crate::{
    on_each_database,
    receiver::Receiver,
    serve::{Host, Place, key, noop, run_of},
};

const SEAMS: &str = "/conformance/seams/sample/test";

fn each<'a>(rows: &'a [Value], field: &str) -> Vec<&'a Value> {
    rows.iter().map(|row| &row[field]).collect()
}

/// One effect, two attempts, one key, on the wire as in the witness; whichever way the first attempt ends.
async fn an_effect_that_is_retried_shows_what_its_provider_saw(place: Place) {
    let host = Host::start(&place).await;
    for cut in [1, 0] {
        let receiver = Receiver::start(cut).await;
        let path = format!("{SEAMS}/idempotency/effect-retry");
        let answer = host.post(&path, json!({ "providerUrl": receiver.url() })).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let (run, effect) = (run_of(&answer), answer.json()["effectId"].clone());
        let rows = host.effects(&run).await;
        assert_eq!(each(&rows, "effectId"), [&effect, &effect]);
        assert_eq!(each(&rows, "attempt"), [1, 2]);
        assert_eq!(each(&rows, "state"), ["escaped", "completed"]);
        assert_eq!(each(&rows, "keying"), ["business-identity", "business-identity"]);
        let seen: Vec<_> = receiver.keys().into_iter().map(|key| json!(key.expect("a key"))).collect();
        assert_eq!(each(&rows, "providerKey"), seen.iter().collect::<Vec<_>>());
        assert_eq!(seen[0], seen[1]);
        assert_eq!(host.status(&run).await, "completed");
    }
    // Nobody is there: known not to have been performed, twice.
    let answer = host
        .post(&format!("{SEAMS}/idempotency/effect-retry"), json!({ "providerUrl": "http://127.0.0.1:1/" }))
        .await;
    let rows = host.effects(&run_of(&answer)).await;
    assert_eq!(
        (each(&rows, "attempt"), each(&rows, "state")),
        (vec![&json!(1), &json!(2)], vec![&json!("released"); 2])
    );
    assert_eq!(host.status(&run_of(&answer)).await, "failed");
}

/// One run delivered twice at once performs its effect once.
async fn duplicate_delivery_is_one_arrival(place: Place) {
    let host = Host::start(&place).await;
    for _ in 0..10 {
        let receiver = Receiver::start(0).await;
        let body = json!({ "mode": "duplicate-delivery", "effectUrl": receiver.url() });
        let answer = host.post("/host/durability/kill", body).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let run = run_of(&answer);
        assert_eq!(host.until_over(&run).await, "completed");
        let rows = host.effects(&run).await;
        assert_eq!((receiver.keys().len(), rows.len()), (1, 1));
    }
}

/// While a create is held its equal is refused, by the layer and not by the seam; afterwards it is the held one's answer.
async fn a_held_create_refuses_its_equal(place: Place) {
    let host = Host::start(&place).await;
    let key = key();
    let armed = host.post(&format!("{SEAMS}/idempotency/hold"), json!({ "key": key, "holdMs": 1_500 })).await;
    assert_eq!(armed.status, 201, "{armed:?}");
    let body = noop();
    let mut refused = 0;
    let held = host.create(&key, &body);
    let refusals = async {
        // Whichever of them comes first is held; then one is refused.
        let answer = host.create(&key, &body).await;
        if answer.status == 409 {
            refused += 1;
            assert_eq!(answer.json()["error"], "idempotency_in_flight");
            assert!(answer.header("retry-after").is_some_and(|after| after.parse::<u32>().is_ok()));
            let details = answer.json()["details"].clone();
            assert!(!details.to_string().to_lowercase().contains("retry"), "{details}");
        }
        answer
    };
    let (held, other) = tokio::join!(held, refusals);
    let statuses = [held.status.min(other.status), held.status.max(other.status)];
    assert_eq!(statuses, [201, 409], "one is held and the other is refused");
    let again = host.create(&key, &body).await;
    assert_eq!((again.status, again.header("openwop-idempotent-replay")), (201, Some("true")));
    let first = if held.status == 201 { held } else { other };
    assert_eq!(again.body, first.body);
}

on_each_database!(
    an_effect_that_is_retried_shows_what_its_provider_saw,
    duplicate_delivery_is_one_arrival,
    a_held_create_refuses_its_equal,
);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partition_converges_on_the_first_run() {
    let host = Host::start(&Place::sqlite()).await;
    let claim = |run: &str, tenant: &str, region: &str| json!({ "runId": run, "tenantId": tenant, "endpoint": "POST /runs", "key": "idem-1", "region": region });
    let claims = [claim("run-c", "t1", "r1"), claim("run-a", "t1", "r2"), claim("run-b", "t1", "r3")];
    let path = format!("{SEAMS}/multi-region/simulate-partition");
    for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
        let answer = host.post(&path, json!({ "claims": order.map(|at| claims[at].clone()) })).await;
        let said = answer.json();
        assert_eq!((answer.status, &said["winner"]), (200, &claims[1]));
        assert_eq!(said["losers"], json!([claims[2], claims[0]]));
        assert_eq!(said["loserCancelReason"], "cross_region_dedup_loss");
        let redirects = said["cacheRedirects"].as_array().expect("a list");
        assert_eq!(redirects.len(), 3);
        assert!(redirects.iter().all(|redirect| redirect["redirectToRunId"] == "run-a"));
    }
    for claims in [json!([claims[0]]), json!([]), json!([claims[0], claim("run-d", "t2", "r2")])] {
        let answer = host.post(&path, json!({ "claims": claims })).await;
        assert_eq!((answer.status, &answer.json()["error"]), (400, &json!("validation_error")));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seam_takes_what_it_says_and_no_more() {
    let host = Host::start(&Place::sqlite()).await;
    let key = key();
    for (path, body) in [
        ("idempotency/effect-retry", json!({})),
        ("idempotency/effect-retry", json!({ "providerUrl": "ftp://x/" })),
        ("idempotency/effect-retry", json!({ "providerUrl": "http://x/", "more": 1 })),
        ("idempotency/hold", json!({ "key": "short", "holdMs": 5 })),
        ("idempotency/hold", json!({ "key": key, "holdMs": 0 })),
        ("idempotency/hold", json!({ "key": key, "holdMs": 10_001 })),
        ("idempotency/hold", json!({ "key": key, "holdMs": 1.5 })),
    ] {
        let answer = host.post(&format!("{SEAMS}/{path}"), body.clone()).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]),
            (400, &json!("validation_error")),
            "{path} {body}"
        );
    }
    let answer =
        host.post("/host/durability/kill", json!({ "mode": "after-accept", "effectUrl": "http://x/" })).await;
    assert_eq!(answer.status, 400, "it kills nothing");
    assert_eq!(host.get("/host/durability/kill").await.json(), json!({ "modes": ["duplicate-delivery"] }));
}
