//! Opening: makes the tables where there are none, and refuses what is not a ledger, is newer or cannot be written.

use sqlx::{AssertSqlSafe, PgConnection, Row as _};

use super::{
    connect::{Connector, Setback, Target},
    error::report,
    rows_usual::ClaimRow,
    session::{Session, View},
    table::{AttemptRow, EffectRow, EvidenceRow, Role, Table, TouchRow},
};
use crate::ledger::{LedgerError, LedgerErrorKind};

const MIGRATIONS: [&str; 5] = [
    include_str!("../../../migrations/postgres/0001_effects.sql"),
    include_str!("../../../migrations/postgres/0002_unsettled.sql"),
    include_str!("../../../migrations/postgres/0003_retention.sql"),
    include_str!("../../../migrations/postgres/0004_requests.sql"),
    include_str!("../../../migrations/postgres/0005_usual_rows.sql"),
];

const TABLES: [&str; 6] = [
    "effectual_effects",
    "effectual_attempts",
    "effectual_touches",
    "effectual_evidence",
    "effectual_audit",
    "effectual_requests",
];

/// The types of the tables' columns and rows.
pub(super) const DOMAINS: [&str; 13] = [
    "effectual_ordinal",
    "effectual_half",
    "effectual_digest",
    "effectual_keying",
    "effectual_state",
    "effectual_class",
    "effectual_verdict",
    "effectual_outcome",
    "effectual_absence",
    "effectual_effect",
    "effectual_request_state",
    "effectual_request_absence",
    "effectual_request",
];

/// The transaction-level advisory lock under which one process at a time migrates: "effectua" in ASCII. It ends with
/// the transaction, whatever becomes of the process or of a pooler's connection.
const LOCK: i64 = 0x6566_6665_6374_7561;

const CREATE_VERSION: &str = "CREATE TABLE effectual_schema (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only), version integer NOT NULL CHECK (version >= 0))";

/// Opens the first connection of a ledger and brings the schema up to date.
///
/// Statements are unnamed and everything is within a transaction, so that nothing depends on the session.
pub(super) async fn open(connector: &Connector) -> Result<Session, LedgerError> {
    let target = &connector.target;
    let opening =
        |setback: Setback| report(setback.trouble.kind(), "opening the ledger in", target, &setback.cause);
    let mut session = connector.connect().await.map_err(opening)?;
    let mut look = session.begin(View::Current).await.map_err(opening)?;
    let is_current = is_current(&mut look, target).await?;
    if !is_current {
        refuse_read_only(&mut look, target).await?;
    }
    look.commit().await.map_err(failed(target))?;
    if !is_current {
        migrate(&mut session, connector).await?;
    }
    let mut check = session.begin(View::Current).await.map_err(opening)?;
    check_tables(&mut check).await.map_err(opening)?;
    refuse_read_only(&mut check, target).await?;
    refuse_unprivileged(&mut check, target).await?;
    check.commit().await.map_err(failed(target))?;
    Ok(session)
}

fn known() -> i32 {
    i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX)
}

fn refused(kind: LedgerErrorKind, target: &Target, why: &str) -> LedgerError {
    LedgerError::new(kind, format!("{target}: {why}"))
}

fn failed(target: &Target) -> impl Fn(sqlx::Error) -> LedgerError + use<'_> {
    move |error| {
        let setback = Setback::of(&error);
        report(setback.trouble.kind(), "opening the ledger in", target, &setback.cause)
    }
}

/// Whether the schema is the one that this library knows.
async fn is_current(connection: &mut PgConnection, target: &Target) -> Result<bool, LedgerError> {
    Ok(version(connection, target).await? == Some(known()))
}

/// The schema's version; `None` where there is no ledger yet.
async fn version(connection: &mut PgConnection, target: &Target) -> Result<Option<i32>, LedgerError> {
    if !exists(connection, "effectual_schema", target).await? {
        return Ok(None);
    }
    let version = sqlx::query_scalar("SELECT version FROM effectual_schema")
        .persistent(false)
        .fetch_one(connection)
        .await;
    match version {
        Ok(version) if version > known() => {
            let why = format!("schema {version}, and this library knows {}; update it", known());
            Err(refused(LedgerErrorKind::NewerSchema, target, &why))
        }
        Ok(version) => Ok(Some(version)),
        Err(error @ sqlx::Error::Database(_)) => Err(failed(target)(error)),
        Err(sqlx::Error::RowNotFound | sqlx::Error::ColumnDecode { .. }) => Err(refused(
            LedgerErrorKind::NotALedger,
            target,
            "its table `effectual_schema` is not the ledger's",
        )),
        Err(error) => Err(failed(target)(error)),
    }
}

/// Under the lock only: without it, another process' tables would be met amid its migration and taken for foreign ones.
async fn refuse_names_of_others(connection: &mut PgConnection, target: &Target) -> Result<(), LedgerError> {
    for table in TABLES {
        if exists(connection, table, target).await? {
            let why = format!("it has a table `{table}` that is not the ledger's; name a schema of its own");
            return Err(refused(LedgerErrorKind::NotALedger, target, &why));
        }
    }
    let theirs: Option<String> = sqlx::query_scalar(
        "SELECT typname::text FROM pg_catalog.pg_type WHERE typname = ANY ($1) AND pg_type_is_visible(oid) LIMIT 1",
    )
    .bind(DOMAINS.as_slice())
    .persistent(false)
    .fetch_optional(connection)
    .await
    .map_err(failed(target))?;
    let Some(theirs) = theirs else { return Ok(()) };
    let why = format!("it has a type `{theirs}` that is not the ledger's; name a schema of its own");
    Err(refused(LedgerErrorKind::NotALedger, target, &why))
}

