//! A database on which ledgers with clocks of their own are opened.

use std::{path::PathBuf, sync::Arc, time::Duration};

use effectual::{Ledger, PostgresLedger, SqliteLedger};
use effectual_tests::{
    database::{PostgresDatabase, SqliteFile},
    servers,
};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, sqlite::SqliteConnectOptions};

/// A ledger's clock that is not ahead.
pub(crate) const TODAY: Duration = Duration::ZERO;
pub(crate) const DAY: Duration = Duration::from_secs(24 * 3600);

pub(crate) enum Place {
    Sqlite(SqliteFile),
    Direct(PostgresDatabase),
    /// With the pooler's URL.
    Pooled(PostgresDatabase, String),
}

impl Place {
    /// Every database there is.
    pub(crate) async fn all(part: &str) -> Vec<Self> {
        let mut places = vec![Self::Sqlite(SqliteFile::new())];
        if let Some(server) = servers::postgres(part) {
            places.push(Self::Direct(PostgresDatabase::create(&server).await));
            if let Some(pooler) = servers::pgbouncer(part) {
                places.push(Self::Pooled(PostgresDatabase::create(&server).await, pooler));
            }
        }
        places
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "sqlite",
            Self::Direct(_) => "postgres",
            Self::Pooled(..) => "pooled",
        }
    }

    pub(crate) fn file(&self) -> Option<PathBuf> {
        match self {
            Self::Sqlite(file) => Some(file.path()),
            _ => None,
        }
    }

    /// What [`open_at`] opens, for this process or another.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::Sqlite(file) => file.path().display().to_string(),
            Self::Direct(database) => database.url(),
            Self::Pooled(database, pooler) => format!("pooled:{}", database.url_through(pooler)),
        }
    }

    /// A ledger whose clock is that far ahead.
    pub(crate) async fn open(&self, ahead: Duration) -> Arc<dyn Ledger> {
        open_at(&self.url(), ahead).await
    }

    /// One text per row, read past the ledger.
    pub(crate) async fn texts(&self, sql: &str) -> Vec<String> {
        let sql = AssertSqlSafe(sql.to_owned());
        match self {
            Self::Sqlite(file) => {
                let options = SqliteConnectOptions::new().filename(file.path());
                let mut connection = options.connect().await.expect("a connection");
                sqlx::query_scalar(sql).fetch_all(&mut connection).await.expect("rows of text")
            }
            Self::Direct(database) | Self::Pooled(database, _) => {
                let mut connection = PgConnection::connect(&database.url()).await.expect("a connection");
                sqlx::query_scalar(sql).fetch_all(&mut connection).await.expect("rows of text")
            }
        }
    }

    /// Runs SQL past the ledger.
    pub(crate) async fn execute(&self, sql: &str) {
        self.try_execute(sql).await.expect("raw SQL");
    }

    /// The same for what may be refused.
    pub(crate) async fn try_execute(&self, sql: &str) -> sqlx::Result<()> {
        let sql = AssertSqlSafe(sql.to_owned());
        match self {
            Self::Sqlite(file) => {
                let options = SqliteConnectOptions::new().filename(file.path()).create_if_missing(true);
                let mut connection = options.connect().await?;
                sqlx::raw_sql(sql).execute(&mut connection).await.map(drop)
            }
            Self::Direct(database) | Self::Pooled(database, _) => {
                let mut connection = PgConnection::connect(&database.url()).await?;
                sqlx::raw_sql(sql).execute(&mut connection).await.map(drop)
            }
        }
    }
}

/// The ledger at a [`Place::url`], with its clock that far ahead.
pub(crate) async fn open_at(url: &str, ahead: Duration) -> Arc<dyn Ledger> {
    let offset_ms = i64::try_from(ahead.as_millis()).expect("a short time");
    let pooled = url.strip_prefix("pooled:");
    match pooled.or(url.starts_with("postgres").then_some(url)) {
        Some(server) => {
            let builder = PostgresLedger::builder(server).pooled(pooled.is_some()).clock_offset_ms(offset_ms);
            Arc::new(builder.connect().await.expect("a ledger"))
        }
        None => {
            let builder = SqliteLedger::builder(url).clock_offset_ms(offset_ms);
            Arc::new(builder.open().await.expect("a ledger"))
        }
    }
}
