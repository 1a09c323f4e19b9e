//! Every ledger against every rule.

use std::sync::Arc;

use effectual::{MemoryLedger, SqliteLedger, testing::conformance};

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
