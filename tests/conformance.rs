//! Every ledger against every rule.

use std::sync::Arc;

use effectual::{Ledger, MemoryLedger, PostgresLedger, SqliteLedger, testing::conformance};
use effectual_tests::{
    database::{PostgresDatabase, SqliteFile},
    ledgers, servers,
};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

#[tokio::test]
async fn memory_keeps_every_rule() {
    conformance::run_all(Arc::new(MemoryLedger::new())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_keeps_every_rule() {
    let file = SqliteFile::new();
    let ledger = SqliteLedger::open(file.path()).await.expect("a new ledger");
    conformance::run_all(Arc::new(ledger)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_keeps_every_rule() {
    for isolation in ["read committed", "repeatable read", "serializable"] {
        let Some(database) = database("conformance: the PostgreSQL ledger", isolation).await else { return };
        let ledger = PostgresLedger::connect(database.url()).await.expect("a new ledger");
        conformance::run_all(Arc::new(ledger)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_through_a_pooler_keeps_every_rule() {
    let part = "conformance: the PostgreSQL ledger through a pooler";
    let Some(pooler) = servers::pgbouncer(part) else { return };
    for isolation in ["read committed", "repeatable read", "serializable"] {
        let Some(database) = database(part, isolation).await else { return };
        let builder = PostgresLedger::builder(database.url_through(&pooler)).pooled(true);
        conformance::run_all(Arc::new(builder.connect().await.expect("a new ledger"))).await;
    }
}

/// A database whose transactions have another isolation than the ledger's, unless the ledger says so itself.
async fn database(part: &str, isolation: &str) -> Option<PostgresDatabase> {
    let database = PostgresDatabase::create(&servers::postgres(part)?).await;
    let url = database.url();
    let (_, name) = url.rsplit_once('/').expect("a database in the URL");
    let set = format!("ALTER DATABASE {name} SET default_transaction_isolation = '{isolation}'");
    let mut connection = PgConnection::connect(&url).await.expect("a connection");
    sqlx::raw_sql(AssertSqlSafe(set)).execute(&mut connection).await.expect("the default is set");
    let mut later = PgConnection::connect(&url).await.expect("a connection");
    let default: String =
        sqlx::query_scalar("SHOW transaction_isolation").fetch_one(&mut later).await.expect("its default");
    assert_eq!(default, isolation);
    Some(database)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shared_ledger_keeps_every_rule() {
    let ledgers = [
        Some(ledgers::memory()),
        Some(ledgers::sqlite().await),
        ledgers::postgres("conformance: a shared PostgreSQL ledger").await,
        ledgers::pooled("conformance: a shared pooled ledger").await,
    ];
    for test in ledgers.into_iter().flatten() {
        let shared: Arc<dyn Ledger> = Arc::clone(&test.ledger);
        conformance::run_all(Arc::new(shared)).await;
    }
}
