//! Stores, and an application behind the layer.

use std::{
    any::Any,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::{
    Router,
    extract::Request,
    http::Extensions,
    middleware::{self, Next},
    response::Response,
};
use effectual::{
    PostgresLedger, SqliteLedger, Tenant,
    idempotency_key::{IdempotencyKeyBuilder, IdempotencyKeyLayer, MemoryRequests, RequestStore},
};
use effectual_tests::{
    database::{PostgresDatabase, SqliteFile},
    servers,
};

/// An empty store, and what has to live as long as it does.
#[derive(Clone)]
pub(crate) struct Store {
    pub(crate) requests: Arc<dyn RequestStore>,
    _keep: Arc<dyn Any + Send + Sync>,
}

impl Store {
    pub(crate) fn new(requests: impl RequestStore, keep: impl Any + Send + Sync) -> Self {
        Self { requests: Arc::new(requests), _keep: Arc::new(keep) }
    }

    pub(crate) fn memory() -> Self {
        Self::new(MemoryRequests::new(), ())
    }

    pub(crate) async fn sqlite() -> Self {
        let file = SqliteFile::new();
        let ledger = SqliteLedger::open(file.path()).await.expect("a new SQLite ledger");
        Self::new(ledger.requests(), (ledger, file))
    }

    pub(crate) async fn postgres(part: &str) -> Option<Self> {
        let server = servers::postgres(part)?;
        let database = PostgresDatabase::create(&server).await;
        let ledger = PostgresLedger::connect(database.url()).await.expect("a new PostgreSQL ledger");
        Some(Self::new(ledger.requests(), (ledger, database)))
    }

    pub(crate) async fn pooled(part: &str) -> Option<Self> {
        let (server, pooler) = (servers::postgres(part)?, servers::pgbouncer(part)?);
        let database = PostgresDatabase::create(&server).await;
        let builder = PostgresLedger::builder(database.url_through(&pooler)).pooled(true);
        let ledger = builder.connect().await.expect("a new pooled ledger");
        Some(Self::new(ledger.requests(), (ledger, database)))
    }

    /// A layer that finds the tenant where [`serve`] puts it.
    pub(crate) fn layer(&self) -> IdempotencyKeyBuilder {
        IdempotencyKeyLayer::builder(Arc::clone(&self.requests), |extensions: &Extensions| {
            extensions.get::<Tenant>().cloned()
        })
    }
}

/// Makes a test of an `async fn(Store)` on each store.
macro_rules! on_each_store {
    ($($rule:ident),+ $(,)?) => {
        $(mod $rule {
            use $crate::support::Store;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn memory() {
                super::$rule(Store::memory()).await;
            }
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                super::$rule(Store::sqlite().await).await;
            }
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                if let Some(store) = Store::postgres(concat!(module_path!(), " on PostgreSQL")).await {
                    super::$rule(store).await;
                }
            }
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn pooled() {
                let part = concat!(module_path!(), " on PostgreSQL through a pooler");
                if let Some(store) = Store::pooled(part).await {
                    super::$rule(store).await;
                }
            }
        })+
    };
}
pub(crate) use on_each_store;

/// How often a handler ran.
#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<AtomicU64>);

impl Runs {
    /// Counts one more; its number, from 1.
    pub(crate) fn one(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// The principal that the test's authentication found.
#[derive(Clone)]
pub(crate) struct User(pub(crate) String);

fn named(request: &Request, name: &str) -> Option<String> {
    Some(request.headers().get(name)?.to_str().ok()?.to_owned())
}

/// Stands for an authentication: the credential is a header that names the tenant, and perhaps the user.
async fn authenticate(mut request: Request, next: Next) -> Response {
    if let Some(tenant) = named(&request, "x-tenant") {
        request.extensions_mut().insert(Tenant::parse(tenant).expect("a tenant"));
    }
    if let Some(user) = named(&request, "x-user") {
        request.extensions_mut().insert(User(user));
    }
    next.run(request).await
}

/// Serves an application, whose layers are all there, behind the authentication.
pub(crate) async fn serve(app: Router) -> SocketAddr {
    let app = app.layer(middleware::from_fn(authenticate));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("its address");
    tokio::spawn(async move { axum::serve(listener, app).await.expect("it serves") });
    address
}
