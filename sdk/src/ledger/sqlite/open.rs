//! Opens the file: nothing is changed before it is known to be a ledger, or nothing yet.

use std::{fs::File, io::ErrorKind, path::Path, time::Duration};

use sqlx::{Connection, SqliteConnection};

use super::{
    error::{Failure, is_left_halfway},
    migrate::{self, InspectError},
    settings::Settings,
};
use crate::{
    clock::{self, Moment, Until},
    ledger::{LedgerError, LedgerErrorKind},
};

/// Between two tries where SQLite itself does not wait: while the journal mode changes, or a log is recovered.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// The writer looks whether it needs the lock at all before it waits for it, which no statement of SQLite's does. What a
/// statement of many rows keeps in case it fails stays in memory, and so do 4 MiB of pages. More would cost more: after a commit
/// that moved cells between pages SQLite looks through all that it keeps, for pages behind the file's end.
const WRITER: &str = "PRAGMA busy_timeout = 0; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -4096";

/// What the file system has under the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    EmptyFile,
    Database,
}

/// The writer's connection to a file with this version's schema. Other processes in the way are waited for.
pub(super) async fn open(settings: &Settings) -> Result<SqliteConnection, LedgerError> {
    let patience = Until::new(Moment::now(), settings.busy_patience);
    loop {
        match try_open_writer(settings).await {
            Ok(conn) => return Ok(conn),
            Err(failure) if failure.busy && !patience.is_past() => clock::sleep(BUSY_PAUSE).await,
            Err(failure) => return Err(failure.error()),
        }
    }
}

async fn try_open_writer(settings: &Settings) -> Result<SqliteConnection, Failure> {
    let mut conn = try_open(settings).await?;
    let set = sqlx::raw_sql(WRITER).execute(&mut conn).await;
    set.map_err(|error| Failure::of("opening", &settings.path, &error))?;
    Ok(conn)
}

async fn try_open(settings: &Settings) -> Result<SqliteConnection, Failure> {
    let path = settings.path.as_path();
    let found = look(path)?;
    if found == Found::Nothing && !settings.create {
        let context = format!("{} does not exist, and creating it was not allowed", path.display());
        return Err(Failure::new(LedgerErrorKind::Unavailable, context));
    }
    if found == Found::Database {
        match inspect(settings.connect_read_only().await).await {
            // Its writer died amid a transaction, and nobody can read the file before that is undone.
            Err(InspectError::Sqlite(error)) if is_left_halfway(&error) => {
                inspect(settings.connect(false).await).await
            }
            inspected => inspected,
        }
        .map_err(|error| refused(path, error))?;
    }
    let create = found == Found::Nothing && settings.create;
    let mut conn = settings.connect(create).await.map_err(|error| opening(path, &error))?;
    prepare(&mut conn).await.map_err(|error| refused(path, error))?;
    Ok(conn)
}

/// Refuses what is no ledger, and changes nothing of it.
async fn inspect(conn: sqlx::Result<SqliteConnection>) -> Result<(), InspectError> {
    let mut conn = conn?;
    let inspected = migrate::inspect(&mut conn).await;
    // A connection that was only read from has nothing to lose.
    drop(conn.close().await);
    inspected.map(drop)
}

async fn prepare(conn: &mut SqliteConnection) -> Result<(), InspectError> {
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode = WAL").fetch_one(&mut *conn).await?;
    if mode != "wal" {
        return Err(InspectError::Refused(Failure::new(
            LedgerErrorKind::Unavailable,
            "the file system does not support SQLite's write-ahead log; put the file on a local disk",
        )));
    }
    migrate::migrate(conn).await
}

/// A new connection to a file that was a ledger when it was opened; it is never created anew.
#[cfg(feature = "tower")]
pub(super) async fn reopen(settings: &Settings) -> Result<SqliteConnection, Failure> {
    try_open(&settings.clone().without_creating()).await
}

/// A new connection of the writer, to a file that was a ledger when it was opened.
pub(super) async fn reopen_writer(settings: &Settings) -> Result<SqliteConnection, Failure> {
    try_open_writer(&settings.clone().without_creating()).await
}

/// Only looks from outside: to open and close the file next to SQLite would drop the locks that other connections of
/// this process hold on it.
fn look(path: &Path) -> Result<Found, Failure> {
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => {
            let context = format!("{} is not a file; give the path of one", path.display());
            Err(Failure::new(LedgerErrorKind::NotALedger, context))
        }
        Ok(metadata) if metadata.len() == 0 => Ok(Found::EmptyFile),
        Ok(_) => Ok(Found::Database),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let parent = path.parent().unwrap_or(path);
            if parent.is_dir() {
                return Ok(Found::Nothing);
            }
            let context = format!("the directory {} does not exist; create it first", parent.display());
            Err(Failure::new(LedgerErrorKind::Unavailable, context))
        }
        Err(error) => {
            let context = format!("{} cannot be opened: {error}; check its permissions", path.display());
            Err(Failure::new(LedgerErrorKind::Unavailable, context))
        }
    }
}

fn refused(path: &Path, error: InspectError) -> Failure {
    match error {
        InspectError::Sqlite(error) => opening(path, &error),
        InspectError::Refused(failure) => failure.at(path),
    }
}

/// An error of opening; where SQLite only says that it cannot open a file, the directory says why.
fn opening(path: &Path, error: &sqlx::Error) -> Failure {
    let failure = Failure::of("opening", path, error);
    if failure.cannot_open && is_directory_read_only(path) { failure.read_only() } else { failure }
}

/// Whether the directory, where the log is kept, takes no file. A trial is the only test that permissions, mounts and
/// privileges all have a say in.
fn is_directory_read_only(path: &Path) -> bool {
    let trial = path.with_file_name(format!(".effectual-{}", uuid::Uuid::new_v4().simple()));
    match File::create_new(&trial) {
        Ok(_) => {
            // An empty file that stays behind does no harm.
            drop(std::fs::remove_file(trial));
            false
        }
        Err(error) => matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem),
    }
}
