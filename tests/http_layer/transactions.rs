//! A handler's rows and its record, committed together.

use std::{net::SocketAddr, time::Duration};

use axum::{Router, http::StatusCode, response::Response, routing::post as on_post};
use effectual::{
    Tenant,
    idempotency_key::{IdempotencyKeyLayer, KeyedRequest},
};
use effectual_tests::{
    database::{PostgresDatabase, SqliteFile},
    process::{self, Process},
    servers, wait,
};

use crate::{
    client::{Answer, Request, fresh_key, post},
    rows::Opened,
    support::serve,
};

const LIMIT: Duration = Duration::from_secs(60);

fn layer(opened: &Opened, lease: Duration) -> IdempotencyKeyLayer {
    let tenant = |extensions: &axum::http::Extensions| extensions.get::<Tenant>().cloned();
    let builder = IdempotencyKeyLayer::builder(opened.requests.clone(), tenant);
    builder.lease(lease).wait(Duration::ZERO).build().expect("a layer")
}

/// An application with a route for each way in which a handler may end.
async fn serve_rows(opened: &Opened) -> SocketAddr {
    let route = |status: StatusCode| {
        let rows = opened.rows.clone();
        move |keyed: KeyedRequest| async move { rows.make_within(keyed, status, async || {}).await }
    };
    let rows = opened.rows.clone();
    let robbed = move |keyed: KeyedRequest| async move {
        rows.take_over_all_requests().await;
        rows.make_within(keyed, StatusCode::CREATED, async || {}).await
    };
    let app = Router::new()
        .route("/made", on_post(route(StatusCode::CREATED)))
        .route("/refused", on_post(route(StatusCode::UNPROCESSABLE_ENTITY)))
        .route("/failed", on_post(route(StatusCode::BAD_GATEWAY)))
        .route("/robbed", on_post(robbed));
    serve(app.layer(layer(opened, Duration::from_secs(30)))).await
}

async fn rows_and_record_are_committed_together(opened: Opened) {
    let to = serve_rows(&opened).await;
    for (path, status) in [("/made", 201), ("/refused", 422)] {
        let before = opened.rows.count().await;
        let request = post(path, "{}").key(&fresh_key());
        let (first, again) = (request.send(to).await, request.send(to).await);
        assert_eq!((first.status, first.text(), first.is_replay()), (status, "made", false));
        assert_eq!((again.status, again.text(), again.is_replay()), (status, "made", true));
        assert_eq!(opened.rows.count().await, before + 1);
    }
    // Without a key it is a transaction like any other.
    let before = opened.rows.count().await;
    for _ in 0..2 {
        assert_eq!(post("/made", "{}").send(to).await.status, 201);
    }
    assert_eq!(opened.rows.count().await, before + 2);
}

async fn an_answer_that_is_not_final_rolls_back(opened: Opened) {
    let to = serve_rows(&opened).await;
    let request = post("/failed", "{}").key(&fresh_key());
    for _ in 0..2 {
        let failed = request.send(to).await;
        assert_eq!((failed.status, failed.is_replay()), (502, false));
    }
    assert_eq!(opened.rows.count().await, 0);
}

async fn a_stale_owner_commits_nothing(opened: Opened) {
    let to = serve_rows(&opened).await;
    post("/robbed", "{}").key(&fresh_key()).send(to).await.is_refused(409, "idempotency_in_flight");
    assert_eq!(opened.rows.count().await, 0);
}

/// Makes a test of an `async fn(Opened)` on each database.
macro_rules! on_each_database {
    ($($rule:ident),+ $(,)?) => {
        $(mod $rule {
            use super::*;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                let file = SqliteFile::new();
                super::$rule(Opened::sqlite(&file.path()).await).await;
            }
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                let Some(server) = servers::postgres(concat!(module_path!(), " on PostgreSQL")) else { return };
                let database = PostgresDatabase::create(&server).await;
                super::$rule(Opened::postgres(&database.url()).await).await;
            }
        })+
    };
}

