//! An application whose handlers write rows of their own beside the records.

use std::{any::Any, path::Path, sync::Arc};

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use effectual::{
    PostgresLedger, SqliteLedger,
    idempotency_key::{KeyedRequest, RequestStore},
};
use sqlx::{PgPool, SqlitePool, sqlite::SqliteConnectOptions};

const CREATE: &str = "CREATE TABLE IF NOT EXISTS made (by_whom TEXT)";
const INSERT: &str = "INSERT INTO made VALUES ('a run')";
const COUNT: &str = "SELECT count(*) FROM made";
/// As a takeover does it.
const TAKE_OVER: [&str; 2] = [
    "UPDATE effectual_requests SET fence = fence + 1, token = randomblob(16), revision = revision + 1",
    "UPDATE effectual_requests SET fence = fence + 1, token = gen_random_uuid(), revision = revision + 1",
];

/// The application's own connections to the database of its ledger.
#[derive(Clone)]
pub(crate) enum Rows {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

/// The rows and the records of one database.
#[derive(Clone)]
pub(crate) struct Opened {
    pub(crate) rows: Rows,
    pub(crate) requests: Arc<dyn RequestStore>,
    _ledger: Arc<dyn Any + Send + Sync>,
}

impl Opened {
    pub(crate) async fn sqlite(path: &Path) -> Self {
        let ledger = SqliteLedger::open(path).await.expect("a ledger");
        let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(path))
            .await
            .expect("the same file");
        sqlx::query(CREATE).execute(&pool).await.expect("a table");
        Self { rows: Rows::Sqlite(pool), requests: Arc::new(ledger.requests()), _ledger: Arc::new(ledger) }
    }

    pub(crate) async fn postgres(url: &str) -> Self {
        // In a schema that the application's connections do not look into.
        let builder = PostgresLedger::builder(url).schema("records");
        let ledger = builder.connect().await.expect("a ledger");
        let pool = PgPool::connect(url).await.expect("the same database");
        sqlx::query(CREATE).execute(&pool).await.expect("a table");
        Self { rows: Rows::Postgres(pool), requests: Arc::new(ledger.requests()), _ledger: Arc::new(ledger) }
    }
}

impl Rows {
    /// Makes a row in one transaction with the record, as `status`; `between` runs before the commit.
    pub(crate) async fn make_within(
        &self,
        keyed: KeyedRequest,
        status: StatusCode,
        between: impl AsyncFnOnce(),
    ) -> Response {
        let answer = (status, "made").into_response();
        match self {
            Self::Sqlite(pool) => {
                let tx = pool.begin_with("BEGIN IMMEDIATE").await.expect("a transaction");
                let mut tx = keyed.within(tx);
                sqlx::query(INSERT).execute(&mut **tx).await.expect("a row");
                between().await;
                tx.commit(answer).await.into_response()
            }
            Self::Postgres(pool) => {
                let mut tx = keyed.within(pool.begin().await.expect("a transaction"));
                sqlx::query(INSERT).execute(&mut **tx).await.expect("a row");
                between().await;
                tx.commit(answer).await.into_response()
            }
        }
    }

    async fn execute(&self, statements: [&'static str; 2]) {
        match self {
            Self::Sqlite(pool) => {
                sqlx::query(statements[0]).execute(pool).await.expect("it runs");
            }
            Self::Postgres(pool) => {
                let statement = statements[1].replace("effectual_requests", "records.effectual_requests");
                sqlx::query(sqlx::AssertSqlSafe(statement)).execute(pool).await.expect("it runs");
            }
        }
    }

    /// Makes a row by itself.
    pub(crate) async fn make_apart(&self) {
        self.execute([INSERT, INSERT]).await;
    }

    pub(crate) async fn take_over_all_requests(&self) {
        self.execute(TAKE_OVER).await;
    }

    pub(crate) async fn count(&self) -> i64 {
        match self {
            Self::Sqlite(pool) => sqlx::query_scalar(COUNT).fetch_one(pool).await.expect("a count"),
            Self::Postgres(pool) => sqlx::query_scalar(COUNT).fetch_one(pool).await.expect("a count"),
        }
    }
}
