//! The HTTP layer: one application as it is, under `IdempotencyKeyLayer` on each store, and under `axum-idempotent`.
//!
//! Every request of a round has a key of its own, then every one is sent again. `axum-idempotent` 0.6 keeps what it answered
//! in the memory of one process, within the caller's session; it does not hold a second request back while the first runs,
//! nor compare what was asked.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    extract::Request,
    http::Extensions,
    middleware::{self, Next},
    response::Response,
    routing::post,
};
use axum_idempotent::{IdempotentLayer, IdempotentOptions};
use effectual::{
    PostgresLedger, SqliteLedger, Tenant,
    idempotency_key::{IdempotencyKeyLayer, MemoryRequests, RequestStore},
};
use ruts::{
    CookieOptions, Session, SessionLayer,
    store::{Ttl, moka::MokaStore},
};
use tower_cookies::CookieManagerLayer;

use crate::{
    layer_client::{self, Measured, measure},
    lines::{Line, median},
    store::Store,
};

/// One application, with what was measured of it in each round.
pub(crate) struct Served {
    pub(crate) name: &'static str,
    at: SocketAddr,
    cookie: String,
    pub(crate) rounds: Vec<Measured>,
}

/// The applications take turns; the first one is the one without any layer.
pub(crate) async fn measure_all(sqlite: &Store, postgres: Option<&Store>, rounds: usize) -> Vec<Served> {
    let ledger = SqliteLedger::open(sqlite.path()).await.expect("a ledger");
    let mut apps = vec![
        ("none", plain()),
        ("memory", under(MemoryRequests::new().records_max(usize::MAX))),
        ("sqlite", under(ledger.requests())),
    ];
    if let Some(store) = postgres {
        let ledger = PostgresLedger::connect(&store.url()).await.expect("a ledger");
        apps.push(("postgres", under(ledger.requests())));
    }
    apps.push(("axum-idempotent", other()));
    let mut served = Vec::new();
    for (name, app) in apps {
        let at = serve(app).await;
        let cookie = if name == "axum-idempotent" { session(at).await } else { String::new() };
        served.push(Served { name, at, cookie, rounds: Vec::new() });
    }
    for round in 0..=rounds {
        for app in &mut served {
            let measured = measure(app.at, &app.cookie).await;
            if app.name != "none" {
                assert_eq!(measured.marked, measured.requests, "{}: a replay is marked as one", app.name);
            }
            if round > 0 {
                app.rounds.push(measured);
            }
        }
    }
    served
}

/// To the application without a layer, and of the store in memory to the peer, which has no other.
pub(crate) fn lines(served: &[Served]) -> Vec<Line> {
    let of = |name: &str| &served.iter().find(|app| app.name == name).expect("it was served").rounds;
    let ratio = |one: &str, other: &str, what: fn(&Measured) -> f64| {
        median(of(one).iter().zip(of(other)).map(|(one, other)| what(one) / what(other)))
    };
    let callers = layer_client::CLIENTS;
    let mut lines = Vec::new();
    for app in served.iter().filter(|app| app.name != "none") {
        let ratio = ratio(app.name, "none", |round| round.per_second);
        lines.push(Line::new("layer-ratio-to-none", None, app.name, callers, ratio));
    }
    let peer = Some("axum-idempotent");
    let fresh = ratio("memory", "axum-idempotent", |round| round.per_second);
    lines.push(Line::new("layer-ratio-to-peer", peer, "memory", callers, fresh));
    let again = ratio("memory", "axum-idempotent", |round| round.replays_per_second);
    lines.push(Line::new("layer-ratio-to-peer-replays", peer, "memory", callers, again));
    lines
}

/// The work of the handler: an answer of some 200 bytes of JSON.
async fn create() -> ([(&'static str, &'static str); 1], String) {
    ([("content-type", "application/json")], format!("{{\"made\":\"{}\"}}", "x".repeat(190)))
}

async fn authenticate(mut request: Request, next: Next) -> Response {
    request.extensions_mut().insert(Tenant::parse("acme").expect("a tenant"));
    next.run(request).await
}

fn plain() -> Router {
    Router::new().route("/runs", post(create))
}

fn under(requests: impl RequestStore) -> Router {
    let tenant = |extensions: &Extensions| extensions.get::<Tenant>().cloned();
    let layer = IdempotencyKeyLayer::builder(requests, tenant).build().expect("a layer");
    plain().layer(layer).layer(middleware::from_fn(authenticate))
}

fn other() -> Router {
    let store = Arc::new(MokaStore::builder().build());
    let options = IdempotentOptions::default().use_idempotency_key_header(Some("idempotency-key"), true);
    let log_in = |session: Session<MokaStore>| async move {
        let set = session.set("user", &"acme".to_owned(), Ttl::new(600).expect("a time"), None).await;
        set.expect("a session");
    };
    plain()
        .layer(IdempotentLayer::<MokaStore>::new(options))
        .route("/login", post(log_in))
        .layer(SessionLayer::new(store).with_cookie_options(CookieOptions::build().name("session")))
        .layer(CookieManagerLayer::new())
}

async fn serve(app: Router<()>) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("its address");
    tokio::spawn(async move { axum::serve(listener, app).await.expect("it serves") });
    address
}

async fn session(at: SocketAddr) -> String {
    let answer =
        layer_client::once(at, "POST /login HTTP/1.1\r\nhost: bench\r\ncontent-length: 0\r\n\r\n").await;
    let cookie =
        answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a session's cookie");
    format!("cookie: {}\r\n", cookie.split(';').next().unwrap_or(cookie))
}