on_each_database!(
    rows_and_record_are_committed_together,
    an_answer_that_is_not_final_rolls_back,
    a_stale_owner_commits_nothing,
);

/// Where the child's handler stops for ever, if it is to.
const STOPS: &str = "EFFECTUAL_TEST_STOPS";

async fn open(place: &str) -> Opened {
    if place.starts_with("postgres://") {
        Opened::postgres(place).await
    } else {
        Opened::sqlite(place.as_ref()).await
    }
}

/// A server in a process of its own, and its handler: it says where it is, and stops where it is told to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by its parent, in a process of its own"]
async fn serves_rows() {
    let (place, _) = process::told();
    let opened = open(place.to_str().expect("a path or URL in UTF-8")).await;
    let stops = std::env::var(STOPS).expect("a word from the parent");
    let rows = opened.rows.clone();
    let handler = move |keyed: KeyedRequest| async move {
        let stop_at = async |here: &str| {
            if stops == here {
                process::tell(here);
                std::future::pending::<()>().await;
            }
        };
        let answer: Response = if stops.starts_with("apart") {
            rows.make_apart().await;
            stop_at("apart, after its commit").await;
            axum::response::IntoResponse::into_response((StatusCode::CREATED, "made"))
        } else {
            rows.make_within(keyed, StatusCode::CREATED, async || stop_at("before the commit").await).await
        };
        stop_at("after the commit").await;
        answer
    };
    let app = Router::new().route("/made", on_post(handler));
    let to = serve(app.layer(layer(&opened, Duration::from_secs(1)))).await;
    process::tell(to);
    std::future::pending::<()>().await;
}

fn start(place: &str, stops: &str) -> (Process, SocketAddr) {
    let mut child = Process::start("transactions::serves_rows", place, 0, |command| {
        command.env(STOPS, stops);
    });
    let to = child.next_line().expect("where it listens").parse().expect("an address");
    (child, to)
}

/// Kills a server whose handler has stopped `here`, asks another one again, and counts the rows.
async fn killed(place: &str, here: &str) -> (Answer, i64) {
    let request = post("/made", "{}").key(&fresh_key());
    let (mut first, to) = start(place, here);
    let asked: Request = request.clone();
    let connection = asked.start(to).await;
    assert_eq!(first.next_line().as_deref(), Some(here));
    first.kill();
    drop(connection);
    let (second, to) = start(place, if here.starts_with("apart") { "apart" } else { "nowhere" });
    let answer = wait::for_value(LIMIT, async || {
        let answer = request.send(to).await;
        (answer.status != 409).then_some(answer)
    });
    let answer = answer.await.expect("an answer once the lease has ended");
    let again = request.send(to).await;
    assert!(again.is_replay() && again.body == answer.body);
    drop(second);
    (answer, open(place).await.rows.count().await)
}

async fn a_kill_leaves_rows_and_record_or_neither(place: &str) {
    let (answer, rows) = killed(place, "after the commit").await;
    assert_eq!((answer.status, answer.is_replay(), rows), (201, true, 1), "the record was there");
    let (answer, rows) = killed(place, "before the commit").await;
    assert_eq!((answer.status, answer.is_replay(), rows), (201, false, 2), "nothing was there: it ran again");
    // What the transaction is for: without it the row is there and the record is not.
    let (answer, rows) = killed(place, "apart, after its commit").await;
    assert_eq!((answer.status, answer.is_replay(), rows), (201, false, 4), "two rows for one key");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_on_sqlite() {
    let file = SqliteFile::new();
    a_kill_leaves_rows_and_record_or_neither(file.path().to_str().expect("a path in UTF-8")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_on_postgres() {
    let Some(server) = servers::postgres("http_layer: a kill on PostgreSQL") else { return };
    let database = PostgresDatabase::create(&server).await;
    a_kill_leaves_rows_and_record_or_neither(&database.url()).await;
}
