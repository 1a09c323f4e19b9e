//! A caller with a transaction of its own on the ledger's database.

use std::{sync::Arc, time::Duration};

use effectual::{ErrorKind, Ledger, PostgresLedger, SqliteLedger, ledger::record::State};
use effectual_tests::{
    database::{PostgresDatabase, SqliteFile},
    scripted::Scripted,
    servers,
};
use sqlx::{ConnectOptions, Connection, PgConnection, sqlite::SqliteConnectOptions};

use crate::effects::*;

/// Performs, and finds the effect after `rollback`.
async fn survives(ledger: Arc<dyn Ledger>, rollback: impl AsyncFnOnce()) {
    let (executor, provider) = (executor(&ledger), Scripted::forgetful([]));
    let (receipt, scope) = receipted(&executor);
    let first = holding(&scope, "o-1".into(), 5, provider.clone()).await.expect("performed");
    rollback().await;
    assert_eq!(state(&executor, &receipt).await, State::Completed);
    let again = holding(&scope, "o-1".into(), 5, provider.clone()).await.expect("replayed");
    assert_eq!((again, provider.performed(), receipt.replayed()), (first, 1, true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f21_a_rollback_of_the_callers_on_the_same_file_erases_nothing() {
    let file = SqliteFile::new();
    let ledger: Arc<dyn Ledger> = Arc::new(SqliteLedger::open(file.path()).await.expect("a ledger"));
    let mut caller = SqliteConnectOptions::new().filename(file.path()).connect().await.expect("a connection");
    let sql = "CREATE TABLE orders (id INTEGER); BEGIN; SELECT count(*) FROM effectual_effects";
    sqlx::raw_sql(sql).execute(&mut caller).await.expect("an open transaction");
    survives(ledger, async || {
        sqlx::raw_sql("ROLLBACK").execute(&mut caller).await.expect("rolled back");
    })
    .await;
}

/// SQLite has one writer: while the caller is it, the ledger cannot claim. That is an error and no deadlock, and nothing is
/// performed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f21_a_caller_that_holds_the_files_write_lock_gets_an_error_and_no_deadlock() {
    let file = SqliteFile::new();
    let patience = Duration::from_millis(200);
    let ledger = SqliteLedger::builder(file.path()).busy_patience(patience).open().await.expect("a ledger");
    let ledger: Arc<dyn Ledger> = Arc::new(ledger);
    let (executor, provider) = (executor(&ledger), Scripted::forgetful([]));
    let (_, scope) = receipted(&executor);
    let mut caller = SqliteConnectOptions::new().filename(file.path()).connect().await.expect("a connection");
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut caller).await.expect("the write lock");
    let error = holding(&scope, "o-1".into(), 5, provider.clone()).await.expect_err("no claim");
    assert_eq!((error.kind(), provider.keys().len()), (ErrorKind::Ledger, 0));
    assert!(error.to_string().contains("ledger.db"), "{error}");
    sqlx::raw_sql("ROLLBACK").execute(&mut caller).await.expect("rolled back");
    holding(&scope, "o-1".into(), 5, provider.clone()).await.expect("performed then");
    assert_eq!(provider.performed(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f21_a_rollback_of_the_callers_on_the_same_database_erases_nothing() {
    let Some(server) = servers::postgres("f21 on PostgreSQL") else { return };
    let database = PostgresDatabase::create(&server).await;
    let ledger = PostgresLedger::connect(database.url()).await.expect("a ledger");
    let mut caller = PgConnection::connect(&database.url()).await.expect("a connection");
    let sql = "CREATE TABLE orders (id int); BEGIN; INSERT INTO orders VALUES (1);
        SELECT count(*) FROM effectual_effects";
    sqlx::raw_sql(sql).execute(&mut caller).await.expect("an open transaction");
    survives(Arc::new(ledger), async || {
        sqlx::raw_sql("ROLLBACK").execute(&mut caller).await.expect("rolled back");
    })
    .await;
}
