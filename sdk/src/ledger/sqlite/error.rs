//! What SQLite's errors mean for a ledger.

use std::path::Path;

use crate::ledger::{LedgerError, LedgerErrorKind};

/// The primary result codes that a ledger tells apart; the rest is `Unavailable`.
mod code {
    pub(super) const PERM: i32 = 3;
    pub(super) const BUSY: i32 = 5;
    pub(super) const LOCKED: i32 = 6;
    pub(super) const READONLY: i32 = 8;
    pub(super) const CORRUPT: i32 = 11;
    pub(super) const FULL: i32 = 13;
    pub(super) const CANTOPEN: i32 = 14;
    pub(super) const TOOBIG: i32 = 18;
    pub(super) const CONSTRAINT: i32 = 19;
    pub(super) const MISMATCH: i32 = 20;
    pub(super) const NOTADB: i32 = 26;
    /// An extended one.
    pub(super) const READONLY_ROLLBACK: i32 = READONLY | (3 << 8);
}

/// An error of SQLite that is judged, and that can be handed to each command of a batch.
///
/// Of the database's own error only the text is kept: it names constraints and codes, never a value.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) kind: LedgerErrorKind,
    /// Another connection was in the way: the same thing done again succeeds.
    pub(super) busy: bool,
    /// The data of a command was refused, so that the other commands of its batch may still go through.
    pub(super) data: bool,
    /// The file could not be opened; what the file system says about it tells more.
    pub(super) cannot_open: bool,
    context: String,
}

impl Failure {
    /// Judges an error met while `doing` something with the file at `path`.
    pub(super) fn of(doing: &str, path: &Path, error: &sqlx::Error) -> Self {
        let primary = primary_code(error);
        let kind = kind_of(primary, error);
        let path = path.display();
        let context = format!("while {doing} {path}: {error}; {}", advice(kind));
        Self {
            kind,
            busy: is_busy(error),
            data: matches!(primary, Some(code::CONSTRAINT | code::TOOBIG | code::MISMATCH)),
            cannot_open: primary == Some(code::CANTOPEN),
            context,
        }
    }

    /// A failure that SQLite had no part in.
    pub(super) fn new(kind: LedgerErrorKind, context: impl Into<String>) -> Self {
        Self { kind, busy: false, data: false, cannot_open: false, context: context.into() }
    }

    /// With the file's path in front.
    pub(super) fn at(self, path: &Path) -> Self {
        Self { context: format!("{}: {}", path.display(), self.context), ..self }
    }

    /// As an error of what cannot be written.
    pub(super) fn read_only(self) -> Self {
        Self { kind: LedgerErrorKind::ReadOnly, ..self }
    }

    pub(super) fn error(&self) -> LedgerError {
        LedgerError::new(self.kind, self.context.clone())
    }
}

/// Whether another connection was in the way.
pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    matches!(primary_code(error), Some(code::BUSY | code::LOCKED))
}

/// Whether a connection that may not write met a journal that has to be rolled back first.
pub(super) fn is_left_halfway(error: &sqlx::Error) -> bool {
    extended_code(error) == Some(code::READONLY_ROLLBACK)
}

/// The low byte of SQLite's extended result code.
fn primary_code(error: &sqlx::Error) -> Option<i32> {
    extended_code(error).map(|extended| extended & 0xff)
}

fn extended_code(error: &sqlx::Error) -> Option<i32> {
    error.as_database_error()?.code()?.parse().ok()
}

fn kind_of(primary: Option<i32>, error: &sqlx::Error) -> LedgerErrorKind {
    match primary {
        Some(code::READONLY | code::PERM) => LedgerErrorKind::ReadOnly,
        Some(code::FULL) => LedgerErrorKind::Full,
        Some(code::NOTADB) => LedgerErrorKind::NotALedger,
        Some(code::CORRUPT | code::CONSTRAINT | code::TOOBIG | code::MISMATCH) => LedgerErrorKind::Corrupt,
        Some(_) => LedgerErrorKind::Unavailable,
        None => match error {
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => LedgerErrorKind::Corrupt,
            _ => LedgerErrorKind::Unavailable,
        },
    }
}

fn advice(kind: LedgerErrorKind) -> &'static str {
    match kind {
        LedgerErrorKind::ReadOnly => "make the file and its directory writable for this process",
        LedgerErrorKind::Full => "make room and try again",
        LedgerErrorKind::NotALedger => "give the path of a ledger, or of a file that does not exist yet",
        LedgerErrorKind::Corrupt => "check the file with `PRAGMA integrity_check` and what was handed in",
        _ => "check the file and its directory, and try again",
    }
}
