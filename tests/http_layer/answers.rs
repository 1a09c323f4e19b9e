//! Which answers are given again, and how.

use std::{convert::Infallible, pin::Pin, time::Duration};

use axum::{
    Json, Router,
    body::Body,
    http::{HeaderName, StatusCode, header},
    response::{AppendHeaders, IntoResponse, Response},
    routing::post as on_post,
};
use bytes::Bytes;
use effectual::idempotency_key::{ErrorCode, Streamed};
use effectual_tests::wait;
use http_body::Frame;
use tokio::sync::mpsc;

use crate::{
    client::{Answer, Request, fresh_key, post},
    support::{Runs, Store, on_each_store, serve},
};

/// An application whose every answer is `answer` of the run's number, counted from 1.
fn answering<R: IntoResponse>(
    runs: &Runs,
    answer: impl Fn(u64) -> R + Clone + Send + Sync + 'static,
) -> Router {
    let runs = runs.clone();
    Router::new().route("/runs", on_post(move || async move { answer(runs.one()).into_response() }))
}

async fn twice(store: &Store, app: Router) -> (Answer, Answer) {
    let to = serve(app.layer(store.layer().response_body_max(256 << 10).build().expect("a layer"))).await;
    let request = post("/runs", "{}").key(&fresh_key());
    (request.send(to).await, request.send(to).await)
}

async fn f65_headers_of_a_replay(store: Store) {
    let runs = Runs::default();
    let app = answering(&runs, |run| {
        let name = HeaderName::from_static;
        let headers = AppendHeaders([
            (header::LOCATION, "/runs/1".to_owned()),
            (header::ETAG, "\"v1\"".to_owned()),
            (header::SET_COOKIE, format!("session={run}")),
            (header::DATE, "Thu, 01 Jan 1970 00:00:00 GMT".to_owned()),
            (name("x-request-id"), format!("r-{run}")),
            (name("x-hop"), "1".to_owned()),
            (header::CONNECTION, "X-Hop".to_owned()),
            (header::VARY, "a".to_owned()),
            (header::VARY, "b".to_owned()),
        ]);
        (StatusCode::CREATED, headers, Json(serde_json::json!({ "run": run })))
    });
    let (first, again) = twice(&store, app).await;
    assert_eq!((first.header("set-cookie"), first.header("x-request-id")), (Some("session=1"), Some("r-1")));
    assert_eq!((first.status, first.is_replay()), (201, false));
    assert_eq!((again.status, again.is_replay(), &again.body), (201, true, &first.body));
    for name in ["location", "etag", "content-type", "content-length"] {
        assert_eq!(again.header(name), first.header(name), "{name}");
    }
    for name in ["set-cookie", "x-request-id", "x-hop"] {
        assert_eq!(again.header(name), None, "{name}");
    }
    assert_ne!(again.header("date"), Some("Thu, 01 Jan 1970 00:00:00 GMT"), "the server's own, if any");
    assert_eq!(again.headers.iter().filter(|(name, _)| name == "vary").count(), 2);
}

async fn f66_a_body_over_the_limit(store: Store) {
    for over in [0, 1] {
        let runs = Runs::default();
        let body = vec![b'x'; (256 << 10) + over];
        let (first, again) = twice(&store, answering(&runs, move |_| body.clone())).await;
        assert_eq!((first.status, first.body.len()), (200, (256 << 10) + over));
        if over == 0 {
            assert!(again.is_replay() && again.body == first.body);
        } else {
            assert_eq!(first.header("openwop-idempotent-replayable"), Some("false"));
            again.is_refused(409, "idempotency_response_unavailable");
        }
        assert_eq!(runs.count(), 1);
    }
}

async fn f67_a_failure_runs_again_under_its_key_only(store: Store) {
    for status in [500, 502, 503, 504, 408, 425, 429] {
        let runs = Runs::default();
        let app = answering(&runs, move |run| match run {
            1 => StatusCode::from_u16(status).expect("a status"),
            _ => StatusCode::ACCEPTED,
        });
        let to = serve(app.layer(store.layer().build().expect("a layer"))).await;
        let request = post("/runs", "{}").key(&fresh_key());
        assert_eq!(request.send(to).await.status, status);
        let other = Request { body: b"[]".to_vec(), ..request.clone() }.send(to).await;
        other.is_refused(409, "idempotency_key_mismatch");
        let again = request.send(to).await;
        assert_eq!((again.status, again.is_replay()), (202, false), "after {status}");
        let replay = request.send(to).await;
        assert_eq!((replay.status, replay.is_replay()), (202, true), "the later final answer is kept");
        assert_eq!(runs.count(), 2);
    }
}

