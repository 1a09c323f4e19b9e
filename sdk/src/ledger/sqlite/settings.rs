//! How a ledger in a file is to be opened.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use sqlx::{
    ConnectOptions, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteSynchronous},
};

use super::SqliteLedger;
use crate::{
    clock,
    ledger::{LedgerError, WhenFull, record::LedgerTime, writer::Limits},
};

/// How long one statement waits inside SQLite before the ledger itself tries again.
const BUSY_TIMEOUT_MAX: Duration = Duration::from_secs(1);

/// So many statements stay prepared, more than there are: each kind of write, and the look before it, in each size and each
/// place in a transaction. To prepare one of 64 rows again takes a millisecond.
const STATEMENTS_MAX: usize = 256;

/// Opens a [`SqliteLedger`] with other settings than the default ones.
#[derive(Debug, Clone)]
pub struct SqliteLedgerBuilder {
    pub(super) settings: Settings,
}

/// What every connection of a ledger is opened with.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) path: PathBuf,
    pub(super) create: bool,
    pub(super) busy_patience: Duration,
    pub(super) limits: Limits,
    pub(super) clock_offset_ms: i64,
    max_pages: Option<u32>,
}

impl SqliteLedgerBuilder {
    pub(super) fn new(path: &Path) -> Self {
        // An absolute path is never one of the names that SQLite treats apart, such as `:memory:`.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self {
            settings: Settings {
                path,
                create: true,
                busy_patience: Duration::from_secs(60),
                limits: Limits::default(),
                clock_offset_ms: 0,
                max_pages: None,
            },
        }
    }

    /// Whether a file that does not exist is created; `true` unless set.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.settings.create = create;
        self
    }

    /// For how long other processes may hold the file's write lock in a row before a call gives up with
    /// [`Unavailable`](crate::LedgerErrorKind::Unavailable); 60 seconds unless set.
    #[must_use]
    pub fn busy_patience(mut self, patience: Duration) -> Self {
        self.settings.busy_patience = patience;
        self
    }

    /// How many claims may wait to be stored, at least 1; 4096 unless set. Changes of claims that are held always find room.
    #[must_use]
    pub fn waiting_max(mut self, claims: usize) -> Self {
        self.settings.limits.waiting_max = claims;
        self
    }

    /// What becomes of a claim while as many wait as may: it waits for room unless set otherwise.
    #[must_use]
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.settings.limits.when_full = when_full;
        self
    }

    /// Moves the ledger's clock, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn clock_offset_ms(mut self, offset_ms: i64) -> Self {
        self.settings.clock_offset_ms = offset_ms;
        self
    }

    /// Lets the file grow to so many pages and no further, for tests of a full disk.
    #[doc(hidden)]
    #[must_use]
    pub fn max_pages(mut self, pages: u32) -> Self {
        self.settings.max_pages = Some(pages);
        self
    }

    /// Opens the file, or creates it with its schema.
    ///
    /// # Errors
    /// As [`SqliteLedger::open`].
    ///
    /// # Cancel safety
    /// Dropped before it resolves, it may or may not have created the file; what it opened closes by itself.
    pub async fn open(self) -> Result<SqliteLedger, LedgerError> {
        super::thread::start(self.settings).await
    }
}

impl Settings {
    /// The one expression for "now": the machine's clock, which is what SQLite reads too.
    pub(super) fn now(&self) -> LedgerTime {
        clock::wall_ms() + self.clock_offset_ms
    }

    /// The same for a file that must exist by now.
    pub(super) fn without_creating(self) -> Self {
        Self { create: false, ..self }
    }

    /// A connection that may write. Checkpoints are the background's, so that no commit waits for one.
    pub(super) async fn connect(&self, create: bool) -> sqlx::Result<SqliteConnection> {
        let mut options = self
            .options()
            .create_if_missing(create)
            .synchronous(SqliteSynchronous::Full)
            .statement_cache_capacity(STATEMENTS_MAX)
            .pragma("wal_autocheckpoint", "0");
        if let Some(pages) = self.max_pages {
            options = options.pragma("max_page_count", pages.to_string());
        }
        options.connect().await
    }

    /// A connection that never changes the file.
    pub(super) async fn connect_read_only(&self) -> sqlx::Result<SqliteConnection> {
        self.options().read_only(true).connect().await
    }

    fn options(&self) -> SqliteConnectOptions {
        SqliteConnectOptions::new()
            .filename(&self.path)
            .foreign_keys(true)
            .busy_timeout(self.busy_patience.min(BUSY_TIMEOUT_MAX))
            .disable_statement_logging()
    }
}
