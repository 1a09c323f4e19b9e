//! Every ledger, empty, for a test that must hold on each.

use std::{any::Any, sync::Arc};

use effectual::{Ledger, MemoryLedger, PostgresLedger, SqliteLedger};

use crate::{
    database::{PostgresDatabase, SqliteFile},
    servers,
};

/// An empty ledger, and what has to live as long as it does.
pub struct TestLedger {
    /// The ledger.
    pub ledger: Arc<dyn Ledger>,
    _keep: Box<dyn Any + Send + Sync>,
}

impl TestLedger {
    fn new(ledger: impl Ledger, keep: impl Any + Send + Sync) -> Self {
        Self { ledger: Arc::new(ledger), _keep: Box::new(keep) }
    }
}

/// In memory.
#[must_use]
pub fn memory() -> TestLedger {
    TestLedger::new(MemoryLedger::new(), ())
}

/// An SQLite file of its own.
///
/// # Panics
/// When the file cannot be made.
pub async fn sqlite() -> TestLedger {
    let file = SqliteFile::new();
    let ledger = SqliteLedger::open(file.path()).await.expect("a new SQLite ledger");
    TestLedger::new(ledger, file)
}

/// A PostgreSQL database of its own; `None` where there is no server.
///
/// # Panics
/// When the server refuses.
pub async fn postgres(part: &str) -> Option<TestLedger> {
    let server = servers::postgres(part)?;
    let database = PostgresDatabase::create(&server).await;
    let ledger = PostgresLedger::connect(&database.url()).await.expect("a new PostgreSQL ledger");
    Some(TestLedger::new(ledger, database))
}

/// A PostgreSQL database of its own, through a pooler in transaction mode; `None` where there is none.
///
/// # Panics
/// When the server or the pooler refuses.
pub async fn pooled(part: &str) -> Option<TestLedger> {
    let (server, pooler) = (servers::postgres(part)?, servers::pgbouncer(part)?);
    let database = PostgresDatabase::create(&server).await;
    let builder = PostgresLedger::builder(database.url_through(&pooler)).pooled(true);
    Some(TestLedger::new(builder.connect().await.expect("a new pooled ledger"), database))
}

/// Makes a test of an `async fn(Arc<dyn Ledger>)` on each ledger.
#[macro_export]
macro_rules! on_each_ledger {
    ($($rule:ident),+ $(,)?) => {
        $(mod $rule {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn memory() {
                let test = $crate::ledgers::memory();
                super::$rule(test.ledger.clone()).await;
            }
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                let test = $crate::ledgers::sqlite().await;
                super::$rule(test.ledger.clone()).await;
            }
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                let part = concat!(module_path!(), " on PostgreSQL");
                if let Some(test) = $crate::ledgers::postgres(part).await {
                    super::$rule(test.ledger.clone()).await;
                }
            }
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn pooled() {
                let part = concat!(module_path!(), " on PostgreSQL through a pooler");
                if let Some(test) = $crate::ledgers::pooled(part).await {
                    super::$rule(test.ledger.clone()).await;
                }
            }
        })+
    };
}