async fn f68_a_refused_body_may_be_corrected(store: Store) {
    let shape = |code: &str| Json(serde_json::json!({ "error": code, "message": "no" }));
    let refusals: [(&str, Response); 4] = [
        ("the body's code", (StatusCode::BAD_REQUEST, shape("validation_error")).into_response()),
        (
            "the mark",
            (StatusCode::BAD_REQUEST, axum::Extension(ErrorCode::new("validation_error")), "no")
                .into_response(),
        ),
        ("unauthorized", (StatusCode::UNAUTHORIZED, shape("unauthorized")).into_response()),
        ("forbidden", (StatusCode::FORBIDDEN, "no").into_response()),
    ];
    for (what, refusal) in refusals {
        let runs = Runs::default();
        let refusal = std::sync::Mutex::new(Some(refusal));
        let refusal = std::sync::Arc::new(refusal);
        let app = answering(&runs, move |_| {
            refusal.lock().expect("not poisoned").take().unwrap_or_else(|| "made".into_response())
        });
        let to = serve(app.layer(store.layer().build().expect("a layer"))).await;
        let request = post("/runs", "{}").key(&fresh_key());
        let refused = request.send(to).await;
        assert!((400..=403).contains(&refused.status), "{what}: {refused:?}");
        let corrected = Request { body: b"{\"a\":1}".to_vec(), ..request.clone() };
        let made = corrected.send(to).await;
        assert_eq!((made.text(), made.is_replay()), ("made", false), "{what}");
        assert!(corrected.send(to).await.is_replay(), "{what}");
        request.send(to).await.is_refused(409, "idempotency_key_mismatch");
        assert_eq!(runs.count(), 2, "{what}");
    }
}

async fn f74_a_final_refusal_keeps_its_status(store: Store) {
    let runs = Runs::default();
    let refusal = (StatusCode::UNPROCESSABLE_ENTITY, "{\"error\":\"declined\",\"message\":\"no\"}");
    let app = answering(&runs, move |_| refusal);
    let to = serve(app.layer(store.layer().build().expect("a layer"))).await;
    let request = post("/runs", "{}").key(&fresh_key());
    let (first, again) = (request.send(to).await, request.send(to).await);
    assert_eq!((again.status, again.is_replay(), again.body), (422, true, first.body));
    let other = Request { body: b"{\"a\":1}".to_vec(), ..request }.send(to).await;
    other.is_refused(409, "idempotency_key_mismatch");
    assert_eq!(runs.count(), 1);
}

async fn a_code_marked_retriable_is_not_final(store: Store) {
    let runs = Runs::default();
    let app = answering(&runs, |_| {
        (StatusCode::CONFLICT, Json(serde_json::json!({ "error": "provider_busy", "message": "later" })))
    });
    let layer = store.layer().retriable_code("provider_busy").build().expect("a layer");
    let to = serve(app.layer(layer)).await;
    let request = post("/runs", "{}").key(&fresh_key());
    for _ in 0..2 {
        let answer = request.send(to).await;
        assert_eq!((answer.status, answer.is_replay()), (409, false));
    }
    assert_eq!(runs.count(), 2);
}

/// A body whose frames come as they are sent.
struct Frames(mpsc::UnboundedReceiver<Bytes>);

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|data| data.map(|data| Ok(Frame::data(data))))
    }
}

/// A body of three chunks, each of which comes when the runtime has done other things.
fn in_three(run: u64) -> Body {
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for chunk in ["one ", "two ", "three"] {
            tokio::time::timeout(Duration::from_millis(20), std::future::pending::<()>())
                .await
                .expect_err("it is late");
            drop(sender.send(Bytes::from(format!("{chunk}{run}"))));
        }
    });
    Body::new(Frames(receiver))
}

