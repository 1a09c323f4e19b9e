//! Runs: starting, reading, cancelling them, and after a restart; whose they are; what the host says of itself.

use effectual_tests::wire::Request;
use serde_json::json;

use crate::{
    on_each_database,
    receiver::Receiver,
    serve::{ACME, ACME_ROTATED, GLOBEX, Host, Place, key, noop, run_of},
};

/// A request that came twice is one run, and what its run did is there to be read.
async fn the_whole_life_of_a_run(place: Place) {
    let host = Host::start(&place).await;
    let key = key();
    let first = host.create(&key, &noop()).await;
    let again = host.create(&key, &noop()).await;
    assert_eq!((first.status, &first.body), (201, &again.body));
    assert_eq!(again.header("openwop-idempotent-replay"), Some("true"));
    let run = run_of(&first);
    assert!(run.starts_with("acme/"), "{run}");
    let location = first.header("location").expect("where it is").to_owned();
    assert_eq!(again.header("location"), Some(location.as_str()));
    assert_eq!(host.get(&location).await.json()["runId"], run.as_str());
    assert_eq!(host.until_over(&run).await, "completed");
    assert_eq!(host.effects(&run).await, Vec::<serde_json::Value>::new(), "this workflow performs none");

    let snapshot = host.get(&format!("/runs/{run}")).await.json();
    assert_eq!(snapshot["workflowId"], "conformance-noop");
    assert_eq!(snapshot["owner"]["tenant"], "acme");
    for spelled in [run.replace('/', "%2F"), run.replace('/', "~2F"), run.clone()] {
        assert_eq!(host.get(&format!("/runs/{spelled}")).await.json()["runId"], run.as_str(), "{spelled}");
        assert_eq!(host.get(&format!("/runs/{spelled}/effects")).await.json()["runId"], run.as_str());
    }

    // An effect: its run has a row, and the receiver one message under the key in that row.
    let receiver = Receiver::start(0).await;
    let body = json!({ "mode": "duplicate-delivery", "effectUrl": receiver.url() });
    let delivered = host.post("/host/durability/kill", body).await;
    assert_eq!(delivered.status, 201, "{delivered:?}");
    let rows = host.effects(&run_of(&delivered)).await;
    assert_eq!(rows.len(), 1);
    assert_eq!((&rows[0]["nodeId"], &rows[0]["state"]), (&json!("deliver"), &json!("completed")));
    assert_eq!(receiver.keys(), [rows[0]["providerKey"].as_str().map(str::to_owned)]);
    host.stop().await;
}

/// A delay ends by itself, is cancelled once, and is over when it is over.
async fn a_run_is_over_once(place: Place) {
    let host = Host::start(&place).await;
    let delay = |ms: u64| json!({ "workflowId": "conformance-delay", "inputs": { "delayMs": ms } });
    let (short, long) = (host.started(delay(300)).await, host.started(delay(600_000)).await);
    assert_eq!(host.status(&long).await, "running");
    let cancel = format!("/runs/{}/cancel", long.replace('/', "~2F"));
    for _ in 0..2 {
        let answer = host.post(&cancel, json!({})).await;
        assert_eq!((answer.status, answer.json()), (200, json!({ "runId": long, "status": "cancelled" })));
    }
    assert_eq!(host.until_over(&short).await, "completed");
    let answer = host.post(&format!("/runs/{short}/cancel"), json!({})).await;
    assert_eq!((answer.status, &answer.json()["error"]), (409, &json!("run_terminal")));
    assert_eq!(host.status(&long).await, "cancelled");
}

/// What was started before the process ended is there after it.
async fn runs_survive_a_restart(place: Place) {
    let host = Host::start(&place).await;
    let key = key();
    let body = json!({ "workflowId": "conformance-delay", "inputs": { "delayMs": 500, "text": "a\u{0}b" } });
    let first = host.create(&key, &body).await;
    let done = host.started(noop()).await;
    assert_eq!(host.until_over(&done).await, "completed");
    host.kill();

    let host = Host::start(&place).await;
    let again = host.create(&key, &body).await;
    assert_eq!((again.status, &again.body), (201, &first.body), "the answer outlives the process");
    assert_eq!(again.header("openwop-idempotent-replay"), Some("true"));
    let run = run_of(&first);
    assert_eq!(host.until_over(&run).await, "completed");
    assert_eq!(host.get(&format!("/runs/{run}")).await.json()["inputs"], body["inputs"]);
    assert_eq!(host.status(&done).await, "completed");
    host.stop().await;
}

