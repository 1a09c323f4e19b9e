//! The host put together: what it holds, and what a request passes on its way.

use std::{error::Error, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::Request,
    http::{HeaderName, HeaderValue, StatusCode},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use effectual::{
    Executor, Ledger, PostgresLedger, Provider, SqliteLedger, Tenant,
    idempotency_key::IdempotencyKeyLayer,
    provider::http::HttpClient,
    regions::Regions,
    witness::{self, Problem},
};

use crate::{
    auth::{self, ApiKeys},
    config::{Config, Database},
    discovery,
    effects::Receiver,
    runs,
    seams::{self, Seams},
    store::Store,
    witness::Guard,
};

/// How long the answer of a request is kept.
pub const REQUESTS_KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// How long the outcome of an effect is kept.
pub const EFFECTS_KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The version of the protocol, on requests and answers.
const VERSION: HeaderName = HeaderName::from_static("openwop-version");

/// What every handler may need.
pub struct Host {
    pub store: Store,
    pub executor: Executor,
    pub keys: ApiKeys,
    pub regions: Regions,
    /// Sends the messages of [`effects`](crate::effects); its address is set for each.
    pub client: HttpClient,
    /// Absent unless they are mounted.
    pub test_seams: Option<Seams>,
    ledger: Arc<dyn Ledger>,
    layer: IdempotencyKeyLayer,
}

impl Host {
    pub async fn open(config: Config) -> Result<Self, Box<dyn Error>> {
        let (ledger, layer): (Arc<dyn Ledger>, _) = match &config.database {
            Database::Sqlite(path) => {
                let ledger = SqliteLedger::open(path).await?;
                (Arc::new(ledger.clone()), IdempotencyKeyLayer::builder(ledger.requests(), tenant))
            }
            Database::Postgres(url) => {
                let ledger = Arc::new(PostgresLedger::connect(url).await?);
                let layer = IdempotencyKeyLayer::builder(ledger.requests(), tenant);
                (ledger, layer)
            }
        };
        Ok(Self {
            store: Store::open(&config.database).await?,
            executor: Executor::builder(Arc::clone(&ledger)).retention(EFFECTS_KEPT_FOR).build()?,
            keys: config.keys,
            // Both databases are in one place, and nothing is promised beyond it.
            regions: Regions::SINGLE,
            client: HttpClient::new(Receiver::profile(), "http://127.0.0.1")?,
            test_seams: config.test_seams.then(Seams::default),
            ledger,
            // A request that finds its equal at work is told so at once, and may come again.
            layer: layer.retention(REQUESTS_KEPT_FOR).wait(Duration::ZERO).build()?,
        })
    }
}

/// Where the layer finds whose request it is: authentication has put it there.
fn tenant(extensions: &axum::http::Extensions) -> Option<Tenant> {
    extensions.get::<Tenant>().cloned()
}

/// The routes. A request passes from the outside in: version, authentication, and for what changes something the layer.
pub fn router(host: &Arc<Host>) -> Router {
    let changing = Router::new()
        .route("/runs", post(runs::create))
        .route("/runs/{run}/cancel", post(runs::cancel))
        .route("/runs/{run}/{opaque}/cancel", post(runs::cancel))
        .layer(host.layer.clone());
    let reading = Router::new()
        .route("/runs/{run}", get(runs::read))
        .route("/runs/{run}/{opaque}", get(runs::read))
        .with_state(Arc::clone(host))
        .merge(witness::router(Arc::clone(&host.ledger), Guard(Arc::clone(host))));
    let seams = if host.test_seams.is_some() { seams::router() } else { Router::new() };
    let guarded = changing
        .merge(seams)
        .with_state(Arc::clone(host))
        .merge(reading)
        .fallback(async || Problem::not_found("there is nothing at this address"))
        .layer(middleware::from_fn_with_state(Arc::clone(host), auth::authenticate));
    Router::new()
        .route("/.well-known/openwop", get(discovery::document).with_state(Arc::clone(host)))
        .merge(guarded)
        .method_not_allowed_fallback(async || {
            let message = "this address does not take this method";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
        })
        .layer(middleware::from_fn(version))
}

/// Every answer says which version it is of; a request for another major version gets none.
async fn version(request: Request, next: Next) -> Response {
    let asked = request.headers().get(&VERSION).map(HeaderValue::as_bytes);
    let mut response = match asked {
        None | Some(b"2" | b"2.0") => next.run(request).await,
        Some(_) => {
            let message = "this host serves version 2.0";
            Problem::new(StatusCode::NOT_ACCEPTABLE, "protocol_version_unsupported", message).into_response()
        }
    };
    response.headers_mut().insert(VERSION, HeaderValue::from_static(discovery::VERSION));
    response
}
