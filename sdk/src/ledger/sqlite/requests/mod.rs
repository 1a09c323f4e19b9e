//! Request records in the ledger's file, on a connection of their own.

mod row;
mod serve;
mod transaction;

use std::fmt;

use async_trait::async_trait;
use tokio::sync::mpsc;

pub(super) use self::serve::{Intake, serve};
use super::SqliteLedger;
use crate::ledger::{
    LedgerError, LedgerErrorKind,
    ask::{Answered, ask},
    requests::{Begin, Begun, Change, Changed, Owner, Place, RecordKey, RequestRecord, RequestStore},
};

/// How many commands may wait; a caller beyond that waits for room.
const WAITING_MAX: usize = 1024;

/// What is asked of the connection.
pub(super) enum Command {
    Begin(Begin, Answered<Begun>),
    Change(Owner, Change, Answered<Changed>),
    Read(RecordKey, Answered<Option<RequestRecord>>),
    Sweep(u32, Answered<u64>),
}

/// The callers' end.
pub(super) type Queue = mpsc::Sender<Command>;

pub(super) fn queue() -> (Queue, Intake) {
    mpsc::channel(WAITING_MAX)
}

/// The request records in the file of a [`SqliteLedger`]; made by [`SqliteLedger::requests`].
///
/// Cloning is cheap. Keeps the ledger's thread running as the ledger itself does; once the ledger is
/// [closed](crate::Ledger::close), calls get [`LedgerErrorKind::Closed`].
#[derive(Clone)]
pub struct SqliteRequests {
    ledger: SqliteLedger,
}

impl SqliteRequests {
    pub(super) fn new(ledger: SqliteLedger) -> Self {
        Self { ledger }
    }

    async fn ask<T>(&self, command: impl FnOnce(Answered<T>) -> Command) -> Result<T, LedgerError> {
        let closed = || LedgerError::new(LedgerErrorKind::Closed, "its request records are closed");
        ask(self.ledger.ends()?.requests, command, closed).await
    }
}

impl fmt::Debug for SqliteRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteRequests").field("ledger", &self.ledger).finish()
    }
}

#[async_trait]
impl RequestStore for SqliteRequests {
    async fn begin(&self, request: &Begin) -> Result<Begun, LedgerError> {
        self.ask(|reply| Command::Begin(request.clone(), reply)).await
    }

    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        self.ask(|reply| Command::Change(owner.clone(), change.clone(), reply)).await
    }

    async fn read(&self, key: &RecordKey) -> Result<Option<RequestRecord>, LedgerError> {
        self.ask(|reply| Command::Read(key.clone(), reply)).await
    }

    async fn sweep(&self, limit: u32) -> Result<u64, LedgerError> {
        self.ask(|reply| Command::Sweep(limit, reply)).await
    }

    fn place(&self) -> Place {
        Place { schema: None, clock_offset_ms: self.ledger.inner.clock_offset_ms }
    }

    fn name(&self) -> &'static str {
        "sqlite"
    }
}
