//! Every ledger against every rule.

use std::sync::Arc;

use effectual::{MemoryLedger, PostgresLedger, SqliteLedger, testing::conformance};
use effectual_tests::{database::PostgresDatabase, servers};

#[tokio::test]
async fn memory_keeps_every_rule() {
    conformance::run_all(Arc::new(MemoryLedger::new())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_keeps_every_rule() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = SqliteLedger::open(directory.path().join("effects.db")).await.expect("a new ledger");
    conformance::run_all(Arc::new(ledger)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_keeps_every_rule() {
    let Some(server) = servers::postgres("conformance: the PostgreSQL ledger") else { return };
    let database = PostgresDatabase::create(&server).await;
    let ledger = PostgresLedger::connect(database.url()).await.expect("a new ledger");
    conformance::run_all(Arc::new(ledger)).await;
}
