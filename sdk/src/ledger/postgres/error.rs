//! What an error of the database means, told without what the user stored.

use std::fmt;

use super::connect::Target;
use crate::ledger::{LedgerError, LedgerErrorKind};

/// What to do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The connection, or the server for a while: connect again and repeat.
    Lost,
    /// Another transaction was in the way: repeat.
    Again,
    /// Another transaction holds a row for too long: let others go first, then repeat.
    Locked,
    /// What was to be inserted is there already.
    Taken,
    /// The data of one command.
    Data,
    /// Nothing that repeating would mend.
    Final(LedgerErrorKind),
}

impl Trouble {
    pub(super) fn of(error: &sqlx::Error) -> Self {
        match error {
            sqlx::Error::Database(refused) if is_of_a_removed_effect(&**refused) => Self::Again,
            sqlx::Error::Database(refused) => {
                refused.code().map_or(Self::Final(LedgerErrorKind::Unavailable), |code| Self::of_code(&code))
            }
            sqlx::Error::Encode(_) | sqlx::Error::InvalidArgument(_) => Self::Data,
            sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::Decode(_)
            | sqlx::Error::ColumnIndexOutOfBounds { .. }
            | sqlx::Error::ColumnNotFound(_) => Self::Final(LedgerErrorKind::Corrupt),
            _ => Self::Lost,
        }
    }

    fn of_code(code: &str) -> Self {
        match code {
            "40001" | "40P01" => Self::Again,
            "55P03" => Self::Locked,
            "23505" => Self::Taken,
            // The disk, or a quota on it.
            "53100" => Self::Final(LedgerErrorKind::Full),
            // A privilege that was taken away; a server that became a standby.
            "42501" | "25006" => Self::Final(LedgerErrorKind::ReadOnly),
            // Tables or columns that are gone.
            "42P01" | "42703" | "42804" | "42P10" | "3F000" => Self::Final(LedgerErrorKind::NotALedger),
            _ => match code.get(..2) {
                Some("22" | "23") => Self::Data,
                Some("XX") => Self::Final(LedgerErrorKind::Corrupt),
                // Connections, authorisation, resources, shut-down, cancelled statements, stale prepared ones.
                _ => Self::Lost,
            },
        }
    }

    /// The kind under which it is reported once nothing more is tried.
    pub(super) fn kind(self) -> LedgerErrorKind {
        match self {
            Self::Lost | Self::Again | Self::Locked => LedgerErrorKind::Unavailable,
            Self::Taken | Self::Data => LedgerErrorKind::Corrupt,
            Self::Final(kind) => kind,
        }
    }
}

/// Whether a row belongs to an effect that was removed while the row was on its way: the ledger's own reference says so, and
/// not one that somebody else put on the tables.
fn is_of_a_removed_effect(refused: &dyn sqlx::error::DatabaseError) -> bool {
    refused.code().as_deref() == Some("23503")
        && refused.constraint().zip(refused.table()).is_some_and(|(constraint, table)| {
            table.starts_with("effectual_") && constraint == format!("{table}_digest_head_fkey")
        })
}

/// The database's error without its details, which quote the rows that were refused.
#[derive(Debug, Clone)]
pub(super) struct Cause(String);

impl Cause {
    pub(super) fn of(error: &sqlx::Error) -> Self {
        Self(match error {
            sqlx::Error::Database(refused) => {
                let code = refused.code().unwrap_or_default();
                let constraint = refused.constraint().map(|name| format!(", constraint {name}"));
                // The message of a value that is refused quotes it.
                let message = if code.starts_with("22") { "invalid data" } else { refused.message() };
                format!("{message} (SQLSTATE {code}{})", constraint.unwrap_or_default())
            }
            sqlx::Error::Encode(_) | sqlx::Error::InvalidArgument(_) => "a value cannot be sent".to_owned(),
            sqlx::Error::ColumnDecode { index, .. } => format!("column {index} cannot be read"),
            sqlx::Error::Decode(_) => "an answer cannot be read".to_owned(),
            sqlx::Error::Configuration(_) => "the connection's settings are not valid".to_owned(),
            other => other.to_string(),
        })
    }

    pub(super) fn timeout() -> Self {
        Self("the server did not answer in time".to_owned())
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Cause {}

/// The ledger's error: what was being done, to which database, what to do next.
pub(super) fn report(kind: LedgerErrorKind, doing: &str, target: &Target, cause: &Cause) -> LedgerError {
    let next = match kind {
        LedgerErrorKind::Unavailable => "check that it is reachable and that user and password are right",
        LedgerErrorKind::ReadOnly => "connect to a primary, as a user who may write the ledger's tables",
        LedgerErrorKind::Full => "make room on the server's disk",
        LedgerErrorKind::Overloaded => "make fewer calls at a time",
        LedgerErrorKind::NotALedger => "name a schema of its own for the ledger",
        LedgerErrorKind::NewerSchema => "update this library",
        LedgerErrorKind::Corrupt => "a value is out of its range, or a row was changed by hand",
        LedgerErrorKind::Closed | LedgerErrorKind::Unsupported => "correct the settings",
    };
    LedgerError::new(kind, format!("{doing} {target}: {cause}; {next}")).with_source(cause.clone())
}
