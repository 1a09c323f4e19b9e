//! Through a pooler in transaction mode: nothing is left behind in a session that is lent to others.

use std::{sync::Arc, time::Duration};

use effectual::{Ledger, LedgerErrorKind, PostgresLedger, ledger::ClaimRequest, ledger::Owner};
use effectual_tests::{database::PostgresDatabase, servers, wait};
use sqlx::{ConnectOptions, PgConnection, postgres::PgConnectOptions};
use tokio::task::JoinSet;

use crate::{apply, database, number, raw, request, settle, win};

const LIMIT: Duration = Duration::from_secs(30);

/// The database, its URL through the pooler, and a ledger there.
async fn pooled(part: &str) -> Option<(PostgresDatabase, String, PostgresLedger)> {
    let pooler = servers::pgbouncer(&format!("postgres: {part}"))?;
    let database = database(part).await?;
    let url = database.url_through(&pooler);
    let builder = PostgresLedger::builder(&url).pooled(true).schema("effectual").writers(3);
    Some((database, url, builder.connect().await.expect("a pooled ledger")))
}

async fn none_in_transaction(observer: &mut PgConnection) {
    const STUCK: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
        AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'";
    wait::until("the transactions to end", LIMIT, async || number(observer, STUCK).await == 0).await;
}

#[tokio::test]
async fn f27_no_lock_setting_or_statement_is_left_in_a_session() {
    let Some((database, url, ledger)) = pooled("what is left in a session").await else { return };
    let ledger = Arc::new(ledger);
    let mut calls = JoinSet::new();
    for n in 0..32 {
        let ledger = Arc::clone(&ledger);
        calls.spawn(async move {
            for round in 0..20 {
                let request = request(&format!("{n} {round}"));
                let record = win(&ledger, &request).await;
                apply(&ledger, &Owner::of(&record), &settle(b"1")).await;
                assert!(ledger.read(&request.id).await.expect("a read").is_some());
            }
        });
    }
    calls.join_all().await;
    let mut observer = raw(&database).await;
    none_in_transaction(&mut observer).await;
    const LOCKS: &str = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database =
        (SELECT oid FROM pg_database WHERE datname = current_database())";
    assert_eq!(number(&mut observer, LOCKS).await, 0);
    const SESSIONS: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
        AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
    let sessions = number(&mut observer, SESSIONS).await;
    assert!(sessions > 0, "the pooler keeps sessions");
    let mut borrowed = Vec::new();
    for _ in 0..sessions {
        borrowed.push(borrow(&url).await);
    }
    let clean = "0 prepared, isolation read committed, seqscan on, lock_timeout 0, synchronous_commit on";
    for (session, found) in &borrowed {
        assert_eq!(found, clean, "session {session:?}");
    }
    assert_eq!(number(&mut observer, SESSIONS).await, sessions, "each session was looked at");
}

/// Borrows one of the pooler's sessions for as long as the connection lives, and says what is in it.
async fn borrow(url: &str) -> (PgConnection, String) {
    let options: PgConnectOptions = url.parse().expect("a URL");
    let mut connection = options.extra_float_digits(None).connect().await.expect("a connection");
    sqlx::raw_sql("BEGIN").execute(&mut connection).await.expect("a transaction");
    let found = sqlx::query_scalar(
        "SELECT format('%s prepared, isolation %s, seqscan %s, lock_timeout %s, synchronous_commit %s',
            (SELECT count(*) FROM pg_prepared_statements), current_setting('default_transaction_isolation'),
            current_setting('enable_seqscan'), current_setting('lock_timeout'),
            current_setting('synchronous_commit'))",
    )
    .persistent(false);
    let found = found.fetch_one(&mut connection).await.expect("its settings");
    (connection, found)
}

#[tokio::test]
async fn a_refused_claim_leaves_no_transaction_open() {
    let Some((database, _, ledger)) = pooled("a refused claim").await else { return };
    let refused = ClaimRequest { attempt_timeout_ms: 0, ..request("no time") };
    let error = ledger.claim(&refused).await.expect_err("refused by the table");
    assert_eq!(error.kind(), LedgerErrorKind::Corrupt, "{error}");
    none_in_transaction(&mut raw(&database).await).await;
    win(&ledger, &request("after")).await;
}

#[tokio::test]
async fn dropped_calls_leave_no_transaction_open() {
    let Some((database, _, ledger)) = pooled("dropped calls").await else { return };
    for n in 0..200 {
        let request = request(&n.to_string());
        // Dropped at whichever point it has come to.
        drop(tokio::time::timeout(Duration::from_micros(n * 20), ledger.claim(&request)).await);
    }
    let mut observer = raw(&database).await;
    none_in_transaction(&mut observer).await;
    win(&ledger, &request("after")).await;
    ledger.close().await;
    assert_eq!(number(&mut observer, "SELECT count(*) FROM effectual.effectual_effects").await, 201);
}

#[tokio::test]
async fn a_lost_pooler_session_costs_no_effect() {
    let Some((database, _, ledger)) = pooled("lost sessions").await else { return };
    let ledger = Arc::new(ledger);
    let mut calls = JoinSet::new();
    for n in 0..8 {
        let ledger = Arc::clone(&ledger);
        calls.spawn(async move {
            for round in 0..30 {
                let record = win(&ledger, &request(&format!("{n} {round}"))).await;
                assert_eq!((record.attempt, record.fence), (1, 1));
                apply(&ledger, &Owner::of(&record), &settle(b"1")).await;
            }
        });
    }
    let mut killer = raw(&database).await;
    const TERMINATE: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
    let count = "SELECT count(*) FROM effectual.effectual_effects
        WHERE state = 'completed' AND revision = 2 AND fence = 1";
    let (mut killed, mut done) = (0, 0);
    while !calls.is_empty() {
        killed += number(&mut killer, TERMINATE).await;
        // Not again before something got through: on a busy machine nothing ever would.
        wait::until("an effect, or the end of a caller", LIMIT, async || {
            let before = std::mem::replace(&mut done, number(&mut killer, count).await);
            done > before || calls.try_join_next().map(|call| call.expect("a call")).is_some()
        })
        .await;
    }
    assert!(killed > 2, "{killed} sessions were cut");
    assert_eq!(number(&mut killer, count).await, 240);
}
