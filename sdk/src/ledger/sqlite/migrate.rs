//! Brings a file to this version's schema, with any number of processes at it at once.

use sqlx::{Connection, SqliteConnection};

use super::error::Failure;
use crate::ledger::LedgerErrorKind;

/// `effl`: what tells a ledger's file from every other SQLite database.
const APPLICATION_ID: i64 = 0x6566_666c;

/// The schema's versions, oldest first; version n is the n-th.
pub(super) const MIGRATIONS: [&str; 5] = [
    include_str!("../../../migrations/sqlite/0001_effects.sql"),
    include_str!("../../../migrations/sqlite/0002_unsettled.sql"),
    include_str!("../../../migrations/sqlite/0003_retention.sql"),
    include_str!("../../../migrations/sqlite/0004_requests.sql"),
    include_str!("../../../migrations/sqlite/0005_rules.sql"),
];

/// The version that this library reads and writes.
const VERSION: i64 = MIGRATIONS.len() as i64;

/// What a database says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Schema {
    /// Nothing is in it.
    Empty,
    /// A ledger with this version's schema or an older one.
    Ledger(i64),
}

/// Reads what the database is, without changing it.
pub(super) async fn inspect(conn: &mut SqliteConnection) -> Result<Schema, InspectError> {
    let (application, version, tables): (i64, i64, i64) = sqlx::query_as(
        "SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),
             (SELECT count(*) FROM sqlite_schema)",
    )
    .fetch_one(conn)
    .await?;
    match (application, version, tables) {
        (APPLICATION_ID, version @ 1..=VERSION, _) => Ok(Schema::Ledger(version)),
        (APPLICATION_ID, version, _) => Err(InspectError::Refused(Failure::new(
            LedgerErrorKind::NewerSchema,
            format!(
                "the file has schema {version}, this library knows up to {VERSION}; use a newer version of it"
            ),
        ))),
        (0, 0, 0) => Ok(Schema::Empty),
        _ => Err(InspectError::Refused(Failure::new(
            LedgerErrorKind::NotALedger,
            "the file is a SQLite database of another application; it was left as it is",
        ))),
    }
}

/// Why a database cannot be used.
#[derive(Debug)]
pub(super) enum InspectError {
    Sqlite(sqlx::Error),
    Refused(Failure),
}

impl From<sqlx::Error> for InspectError {
    fn from(error: sqlx::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Applies what is missing, in one transaction. Of several processes one does it and the others find it done.
pub(super) async fn migrate(conn: &mut SqliteConnection) -> Result<(), InspectError> {
    if inspect(conn).await? == Schema::Ledger(VERSION) {
        return Ok(());
    }
    let mut transaction = conn.begin_with("BEGIN IMMEDIATE").await?;
    let applied = match inspect(&mut transaction).await? {
        Schema::Empty => 0,
        Schema::Ledger(version) => version,
    };
    for migration in MIGRATIONS.iter().skip(usize::try_from(applied).unwrap_or(0)) {
        sqlx::raw_sql(*migration).execute(&mut *transaction).await?;
    }
    let marks = format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(marks)).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(())
}
