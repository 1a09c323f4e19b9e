//! Nothing of a request in spans, events, refusals or panics of the `Idempotency-Key` layer. A program of its own: it
//! listens to everything that is traced in the process.

#[path = "http_layer/client.rs"]
#[expect(dead_code, reason = "shared with the tests of the layer, which use all of it")]
mod client;
#[path = "http_layer/support.rs"]
#[expect(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "shared with the tests of the layer, which use all of it"
)]
mod support;

use std::{
    io::Write,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, extract::Request, http::StatusCode, routing::post as on_post};
use tracing_subscriber::fmt::format::FmtSpan;

use crate::{
    client::post,
    support::{Store, serve},
};

const KEY: &str = "canary-key-0123456789abcdef";
const QUOTED: &str = "\"canary-key-in-quotes-012345\"";
const OUTSIDE: &str = "canary key outside the grammar";
const BODY: &str = "{\"note\":\"canary-body-91fe\"}";
const ANSWER: &str = "canary-answer-77aa";
const PANIC: &str = "canary-panic-3b1c";

/// Everything that was traced, as text.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<u8>>>);

impl Write for Heard {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("not poisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A handler that logs its request's headers, as a careless one does, and then does what the path says.
async fn careless(request: Request) -> (StatusCode, &'static str) {
    tracing::info!(headers = ?request.headers(), "careless");
    match request.uri().path() {
        "/panics" => panic!("{PANIC}"),
        "/fails" => (StatusCode::BAD_GATEWAY, ANSWER),
        _ => (StatusCode::CREATED, ANSWER),
    }
}

/// What the refusals said.
async fn requests(store: Store) -> Vec<String> {
    let layer = store.layer().wait(Duration::ZERO).build().expect("a layer");
    let mut said = vec![format!("{layer:?} {store:?}", store = store.requests)];
    let app = Router::new()
        .route("/made", on_post(careless))
        .route("/fails", on_post(careless))
        .route("/panics", on_post(careless));
    let to = serve(app.layer(layer)).await;
    for path in ["/made", "/fails", "/panics"] {
        for key in [KEY, KEY, QUOTED, OUTSIDE] {
            let answer = post(path, BODY).key(key).send(to).await;
            said.extend((answer.status >= 400 && path != "/fails").then(|| answer.text().to_owned()));
        }
        let mismatch = post(path, "{}").key(KEY).send(to).await;
        assert_eq!(mismatch.status, 409);
        said.push(mismatch.text().to_owned());
    }
    said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_key_and_no_body_is_traced_or_said() {
    let heard = Heard::default();
    let writer = heard.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_span_events(FmtSpan::FULL)
        .with_writer(move || writer.clone())
        .init();
    // What a panic prints is the hook's, and a user's hook prints what it likes.
    std::panic::set_hook(Box::new(|_| {}));

    let mut said = requests(Store::memory()).await;
    said.extend(requests(Store::sqlite().await).await);
    if let Some(store) = Store::postgres("secrecy of the layer's traces on PostgreSQL").await {
        said.extend(requests(store).await);
    }
    let heard = String::from_utf8(heard.0.lock().expect("not poisoned").clone()).expect("text");
    assert!(
        heard.contains("idempotency.request") && heard.contains("careless"),
        "the spans are heard at all"
    );
    assert!(heard.contains("idempotency_key_mismatch") && heard.contains("replayed"));
    assert!(said.len() > 10);
    let digest = blake3::hash(KEY.as_bytes()).to_hex();
    for canary in
        [KEY, "canary-key-in-quotes", "outside the grammar", "canary-body", ANSWER, PANIC, &digest[..16]]
    {
        assert!(!heard.contains(canary), "{canary} was traced");
        assert!(said.iter().all(|text| !text.contains(canary)), "{canary} was said");
    }
}
