//! Lost connections, and the end of a ledger.

use std::{sync::Arc, time::Duration};

use effectual::{
    Ledger, LedgerErrorKind, PostgresLedger,
    ledger::{Claim, Owner, record::State},
};
use effectual_tests::{servers, wait};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::task::JoinSet;

use crate::{apply, database, execute, ledger, number, raw, request, settle, win};

const LIMIT: Duration = Duration::from_secs(30);

const TERMINATE: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'effectual'";

#[tokio::test]
async fn calls_survive_lost_connections_and_count_once() {
    let Some(database) = database("lost connections").await else { return };
    let ledger = Arc::new(ledger(&database).await);
    let mut calls = JoinSet::new();
    for n in 0..16 {
        let ledger = Arc::clone(&ledger);
        calls.spawn(async move {
            for round in 0..40 {
                let name = format!("{n} {round}");
                let record = win(&ledger, &request(&name)).await;
                assert_eq!((record.attempt, record.fence), (1, 1));
                let settled = apply(&ledger, &Owner::of(&record), &settle(b"1")).await;
                assert_eq!(settled.state, State::Completed);
            }
        });
    }
    let mut killer = raw(&database).await;
    let mut killed = 0;
    while !calls.is_empty() {
        killed += number(&mut killer, TERMINATE).await;
        wait::for_value(Duration::from_millis(30), async || {
            calls.try_join_next().map(|call| call.expect("a call"))
        })
        .await;
    }
    assert!(killed > 2, "{killed} connections were cut");
    let count =
        "SELECT count(*) FROM effectual_effects WHERE state = 'completed' AND revision = 2 AND fence = 1";
    assert_eq!(number(&mut killer, count).await, 640);
    assert_eq!(number(&mut killer, "SELECT count(*) FROM effectual_evidence").await, 0);
}

async fn admit(admin: &mut PgConnection, url: &str, admitted: bool) {
    let name = url.rsplit_once('/').map(|(_, name)| name).expect("a database in the URL");
    execute(admin, AssertSqlSafe(format!("ALTER DATABASE {name} WITH ALLOW_CONNECTIONS {admitted}"))).await;
}

#[tokio::test]
async fn patience_ends_and_the_ledger_comes_back() {
    let Some(database) = database("patience").await else { return };
    let builder = PostgresLedger::builder(database.url()).patience(Duration::from_millis(300));
    let ledger = builder.connect().await.expect("a ledger");
    win(&ledger, &request("before")).await;
    // From another database: one cannot be closed from within.
    let server = servers::postgres("postgres: patience").expect("the server of the database");
    let mut admin = PgConnection::connect(&server).await.expect("a connection");
    let mut killer = raw(&database).await;
    admit(&mut admin, &database.url(), false).await;
    number(&mut killer, TERMINATE).await;

    let answer =
        tokio::time::timeout(LIMIT, ledger.claim(&request("during"))).await.expect("an end of patience");
    let error = answer.expect_err("no connection");
    assert_eq!(error.kind(), LedgerErrorKind::Unavailable, "{error}");
    let error = ledger.read(&request("before").id).await.expect_err("no connection");
    assert_eq!(error.kind(), LedgerErrorKind::Unavailable, "{error}");

    admit(&mut admin, &database.url(), true).await;
    win(&ledger, &request("after")).await;
    assert!(ledger.read(&request("before").id).await.expect("a read").is_some());
}

#[tokio::test]
async fn closing_stores_what_was_handed_in_and_leaves_no_connection() {
    let Some(database) = database("closing").await else { return };
    let ledger = Arc::new(ledger(&database).await);
    let mut observer = raw(&database).await;
    let mut calls = JoinSet::new();
    for n in 0..100 {
        let ledger = Arc::clone(&ledger);
        calls.spawn(async move { ledger.claim(&request(&n.to_string())).await });
    }
    tokio::task::yield_now().await;
    ledger.close().await;
    let mut won = 0;
    for answer in calls.join_all().await {
        match answer {
            Ok(Claim::Won { .. }) => won += 1,
            Err(error) => assert_eq!(error.kind(), LedgerErrorKind::Closed, "{error}"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(number(&mut observer, "SELECT count(*) FROM effectual_effects").await, won);
    let error = ledger.read(&request("0").id).await.expect_err("closed");
    assert_eq!(error.kind(), LedgerErrorKind::Closed);
    ledger.close().await;
    left(&mut observer).await;
}

async fn left(observer: &mut PgConnection) {
    const CONNECTED: &str = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'effectual'";
    wait::until("the connections to end", LIMIT, async || number(observer, CONNECTED).await == 0).await;
}

#[tokio::test]
async fn dropping_a_ledger_ends_its_connections() {
    let Some(database) = database("dropping").await else { return };
    let ledger = ledger(&database).await;
    win(&ledger, &request("one")).await;
    let mut observer = raw(&database).await;
    assert!(ledger.read(&request("one").id).await.expect("a read").is_some());
    drop(ledger);
    left(&mut observer).await;
}