/// Whether an unqualified name finds a relation. Reads the catalogue itself: `to_regclass` may answer from what this
/// connection saw before it waited for the lock.
async fn exists(connection: &mut PgConnection, name: &str, target: &Target) -> Result<bool, LedgerError> {
    let found = sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_class WHERE relname = $1 AND pg_table_is_visible(oid))",
    )
    .bind(name)
    .persistent(false)
    .fetch_one(connection);
    found.await.map_err(failed(target))
}

/// Migrates in one transaction: another process sees all of it or nothing.
async fn migrate(session: &mut Session, connector: &Connector) -> Result<(), LedgerError> {
    let target = &connector.target;
    let begun = session.begin(View::Current).await;
    let mut transaction = begun
        .map_err(|setback| report(setback.trouble.kind(), "opening the ledger in", target, &setback.cause))?;
    sqlx::raw_sql("SET LOCAL lock_timeout = '60s'; SET LOCAL synchronous_commit = on")
        .execute(&mut *transaction)
        .await
        .map_err(failed(target))?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(LOCK)
        .persistent(false)
        .execute(&mut *transaction)
        .await
        .map_err(failed(target))?;
    if let Some(schema) = &connector.schema {
        create_schema(&mut transaction, schema).await.map_err(failed(target))?;
    }
    // Another process may have migrated while this one waited for the lock.
    let version = version(&mut transaction, target).await?;
    let applied = usize::try_from(version.unwrap_or(0)).unwrap_or(0);
    if version.is_none() {
        refuse_names_of_others(&mut transaction, target).await?;
        sqlx::raw_sql(CREATE_VERSION).execute(&mut *transaction).await.map_err(failed(target))?;
    }
    for migration in &MIGRATIONS[applied.min(MIGRATIONS.len())..] {
        sqlx::raw_sql(*migration).execute(&mut *transaction).await.map_err(failed(target))?;
    }
    sqlx::query(
        "INSERT INTO effectual_schema (version) VALUES ($1) ON CONFLICT (is_only) DO UPDATE SET version = $1",
    )
    .bind(known())
    .persistent(false)
    .execute(&mut *transaction)
    .await
    .map_err(failed(target))?;
    transaction.commit().await.map_err(failed(target))
}

/// Not `IF NOT EXISTS`: that asks for the privilege to create schemas even where there is nothing to create.
async fn create_schema(connection: &mut PgConnection, schema: &str) -> Result<(), sqlx::Error> {
    let found = sqlx::query("SELECT FROM pg_namespace WHERE nspname = $1")
        .bind(schema)
        .persistent(false)
        .fetch_optional(&mut *connection);
    if found.await?.is_none() {
        // The name was checked to need no quotes.
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE SCHEMA {schema}"))).execute(connection).await?;
    }
    Ok(())
}

/// Whether the tables have the columns that the statements name.
async fn check_tables(connection: &mut PgConnection) -> Result<(), Setback> {
    let [effects, attempts, touches, evidence, ..] = TABLES;
    for (table, columns) in [
        (effects, EffectRow::COLUMNS),
        (effects, ClaimRow::COLUMNS),
        (attempts, AttemptRow::COLUMNS),
        (touches, TouchRow::COLUMNS),
        (evidence, EvidenceRow::COLUMNS),
    ] {
        let names = columns.iter().filter(|column| column.role != Role::Guard).map(|column| column.name);
        let names = names.collect::<Vec<_>>().join(", ");
        let statement = AssertSqlSafe(format!("SELECT {names} FROM {table} LIMIT 0"));
        sqlx::raw_sql(statement).execute(&mut *connection).await.map_err(|error| Setback::of(&error))?;
    }
    Ok(())
}

async fn refuse_read_only(connection: &mut PgConnection, target: &Target) -> Result<(), LedgerError> {
    let state = sqlx::query("SELECT pg_is_in_recovery(), current_setting('transaction_read_only')::boolean")
        .persistent(false)
        .fetch_one(connection)
        .await
        .map_err(failed(target))?;
    let (is_standby, is_read_only): (bool, bool) =
        (state.try_get(0).map_err(failed(target))?, state.try_get(1).map_err(failed(target))?);
    let why = match (is_standby, is_read_only) {
        (true, _) => "it is a standby; connect to the primary",
        (false, true) => {
            "its transactions are read-only; unset `default_transaction_read_only` for this user"
        }
        (false, false) => return Ok(()),
    };
    Err(refused(LedgerErrorKind::ReadOnly, target, why))
}

async fn refuse_unprivileged(connection: &mut PgConnection, target: &Target) -> Result<(), LedgerError> {
    for table in TABLES {
        let may_write: bool = sqlx::query_scalar(
            "SELECT has_table_privilege($1, 'SELECT') AND has_table_privilege($1, 'INSERT')
                AND ($1 NOT IN ('effectual_effects', 'effectual_requests') OR has_table_privilege($1, 'UPDATE'))
                AND ($1 <> 'effectual_requests' OR has_table_privilege($1, 'DELETE'))",
        )
        .bind(table)
        .persistent(false)
        .fetch_one(&mut *connection)
        .await
        .map_err(failed(target))?;
        if !may_write {
            let why = format!(
                "this user may not write `{table}`; grant SELECT, INSERT and UPDATE on the ledger's tables, and DELETE on `effectual_requests`"
            );
            return Err(refused(LedgerErrorKind::ReadOnly, target, &why));
        }
    }
    Ok(())
}
