//! A store that does not answer: nothing runs without a record, and a handler that has lost its own is stopped.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use axum::{Router, routing::post as on_post};
use effectual::{
    LedgerError, LedgerErrorKind, Tenant,
    idempotency_key::{IdempotencyKeyLayer, MemoryRequests, RequestStore},
    ledger::requests::{Begin, Begun, Change, Changed, Owner, RecordKey, RequestRecord},
};
use effectual_tests::wait;
use tokio::sync::Notify;

use crate::{
    client::{Answer, fresh_key, post},
    support::{Runs, serve},
};

const LIMIT: Duration = Duration::from_secs(20);

/// Records in memory, whose store answers only while it is up.
#[derive(Debug, Clone)]
struct Failing {
    kept: MemoryRequests,
    is_down: Arc<AtomicBool>,
}

impl Failing {
    fn new(kept: MemoryRequests) -> Self {
        Self { kept, is_down: Arc::default() }
    }

    fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::SeqCst);
    }

    fn up(&self) -> Result<&MemoryRequests, LedgerError> {
        let down = self.is_down.load(Ordering::SeqCst);
        if down { Err(LedgerError::new(LedgerErrorKind::Unavailable, "it is down")) } else { Ok(&self.kept) }
    }
}

#[async_trait]
impl RequestStore for Failing {
    async fn begin(&self, request: &Begin) -> Result<Begun, LedgerError> {
        self.up()?.begin(request).await
    }

    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        self.up()?.change(owner, change).await
    }

    async fn read(&self, key: &RecordKey) -> Result<Option<RequestRecord>, LedgerError> {
        self.up()?.read(key).await
    }

    async fn sweep(&self, limit: u32) -> Result<u64, LedgerError> {
        self.up()?.sweep(limit).await
    }

    fn name(&self) -> &'static str {
        "failing"
    }
}

fn layer(store: &Failing) -> IdempotencyKeyLayer {
    let tenant = |extensions: &axum::http::Extensions| extensions.get::<Tenant>().cloned();
    let builder = IdempotencyKeyLayer::builder(store.clone(), tenant);
    builder.lease(Duration::from_millis(400)).build().expect("a layer")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_runs_without_a_record() {
    let (runs, store) = (Runs::default(), Failing::new(MemoryRequests::new()));
    let counted = runs.clone();
    let app = Router::new().route("/runs", on_post(move || async move { counted.one().to_string() }));
    let to = serve(app.layer(layer(&store))).await;
    let request = post("/runs", "{}").key(&fresh_key());
    store.set_down(true);
    let refused = request.send(to).await;
    refused.is_refused(503, "idempotency_unavailable");
    assert_eq!((refused.header("retry-after"), runs.count()), (Some("1"), 0));
    store.set_down(false);
    assert_eq!(request.send(to).await.text(), "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_whose_record_is_not_renewed_is_stopped() {
    let (begun, stopped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let store = Failing::new(MemoryRequests::new());
    /// Tells when the handler is gone.
    struct Gone(Arc<Notify>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let (tell, gone) = (begun.clone(), stopped.clone());
    let handler = move || async move {
        let _gone = Gone(gone);
        tell.notify_one();
        std::future::pending::<()>().await;
    };
    let to = serve(Router::new().route("/runs", on_post(handler)).layer(layer(&store))).await;
    let request = post("/runs", "{}").key(&fresh_key());
    let first = request.start(to).await;
    begun.notified().await;
    store.set_down(true);
    tokio::time::timeout(LIMIT, stopped.notified()).await.expect("the handler is stopped");
    store.set_down(false);
    let first = Answer::read(first).await.expect("an answer");
    first.is_refused(503, "idempotency_unavailable");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_is_stored_once_the_store_is_back() {
    let (runs, store) = (Runs::default(), Failing::new(MemoryRequests::new()));
    let (counted, down) = (runs.clone(), store.clone());
    let handler = move || async move {
        down.set_down(true);
        counted.one().to_string()
    };
    let to = serve(Router::new().route("/runs", on_post(handler)).layer(layer(&store))).await;
    let request = post("/runs", "{}").key(&fresh_key());
    let first = request.start(to).await;
    wait::until("the run", LIMIT, async || runs.count() == 1).await;
    store.set_down(false);
    assert_eq!(Answer::read(first).await.expect("an answer").text(), "1");
    assert!(request.send(to).await.is_replay());
    assert_eq!(runs.count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_store_refuses_and_forgets_nothing() {
    let runs = Runs::default();
    let counted = runs.clone();
    let app = Router::new().route("/runs", on_post(move || async move { counted.one().to_string() }));
    let store = Failing::new(MemoryRequests::new().records_max(2));
    let to = serve(app.layer(layer(&store))).await;
    let kept = [post("/runs", "{}").key(&fresh_key()), post("/runs", "{}").key(&fresh_key())];
    for request in &kept {
        assert_eq!(request.send(to).await.status, 200);
    }
    post("/runs", "{}").key(&fresh_key()).send(to).await.is_refused(503, "idempotency_unavailable");
    for request in &kept {
        assert!(request.send(to).await.is_replay());
    }
    assert_eq!(runs.count(), 2);
}
