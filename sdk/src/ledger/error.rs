//! What a ledger answers when it cannot answer.

use std::{borrow::Cow, error::Error, fmt};

/// Why a ledger could not do what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LedgerErrorKind {
    /// It cannot be reached, or did not answer in time. Trying again makes sense.
    Unavailable,
    /// It is there and cannot be written: read-only file, missing privilege. Trying again does not help by itself.
    ReadOnly,
    /// The disk or the quota is full. Trying again makes sense once there is room.
    Full,
    /// As many claims wait as are allowed to, and a further one is refused: nothing was started, the provider was not called,
    /// and trying again is safe and makes sense once there is less to do.
    Overloaded,
    /// What was opened is not a ledger.
    NotALedger,
    /// Its schema is newer than this library.
    NewerSchema,
    /// A stored value cannot be read, or a constraint refused a write.
    Corrupt,
    /// The ledger was closed, or its set-up is wrong.
    Closed,
    /// It does not offer what was asked for.
    Unsupported,
}

/// An error of the ledger. Carries no argument, payload or key of the user.
#[derive(Debug)]
pub struct LedgerError {
    kind: LedgerErrorKind,
    context: Cow<'static, str>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl LedgerError {
    /// An error of `kind`; `context` says what was being done, to what, and what to do next.
    pub fn new(kind: LedgerErrorKind, context: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, context: context.into(), source: None }
    }

    /// With the error of the database or the system behind it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Why.
    #[must_use]
    pub fn kind(&self) -> LedgerErrorKind {
        self.kind
    }

    /// Whether the same request may succeed later without anybody mending anything.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        use LedgerErrorKind::{Full, Overloaded, Unavailable};
        matches!(self.kind, Unavailable | Full | Overloaded)
    }
}

impl fmt::Display for LedgerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            LedgerErrorKind::Unavailable => "the ledger is unavailable",
            LedgerErrorKind::ReadOnly => "the ledger cannot be written",
            LedgerErrorKind::Full => "the ledger's disk is full",
            LedgerErrorKind::Overloaded => "the ledger has too much to do",
            LedgerErrorKind::NotALedger => "this is not a ledger",
            LedgerErrorKind::NewerSchema => "the ledger's schema is newer than this library",
            LedgerErrorKind::Corrupt => "the ledger holds or was given what it cannot hold",
            LedgerErrorKind::Closed => "the ledger is closed",
            LedgerErrorKind::Unsupported => "the ledger does not offer this",
        };
        write!(f, "{what}: {}", self.context)
    }
}

impl Error for LedgerError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}
