//! One application, three ways: as it is, under `IdempotencyKeyLayer` on each store, and under `axum-idempotent`. Every
//! request of a run has a key of its own, then every one is sent again; the ratios of one run are what counts.

mod client;

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

use crate::client::{Measured, measure};

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
        session
            .set("user", &"acme".to_owned(), Ttl::new(600).expect("a time"), None)
            .await
            .expect("a session");
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
    let answer = client::once(at, "POST /login HTTP/1.1\r\nhost: bench\r\ncontent-length: 0\r\n\r\n").await;
    let cookie =
        answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a session's cookie");
    format!("cookie: {}\r\n", cookie.split(';').next().unwrap_or(cookie))
}

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let sqlite = SqliteLedger::open(folder.path().join("bench.db")).await.expect("a ledger");
    let mut apps = vec![
        ("without", plain()),
        ("memory", under(MemoryRequests::new().records_max(usize::MAX))),
        ("sqlite", under(sqlite.requests())),
    ];
    let postgres = match std::env::args().nth(1) {
        Some(url) => Some(PostgresLedger::connect(url).await.expect("a ledger")),
        None => None,
    };
    apps.extend(postgres.as_ref().map(|ledger| ("postgres", under(ledger.requests()))));
    apps.push(("axum-idempotent (memory)", other()));
    let mut base: Option<Measured> = None;
    println!("{:26} {:>9} {:>7} {:>9} {:>9}   replays/s", "", "requests/s", "ratio", "p50", "p99");
    for (name, app) in apps {
        let at = serve(app).await;
        let cookie = if name.starts_with("axum") { session(at).await } else { String::new() };
        let first = measure(at, &cookie).await;
        let ratio = first.per_second / base.as_ref().map_or(first.per_second, |base| base.per_second);
        println!(
            "{name:26} {:>9.0} {ratio:>8.2} {:>9.2?} {:>9.2?} {:>9.0} ({} marked)",
            first.per_second, first.p50, first.p99, first.replays_per_second, first.marked
        );
        base.get_or_insert(first);
    }
}