/// Nobody reads or changes what is another's, and learns nothing of it.
async fn a_run_is_its_tenants_alone(place: Place) {
    let host = Host::start(&place).await;
    let run =
        host.started(json!({ "workflowId": "conformance-delay", "inputs": { "delayMs": 600_000 } })).await;
    for path in [run.clone(), run.replace('/', "%2F"), "acme/0123456789abcdef".to_owned()] {
        for request in [
            Request::get(&format!("/runs/{path}")),
            Request::get(&format!("/runs/{path}/effects")),
            Request::post(&format!("/runs/{path}/cancel"), "{}"),
        ] {
            let answer = host.send(request.clone().bearer(GLOBEX)).await;
            assert_eq!((answer.status, &answer.json()["error"]), (403, &json!("id_tenant_mismatch")));
            let answer = host.send(request.clone()).await;
            assert_eq!((answer.status, &answer.json()["error"]), (401, &json!("unauthenticated")));
        }
    }
    assert_eq!(host.status(&run).await, "running");
    // One key, two tenants: two runs. One tenant, two credentials: one.
    let key = key();
    let as_tenant = async |credential: &str| {
        let request = Request::post("/runs", noop().to_string()).bearer(credential);
        run_of(&host.send(request.header("Idempotency-Key", &key)).await)
    };
    let (acme, globex, rotated) =
        (as_tenant(ACME).await, as_tenant(GLOBEX).await, as_tenant(ACME_ROTATED).await);
    assert!(globex.starts_with("globex/"));
    assert_eq!(acme, rotated, "f34: a rotated credential is the same tenant");
    // A tenant in the body is not believed.
    let answer = host.post("/runs", json!({ "workflowId": "conformance-noop", "tenantId": "globex" })).await;
    assert_eq!((answer.status, &answer.json()["error"]), (403, &json!("id_tenant_mismatch")));
    let answer = host.post("/runs", json!({ "workflowId": "conformance-noop", "tenantId": "acme" })).await;
    assert_eq!(answer.status, 201);
}

on_each_database!(
    the_whole_life_of_a_run,
    a_run_is_over_once,
    runs_survive_a_restart,
    a_run_is_its_tenants_alone,
);

/// Discovery needs no credential, and names exactly what there is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_discovery_document_says_what_is_there_and_nothing_else() {
    let place = Place::sqlite();
    let host = Host::start_with(&place, &[]).await;
    let answer = host.send(Request::get("/.well-known/openwop").header("OpenWOP-Version", "2.0")).await;
    let mut expected = json!({
        "protocolVersions": ["2.0"],
        "preferredVersion": "2.0",
        "implementation": { "name": "effectual-example-host", "version": env!("CARGO_PKG_VERSION") },
        "fixtures": ["conformance-noop", "conformance-delay"],
        "idempotency": {
            "layer1RetentionSeconds": 86_400,
            "layer2RetentionSeconds": 2_592_000,
            "crossRegion": "single-region",
        },
    });
    assert_eq!((answer.status, answer.json()), (200, expected.clone()), "no test seams, no multiRegion");
    // What is not advertised is not there.
    for path in [
        "/conformance/seams/sample/test/idempotency/effect-retry",
        "/conformance/seams/sample/test/idempotency/hold",
        "/conformance/seams/sample/test/multi-region/simulate-partition",
        "/host/durability/kill",
    ] {
        let answer = host.post(path, json!({})).await;
        assert_eq!((answer.status, &answer.json()["error"]), (404, &json!("not_found")), "{path}");
    }
    host.stop().await;
    let host = Host::start(&place).await;
    expected["conformance"] = json!({ "seamsProfile": "openwop-conformance-seams-v2" });
    assert_eq!(host.send(Request::get("/.well-known/openwop")).await.json(), expected);
}

/// Refusals have one shape, and a refused version is refused before anything else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_have_one_shape() {
    let host = Host::start(&Place::sqlite()).await;
    for (request, status, error) in [
        (Request::get("/runs/acme/0123456789abcdef").bearer(ACME), 404, "not_found"),
        (Request::get("/nothing").bearer(ACME), 404, "not_found"),
        (Request::get("/nothing"), 401, "unauthenticated"),
        (Request::new("DELETE", "/runs/acme/0123456789abcdef").bearer(ACME), 405, "method_not_allowed"),
        (Request::get("/runs/acme~2").bearer(ACME), 400, "validation_error"),
        (Request::post("/runs", "{").bearer(ACME), 400, "validation_error"),
        (Request::post("/runs", "").bearer(ACME), 400, "validation_error"),
        (Request::post("/runs", "{\"inputs\":{}}").bearer(ACME), 400, "validation_error"),
        (
            Request::post("/runs", "{\"workflowId\":\"conformance-noop\",\"x\":1}").bearer(ACME),
            400,
            "validation_error",
        ),
        (
            Request::post("/runs", "{\"workflowId\":\"conformance-delay\",\"inputs\":{\"delayMs\":-1}}")
                .bearer(ACME),
            400,
            "validation_error",
        ),
        (Request::post("/runs", "{\"workflowId\":\"none\"}").bearer(ACME), 404, "not_found"),
        (
            Request::get("/.well-known/openwop").header("OpenWOP-Version", "1.11"),
            406,
            "protocol_version_unsupported",
        ),
    ] {
        let answer = host.send(request.clone()).await;
        assert_eq!((answer.status, answer.json()["error"].as_str()), (status, Some(error)), "{request:?}");
    }
}
