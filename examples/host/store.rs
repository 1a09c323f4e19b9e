//! The host's own table: its runs, in the ledger's database, so that they survive whatever the ledger survives.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::response::{IntoResponse, Response};
use effectual::{RunId, idempotency_key::KeyedRequest};
use serde::Serialize;
use sqlx::{PgPool, SqlitePool, postgres::PgPoolOptions, sqlite::SqliteConnectOptions};

use crate::config::Database;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS host_runs (
    run         TEXT   PRIMARY KEY,
    workflow    TEXT   NOT NULL,
    inputs      TEXT   NOT NULL,
    status      TEXT   NOT NULL CHECK (status IN ('running', 'completed', 'failed', 'cancelled')),
    started_ms  BIGINT NOT NULL,
    -- When a run without effects is over by itself.
    due_ms      BIGINT
)";

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Running,
    Completed,
    Failed,
    Cancelled,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Running, Self::Completed, Self::Failed, Self::Cancelled]
            .into_iter()
            .find(|status| status.as_str() == text)
    }
}

/// A run as the table has it.
pub struct Run {
    pub id: RunId,
    pub workflow: String,
    /// JSON.
    pub inputs: String,
    pub status: Status,
    pub started_ms: i64,
    pub due_ms: Option<i64>,
}

/// The pool of connections to either database.
pub enum Store {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

/// The same statement on whichever database it is: both take `$1`.
macro_rules! on_either {
    ($store:expr, $pool:ident => $work:expr) => {
        match $store {
            Store::Sqlite($pool) => $work,
            Store::Postgres($pool) => $work,
        }
    };
}

/// Inserts a run; a macro, because the two databases have two types of connection.
macro_rules! insert {
    ($run:expr, $connection:expr) => {
        sqlx::query(
            "INSERT INTO host_runs (run, workflow, inputs, status, started_ms, due_ms)
             VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .bind($run.id.as_str())
        .bind(&$run.workflow)
        .bind(&$run.inputs)
        .bind($run.status.as_str())
        .bind($run.started_ms)
        .bind($run.due_ms)
        .execute($connection)
        .await
    };
}

type Row = (String, String, String, String, i64, Option<i64>);

impl Store {
    pub async fn open(database: &Database) -> sqlx::Result<Self> {
        let store = match database {
            Database::Sqlite(path) => {
                let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
                Self::Sqlite(SqlitePool::connect_with(options).await?)
            }
            Database::Postgres(url) => {
                Self::Postgres(PgPoolOptions::new().max_connections(8).connect(url).await?)
            }
        };
        // Two hosts that start at once may both make the table; the slower one finds it the second time.
        if on_either!(&store, pool => sqlx::raw_sql(TABLE).execute(pool).await.is_err()) {
            on_either!(&store, pool => sqlx::raw_sql(TABLE).execute(pool).await.map(|_| ())?);
        }
        Ok(store)
    }

    pub async fn insert(&self, run: &Run) -> sqlx::Result<()> {
        on_either!(self, pool => insert!(run, pool).map(drop))
    }

    /// Inserts the run together with the record of the request that asked for it, and gives the answer to that request.
    ///
    /// # Errors
    /// Nothing is stored.
    pub async fn insert_with(
        &self,
        run: &Run,
        keyed: KeyedRequest,
        response: Response,
    ) -> sqlx::Result<Response> {
        match self {
            Self::Sqlite(pool) => {
                // Not deferred: a transaction that reads before it writes could lose its place to another.
                let mut tx = keyed.within(pool.begin_with("BEGIN IMMEDIATE").await?);
                insert!(run, &mut **tx)?;
                Ok(tx.commit(response).await.into_response())
            }
            Self::Postgres(pool) => {
                let mut tx = keyed.within(pool.begin().await?);
                insert!(run, &mut **tx)?;
                Ok(tx.commit(response).await.into_response())
            }
        }
    }

    /// The run as it stands now.
    pub async fn get(&self, id: &RunId) -> sqlx::Result<Option<Run>> {
        let query = "SELECT run, workflow, inputs, status, started_ms, due_ms FROM host_runs WHERE run = $1";
        let row: Option<Row> = on_either!(self, pool => {
            sqlx::query_as(query).bind(id.as_str()).fetch_optional(pool).await?
        });
        row.map(read).transpose()
    }

    /// The runs of a workflow that are not over.
    pub async fn unfinished(&self, workflow: &str) -> sqlx::Result<Vec<Run>> {
        let query = "SELECT run, workflow, inputs, status, started_ms, due_ms FROM host_runs
             WHERE workflow = $1 AND status = 'running'";
        let rows: Vec<Row> = on_either!(self, pool => {
            sqlx::query_as(query).bind(workflow).fetch_all(pool).await?
        });
        rows.into_iter().map(read).collect()
    }

    /// Ends a run that is running; whether it was.
    pub async fn end(&self, id: &RunId, status: Status) -> sqlx::Result<bool> {
        let query = "UPDATE host_runs SET status = $2
             WHERE run = $1 AND status = 'running' AND (due_ms IS NULL OR due_ms > $3)";
        let ended = on_either!(self, pool => {
            let query = sqlx::query(query).bind(id.as_str()).bind(status.as_str()).bind(now_ms());
            query.execute(pool).await?.rows_affected()
        });
        Ok(ended > 0)
    }
}

/// A run that is due is over, without anybody's writing it down.
fn read((id, workflow, inputs, status, started_ms, due_ms): Row) -> sqlx::Result<Run> {
    let unreadable = || sqlx::Error::Decode("a run that this host did not write".into());
    let stored = Status::parse(&status).ok_or_else(unreadable)?;
    let is_over = stored == Status::Running && due_ms.is_some_and(|due| due <= now_ms());
    Ok(Run {
        id: RunId::parse(id).map_err(|_| unreadable())?,
        workflow,
        inputs,
        status: if is_over { Status::Completed } else { stored },
        started_ms,
        due_ms,
    })
}

/// Milliseconds since the Unix epoch.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
