//! The settings of a ledger in PostgreSQL.

use std::time::Duration;

use super::{PostgresLedger, connect::Connector};
use crate::ledger::{LedgerError, WhenFull, writer::Limits};

/// How many writers there are unless set otherwise: with two, one collects a batch while the other's is written.
const WRITERS: usize = 2;

/// More writers than this only wait for each other.
const WRITERS_MAX: usize = 16;

const PATIENCE: Duration = Duration::from_secs(5);

/// The settings of a [`PostgresLedger`]; made by [`PostgresLedger::builder`].
#[derive(Clone)]
#[must_use]
pub struct PostgresLedgerBuilder {
    url: String,
    schema: Option<String>,
    is_pooled: bool,
    writers: usize,
    patience: Duration,
    limits: Limits,
    linearizable_across_regions: bool,
    clock_offset_ms: i64,
}

impl std::fmt::Debug for PostgresLedgerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The URL holds the password.
        f.debug_struct("PostgresLedgerBuilder")
            .field("schema", &self.schema)
            .field("pooled", &self.is_pooled)
            .field("writers", &self.writers)
            .field("patience", &self.patience)
            .field("limits", &self.limits)
            .field("linearizable_across_regions", &self.linearizable_across_regions)
            .finish_non_exhaustive()
    }
}

impl PostgresLedgerBuilder {
    pub(super) fn new(url: String) -> Self {
        Self {
            url,
            schema: None,
            is_pooled: false,
            writers: WRITERS,
            patience: PATIENCE,
            limits: Limits::default(),
            linearizable_across_regions: false,
            clock_offset_ms: 0,
        }
    }

    /// The schema that holds the ledger's tables: 1 to 63 of `a-z`, `0-9` and `_`, not starting with a digit. It is
    /// made where it is missing. Unless set, the tables are where the connection's own search path leads.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self
    }

    /// Whether the URL leads to a pooler that lends a connection for one transaction at a time, such as pgbouncer with
    /// `pool_mode = transaction`; `false` unless set, which is for the server itself or a pooler in session mode.
    ///
    /// A pooled ledger leaves nothing behind in a session: every statement goes unnamed, in a transaction of its own
    /// that pins its settings. That takes three more round trips a statement, and callers that wait for another process
    /// find out by looking again instead of being told.
    pub fn pooled(mut self, is_pooled: bool) -> Self {
        self.is_pooled = is_pooled;
        self
    }

    /// How many connections write, from 1 to 16 (what is outside is taken as the nearest); 2 unless set. One more is
    /// opened by the first read, one by the first list of a run, and one that is told of changes, unless
    /// [pooled](Self::pooled).
    pub fn writers(mut self, writers: usize) -> Self {
        self.writers = writers.clamp(1, WRITERS_MAX);
        self
    }

    /// For how long a call goes on trying while the server cannot be reached; 5 seconds unless set.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// How many claims may wait to be stored, at least 1; 4096 unless set. Changes of claims that are held always find room.
    pub fn waiting_max(mut self, claims: usize) -> Self {
        self.limits.waiting_max = claims;
        self
    }

    /// What becomes of a claim while as many wait as may: it waits for room unless set otherwise.
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.limits.when_full = when_full;
        self
    }

    /// Says that this database is linearizable across regions: a distributed SQL engine at its strictest isolation, or a
    /// primary whose commits wait for a replica in every region that may take over. The ledger cannot check it; what
    /// follows from it is on the page on [regions](crate::docs::multi_region). `false` unless set.
    pub fn linearizable_across_regions(mut self, is_linearizable: bool) -> Self {
        self.linearizable_across_regions = is_linearizable;
        self
    }

    /// Sets the ledger's clock this many milliseconds ahead of the database's. For tests.
    #[doc(hidden)]
    pub fn clock_offset_ms(mut self, offset_ms: i64) -> Self {
        self.clock_offset_ms = offset_ms;
        self
    }

    /// Connects, and makes or updates the tables. Several processes may do so at once.
    ///
    /// # Errors
    /// [`LedgerError`] of kind `Unavailable` where the server or the database cannot be reached or refuses the user,
    /// `ReadOnly` where it cannot be written, `NotALedger` where other tables have the ledger's names, `NewerSchema`,
    /// and `Closed` where the settings are wrong. Its text names host and database, never the password.
    ///
    /// # Cancel safety
    /// A future that is dropped leaves the tables as they were or whole, and no connection.
    pub async fn connect(self) -> Result<PostgresLedger, LedgerError> {
        let connector =
            Connector::new(&self.url, self.schema, self.is_pooled, self.patience, self.clock_offset_ms)?;
        PostgresLedger::start(connector, self.writers, self.limits, self.linearizable_across_regions).await
    }
}