async fn f70_a_body_in_pieces_is_replayed_byte_for_byte(store: Store) {
    let runs = Runs::default();
    let (first, again) = twice(&store, answering(&runs, in_three)).await;
    assert_eq!(
        (first.text(), again.text(), again.is_replay()),
        ("one 1two 1three1", "one 1two 1three1", true)
    );
    let runs = Runs::default();
    let (first, again) = twice(&store, answering(&runs, |_| StatusCode::NO_CONTENT)).await;
    assert_eq!((first.status, again.status, again.body.len(), again.is_replay()), (204, 204, 0, true));
    assert_eq!(again.header("content-length"), None);
    let runs = Runs::default();
    let bytes: Vec<u8> = (0..=255).collect();
    let (first, again) = twice(&store, answering(&runs, move |_| bytes.clone())).await;
    assert_eq!((&first.body, again.is_replay()), (&again.body, true), "bytes that are no text");
}

async fn f69_a_stream_passes_and_is_not_run_again(store: Store) {
    let kinds: [fn(u64) -> Response; 2] = [
        |run| ([(header::CONTENT_TYPE, "text/event-stream")], in_three(run)).into_response(),
        |run| (axum::Extension(Streamed), in_three(run)).into_response(),
    ];
    for kind in kinds {
        let runs = Runs::default();
        let (first, again) = twice(&store, answering(&runs, kind)).await;
        assert_eq!((first.status, first.text()), (200, "one 1two 1three1"));
        assert_eq!(first.header("openwop-idempotent-replayable"), Some("false"));
        again.is_refused(409, "idempotency_response_unavailable");
        assert_eq!(runs.count(), 1);
    }
}

async fn a_body_that_does_not_end_in_time_is_a_stream(store: Store) {
    let runs = Runs::default();
    let (sender, receiver) = mpsc::unbounded_channel();
    sender.send(Bytes::from_static(b"first ")).expect("it is received");
    let body = std::sync::Arc::new(std::sync::Mutex::new(Some(Body::new(Frames(receiver)))));
    let app = answering(&runs, move |_| body.lock().expect("not poisoned").take().expect("one run"));
    let layer = store.layer().stream_after(Duration::from_millis(50)).build().expect("a layer");
    let to = serve(app.layer(layer)).await;
    let request = post("/runs", "{}").key(&fresh_key());
    let first = request.start(to).await;
    wait::until("the first to run", Duration::from_secs(20), async || runs.count() == 1).await;
    // It is answered while its body goes on, so that its record says so by now or soon.
    let again = wait::for_value(Duration::from_secs(20), async || {
        let again = request.send(to).await;
        (again.code() != "idempotency_in_flight").then_some(again)
    });
    let again = again.await.expect("the record of a stream");
    again.is_refused(409, "idempotency_response_unavailable");
    sender.send(Bytes::from_static(b"last")).expect("it is received");
    drop(sender);
    let first = Answer::read(first).await.expect("an answer");
    assert_eq!(first.text(), "first last");
    assert_eq!(runs.count(), 1);
}

async fn f71_end_to_end(store: Store) {
    let runs = Runs::default();
    let app = answering(&runs, |run| {
        (StatusCode::CREATED, [(header::LOCATION, format!("/runs/{run}"))], format!("run {run}"))
    });
    let (first, again) = twice(&store, app).await;
    let of =
        |answer: &Answer| (answer.status, answer.header("location").map(str::to_owned), answer.body.clone());
    assert_eq!(of(&first), (201, Some("/runs/1".to_owned()), b"run 1".to_vec()));
    assert_eq!(of(&again), of(&first));
    assert_eq!(runs.count(), 1, "a second run would have made another");
}

on_each_store!(
    f65_headers_of_a_replay,
    f66_a_body_over_the_limit,
    f67_a_failure_runs_again_under_its_key_only,
    f68_a_refused_body_may_be_corrected,
    f69_a_stream_passes_and_is_not_run_again,
    f70_a_body_in_pieces_is_replayed_byte_for_byte,
    f71_end_to_end,
    f74_a_final_refusal_keeps_its_status,
    a_code_marked_retriable_is_not_final,
    a_body_that_does_not_end_in_time_is_a_stream,
);
