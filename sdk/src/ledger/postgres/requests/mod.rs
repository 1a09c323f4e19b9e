//! Request records in the ledger's database, on connections of their own.

mod row;
mod serve;
mod sql;
mod transaction;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use tokio::sync::mpsc;

pub(super) use self::serve::serve;
use super::{Handles, closed, connect::Target};
use crate::ledger::{
    LedgerError,
    ask::{Answered, ask},
    requests::{Begin, Begun, Change, Changed, Owner, Place, RecordKey, RequestRecord, RequestStore},
};

/// How many commands may wait; a caller beyond that waits for room.
const WAITING_MAX: usize = 1024;

/// How many connections serve them. Each is opened when it is first needed.
pub(super) const CONNECTIONS: usize = 4;

/// What is asked of the connections.
pub(super) enum Command {
    Begin(Begin, Answered<Begun>),
    Change(Owner, Change, Answered<Changed>),
    Read(RecordKey, Answered<Option<RequestRecord>>),
    Sweep(u32, Answered<u64>),
}

/// The callers' end, and the connections'.
pub(super) type Queue = mpsc::Sender<Command>;
pub(super) type Intake = mpsc::Receiver<Command>;

pub(super) fn queue() -> (Queue, Intake) {
    mpsc::channel(WAITING_MAX)
}

/// The request records in the database of a [`PostgresLedger`](crate::PostgresLedger); made by
/// [`PostgresLedger::requests`](crate::PostgresLedger::requests).
///
/// Cloning is cheap. Keeps the ledger's thread running as the ledger itself does; once the ledger is
/// [closed](crate::Ledger::close), calls get [`LedgerErrorKind::Closed`](crate::LedgerErrorKind::Closed). Up to four
/// connections are opened beside the ledger's own, when they are first needed.
#[derive(Clone)]
pub struct PostgresRequests {
    pub(super) handles: Arc<Mutex<Option<Handles>>>,
    pub(super) target: Target,
    pub(super) place: Place,
}

impl PostgresRequests {
    async fn ask<T>(&self, command: impl FnOnce(Answered<T>) -> Command) -> Result<T, LedgerError> {
        let closed = || closed(&self.target);
        let handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ask(handles.ok_or_else(closed)?.requests, command, closed).await
    }
}

impl fmt::Debug for PostgresRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = format_args!("{}", self.target);
        f.debug_struct("PostgresRequests").field("target", &target).finish_non_exhaustive()
    }
}

#[async_trait]
impl RequestStore for PostgresRequests {
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
        self.place.clone()
    }

    fn name(&self) -> &'static str {
        "postgres"
    }
}
