//! What the start-up check says of transactional effects. `book-sqlite` and `book-postgres` are linked in.

use std::{sync::Arc, time::Duration};

use effectual::{ConfigError, Executor, ExecutorBuilder, Ledger, MemoryLedger};

use crate::books::{Books, builder};

fn refused(builder: ExecutorBuilder) -> String {
    let refused: ConfigError = builder.build().expect_err("it cannot keep its promise");
    refused.to_string()
}

#[tokio::test]
async fn a_ledger_without_transactions_is_refused() {
    let error = refused(Executor::builder(MemoryLedger::new()));
    for part in ["`book-", "books.rs", "`on_unknown = transactional`", "`memory`", "SQLite", "`hold`"] {
        assert!(error.contains(part), "{error}");
    }
}

/// On SQLite nothing is renewed while a body's transaction is open.
#[tokio::test]
async fn on_sqlite_an_attempt_takes_at_most_a_third_of_the_shortest_lease() {
    let books = Books::sqlite().await;
    let within = |timeout, lease| {
        builder(&books.ledger).attempt_timeout(Duration::from_secs(timeout)).lease(Duration::from_secs(lease))
    };
    within(3, 9).build().expect("a third");
    let error = refused(within(4, 9));
    for part in ["`book-", "`attempt_timeout` (4s)", "a third of the shortest `lease` (9s", "`sqlite`"] {
        assert!(error.contains(part), "{error}");
    }
}

#[tokio::test]
async fn on_postgres_the_lease_is_renewed_meanwhile() {
    let Some(books) = Books::postgres("transactional: the start-up check", false).await else { return };
    let ledger: &Arc<dyn Ledger> = &books.ledger;
    builder(ledger)
        .attempt_timeout(Duration::from_secs(5))
        .build()
        .expect("shorter than the lease is enough");
}
