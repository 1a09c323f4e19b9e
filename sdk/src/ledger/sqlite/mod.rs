//! The embedded ledger: one SQLite file, any number of processes of one machine.
//!
//! A thread of its own takes what waits, judges it and stores it in one durable commit. Reads have a connection of
//! their own, and the log is moved into the file in the background.

mod among;
mod begin;
mod beside;
mod checkpoint;
mod columns;
mod error;
mod guess;
mod io;
mod judging;
mod list;
mod migrate;
mod open;
mod read;
#[cfg(feature = "tower")]
mod requests;
mod row;
mod settings;
mod shape;
mod sized;
mod sweep;
mod thread;
mod unsettled;
mod writing;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::watch;

#[cfg(feature = "tower")]
pub use self::requests::SqliteRequests;
pub use self::settings::SqliteLedgerBuilder;
use super::{
    By, Change, Changed, Claim, ClaimRequest, EffectHistory, EffectTransaction, Forgot, Ledger, LedgerError,
    LedgerErrorKind, Owner, Payload, ResolutionReply, ResolutionRequest, RunPage, RunRow, Sweep, Swept,
    TransactionalLedger, Transactions, UnsettledPage, UnsettledQuery, writer::Queue,
};
use crate::identity::{EffectId, RunId};

/// A ledger in a SQLite file on a local disk.
///
/// Several processes of one machine may open one file: they wait for each other, and no call fails because another
/// process writes. Cloning is cheap, and all clones are one ledger. The last one dropped ends its thread, after what
/// was handed in is stored; [`close`](Ledger::close) waits for that.
#[derive(Clone)]
pub struct SqliteLedger {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    #[cfg(feature = "tower")]
    clock_offset_ms: i64,
    /// Absent once the ledger is closed.
    ends: Mutex<Option<Ends>>,
    /// Its sender goes when the thread has stored everything and closed the file.
    ended: watch::Receiver<()>,
}

/// The callers' ends of what the thread serves.
#[derive(Clone)]
struct Ends {
    queue: Queue,
    reads: read::Reads,
    /// Apart, so that no single read waits behind a long list.
    lists: read::Reads,
    sweeps: sweep::Sweeps,
    opener: begin::Opener,
    #[cfg(feature = "tower")]
    requests: requests::Queue,
}

impl SqliteLedger {
    /// Opens the file at `path`, or creates it with its schema. Its directory must exist.
    ///
    /// # Errors
    /// - [`Unavailable`](LedgerErrorKind::Unavailable): the directory is missing, or the file cannot be opened.
    /// - [`ReadOnly`](LedgerErrorKind::ReadOnly), [`Full`](LedgerErrorKind::Full): the file, its directory or its disk
    ///   does not take a write.
    /// - [`NotALedger`](LedgerErrorKind::NotALedger): the file is something else; it is left as it was.
    /// - [`NewerSchema`](LedgerErrorKind::NewerSchema): a newer version of this library wrote it.
    ///
    /// # Cancel safety
    /// Dropped before it resolves, it may or may not have created the file; what it opened closes by itself.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, LedgerError> {
        Self::builder(path).open().await
    }

    /// Settings for opening the file at `path`.
    pub fn builder(path: impl AsRef<Path>) -> SqliteLedgerBuilder {
        SqliteLedgerBuilder::new(path.as_ref())
    }

    /// The file's absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// The records of callers' requests in the same file, for an
    /// [`IdempotencyKeyLayer`](crate::idempotency_key::IdempotencyKeyLayer): a table of their own, apart from the effects.
    #[cfg(feature = "tower")]
    #[must_use]
    pub fn requests(&self) -> SqliteRequests {
        SqliteRequests::new(self.clone())
    }

    fn ends(&self) -> Result<Ends, LedgerError> {
        let ends = self.inner.ends.lock().unwrap_or_else(PoisonError::into_inner);
        ends.clone().ok_or_else(|| {
            let context = format!("{} was closed by this process", self.inner.path.display());
            LedgerError::new(LedgerErrorKind::Closed, context)
        })
    }
}

impl fmt::Debug for SqliteLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteLedger").field("path", &self.inner.path).finish_non_exhaustive()
    }
}

impl TransactionalLedger for SqliteLedger {
    type Connection = sqlx::SqliteConnection;
}

#[async_trait]
impl Ledger for SqliteLedger {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        self.ends()?.queue.claim(request).await
    }

    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        self.ends()?.queue.change(owner, change).await
    }

    async fn resolve(&self, request: &ResolutionRequest) -> Result<ResolutionReply, LedgerError> {
        self.ends()?.queue.resolve(request).await
    }

    fn transactions(&self) -> Transactions {
        Transactions::Exclusive
    }

    async fn begin(&self, limit: Duration) -> Result<Box<dyn EffectTransaction>, LedgerError> {
        self.ends()?.opener.begin(limit).await
    }

    async fn read(&self, id: &EffectId) -> Result<Option<EffectHistory>, LedgerError> {
        self.ends()?.reads.ask(|reply| read::Question::History(id.clone(), reply)).await
    }

    async fn unsettled(&self, query: &UnsettledQuery) -> Result<UnsettledPage, LedgerError> {
        self.ends()?.reads.ask(|reply| read::Question::Unsettled(query.clone(), reply)).await
    }

    async fn input(&self, id: &EffectId) -> Result<Option<Payload>, LedgerError> {
        self.ends()?.reads.ask(|reply| read::Question::Input(id.clone(), reply)).await
    }

    async fn sweep(&self, batch: Sweep) -> Result<Swept, LedgerError> {
        self.ends()?.sweeps.sweep(batch).await
    }

    async fn forget(&self, id: &EffectId, by: &By) -> Result<Forgot, LedgerError> {
        self.ends()?.sweeps.forget(id, by).await
    }

    async fn of_run(&self, run: &RunId, page: &RunPage) -> Result<Vec<RunRow>, LedgerError> {
        self.ends()?.lists.ask(|reply| read::Question::Run(run.clone(), *page, reply)).await
    }

    fn name(&self) -> &'static str {
        "sqlite"
    }

    async fn close(&self) {
        drop(self.inner.ends.lock().unwrap_or_else(PoisonError::into_inner).take());
        let mut ended = self.inner.ended.clone();
        // Nothing is ever sent: the error is that the sender is gone, which is what is waited for.
        while ended.changed().await.is_ok() {}
    }
}
