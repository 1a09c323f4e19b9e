//! The ledger in a PostgreSQL database.
//!
//! One table holds a row an effect; everything is decided by [`claim::judge`](super::claim::judge) and
//! [`change::judge`](super::change::judge) and stored by compare-and-set. A claim of something new is one round trip,
//! and a hit writes nothing. All writes go through a thread of the ledger's own, which stores whatever waits in one
//! statement each time it becomes free.
//!
//! There are two modes. *Direct*, to the server itself or through a pooler in session mode: the connections pin planner
//! settings, use named statements, expect to be the same session throughout, and one more is told when an effect that
//! another process performs has moved on. *Pooled*, through a pooler in transaction mode such as pgbouncer
//! ([`pooled`](PostgresLedgerBuilder::pooled)): nothing outlives a transaction, and waiters look again.

mod among;
mod begin;
mod builder;
mod connect;
mod decode;
mod encode;
mod error;
mod list;
mod listen;
mod migrate;
mod pass;
mod reader;
#[cfg(feature = "tower")]
mod requests;
mod round;
mod rows_usual;
mod session;
mod signals;
mod sql;
mod sql_usual;
mod store;
mod sweep;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod time;
mod unsettled;
mod usual;
mod writer;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
};

pub use self::builder::PostgresLedgerBuilder;
#[cfg(feature = "tower")]
pub use self::requests::PostgresRequests;
use self::{
    connect::{Connector, Link, Target},
    reader::Request,
    signals::{News, Signals},
    writer::Writer,
};
use super::{
    By, Change, Changed, Claim, ClaimRequest, EffectHistory, EffectTransaction, Forgot, Ledger, LedgerError,
    LedgerErrorKind, Owner, Payload, ResolutionReply, ResolutionRequest, RunPage, RunRow, Sweep, Swept,
    TransactionalLedger, Transactions, UnsettledPage, UnsettledQuery,
    ask::{Answered, ask},
    writer::{Intake, Limits, Queue, queue, serve},
};
use crate::identity::{EffectId, RunId};

/// How many reads may wait; a caller beyond that waits for room.
const READS_MAX: usize = 256;

/// The same for what is to be forgotten.
const SWEEPS_MAX: usize = 64;

/// How many bodies may wait for a transaction to be opened; one beyond that waits for room.
const TRANSACTIONS_MAX: usize = 256;

/// A ledger in a PostgreSQL database, for any number of processes.
///
/// Every commit is durable, whatever the database's `synchronous_commit` says. Dropping the ledger ends its connections
/// once what was handed in is stored; [`close`](Ledger::close) waits for that.
pub struct PostgresLedger {
    handles: Arc<Mutex<Option<Handles>>>,
    target: Target,
    #[cfg(feature = "tower")]
    place: super::requests::Place,
    /// Who waits for whom; `None` where nobody tells.
    signals: Option<Arc<Signals>>,
    linearizable_across_regions: bool,
    /// Closes when the ledger's thread ends.
    ended: watch::Receiver<()>,
}

/// What keeps the ledger's thread running.
#[derive(Clone)]
struct Handles {
    queue: Queue,
    reads: mpsc::Sender<Request>,
    /// Apart, so that no single read waits behind a long list.
    lists: mpsc::Sender<Request>,
    sweeps: mpsc::Sender<sweep::Request>,
    transactions: mpsc::Sender<begin::Wanted>,
    #[cfg(feature = "tower")]
    requests: requests::Queue,
}

impl std::fmt::Debug for PostgresLedger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresLedger")
            .field("target", &format_args!("{}", self.target))
            .finish_non_exhaustive()
    }
}

impl PostgresLedger {
    /// Connects with the default settings to `postgres://user:password@host:port/database`.
    ///
    /// # Errors
    /// As [`PostgresLedgerBuilder::connect`].
    ///
    /// # Cancel safety
    /// As [`PostgresLedgerBuilder::connect`].
    pub async fn connect(url: impl Into<String>) -> Result<Self, LedgerError> {
        Self::builder(url).connect().await
    }

    /// The settings of a ledger at `postgres://user:password@host:port/database`.
    pub fn builder(url: impl Into<String>) -> PostgresLedgerBuilder {
        PostgresLedgerBuilder::new(url.into())
    }

    async fn start(
        connector: Connector,
        writers: usize,
        limits: Limits,
        linearizable_across_regions: bool,
    ) -> Result<Self, LedgerError> {
        let target = connector.target.clone();
        #[cfg(feature = "tower")]
        let place = super::requests::Place {
            schema: connector.schema.as_deref().map(Into::into),
            clock_offset_ms: connector.offset_ms,
        };
        #[cfg(feature = "tower")]
        let (requests, requested) = requests::queue();
        let (queue, intake) = queue(limits);
        let (reads, read) = mpsc::channel(READS_MAX);
        let (lists, listed) = mpsc::channel(READS_MAX);
        let (sweeps, to_sweep) = mpsc::channel(SWEEPS_MAX);
        let (transactions, wanted) = mpsc::channel(TRANSACTIONS_MAX);
        let (opened, opening) = oneshot::channel();
        let (running, ended) = watch::channel(());
        let signals = (!connector.is_pooled()).then(Arc::<Signals>::default);
        let work = Work {
            connector,
            writers,
            intake,
            reads: reads.downgrade(),
            read,
            listed,
            to_sweep,
            wanted,
            signals: signals.clone(),
            #[cfg(feature = "tower")]
            requested,
        };
        let run = move || {
            work.run(opened);
            drop(running);
        };
        let no_thread = |error: std::io::Error| {
            LedgerError::new(LedgerErrorKind::Unavailable, "the system gave the ledger no thread")
                .with_source(error)
        };
        std::thread::Builder::new().name("effectual-postgres".into()).spawn(run).map_err(no_thread)?;
        opening.await.unwrap_or_else(|_| Err(closed(&target)))?;
        let handles = Handles {
            queue,
            reads,
            lists,
            sweeps,
            transactions,
            #[cfg(feature = "tower")]
            requests,
        };
        Ok(Self {
            handles: Arc::new(Mutex::new(Some(handles))),
            target,
            #[cfg(feature = "tower")]
            place,
            signals,
            linearizable_across_regions,
            ended,
        })
    }

    /// The records of callers' requests in the same database, for an
    /// [`IdempotencyKeyLayer`](crate::idempotency_key::IdempotencyKeyLayer): a table of their own, apart from the effects.
    #[cfg(feature = "tower")]
    #[must_use]
    pub fn requests(&self) -> PostgresRequests {
        PostgresRequests {
            handles: Arc::clone(&self.handles),
            target: self.target.clone(),
            place: self.place.clone(),
        }
    }

    /// Asks one of the tasks on the ledger's thread.
    async fn ask<R, T>(
        &self,
        served_by: mpsc::Sender<R>,
        request: impl FnOnce(Answered<T>) -> R,
    ) -> Result<T, LedgerError> {
        ask(served_by, request, || closed(&self.target)).await
    }

    /// The one that every call needs.
    fn queue(&self) -> Result<Queue, LedgerError> {
        let handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        handles.as_ref().map(|handles| handles.queue.clone()).ok_or_else(|| closed(&self.target))
    }

    fn handles(&self) -> Result<Handles, LedgerError> {
        let handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        handles.clone().ok_or_else(|| closed(&self.target))
    }
}

fn closed(target: &Target) -> LedgerError {
    LedgerError::new(LedgerErrorKind::Closed, format!("the ledger in {target} was closed"))
}

/// What the ledger's thread does.
struct Work {
    connector: Connector,
    writers: usize,
    intake: Intake,
    reads: mpsc::WeakSender<Request>,
    read: mpsc::Receiver<Request>,
    listed: mpsc::Receiver<Request>,
    to_sweep: mpsc::Receiver<sweep::Request>,
    wanted: mpsc::Receiver<begin::Wanted>,
    signals: Option<Arc<Signals>>,
    #[cfg(feature = "tower")]
    requested: requests::Intake,
}

impl Work {
    /// On a runtime of its own, which a blocked executor cannot starve.
    fn run(self, opened: oneshot::Sender<Result<(), LedgerError>>) {
        match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime.block_on(self.serve(opened)),
            Err(error) => {
                let refused =
                    LedgerError::new(LedgerErrorKind::Unavailable, "the system gave the ledger no runtime");
                drop(opened.send(Err(refused.with_source(error))));
            }
        }
    }

    async fn serve(self, opened: oneshot::Sender<Result<(), LedgerError>>) {
        let mut session = match migrate::open(&self.connector).await {
            Ok(session) => Some(session),
            Err(error) => return drop(opened.send(Err(error))),
        };
        let Some(reads) = self.reads.upgrade() else { return };
        if opened.send(Ok(())).is_err() {
            return;
        }
        let intake = Arc::new(self.intake);
        let mut tasks = JoinSet::new();
        for _ in 0..self.writers {
            let link = Link::new(self.connector.clone(), session.take());
            let tells = self.signals.clone().map(|signals| (signals, reads.clone()));
            let mut writer = Writer { link, looks_first: false, tells };
            let intake = Arc::clone(&intake);
            tasks.spawn(async move {
                serve(&intake, &mut writer).await;
                writer.link.close().await;
            });
        }
        drop(reads);
        let tells = self.signals.clone().map(|signals| (signals, self.reads));
        tasks.spawn(begin::serve(self.connector.clone(), tells, self.wanted));
        tasks.spawn(reader::serve(self.connector.clone(), self.read));
        tasks.spawn(reader::serve(self.connector.clone(), self.listed));
        tasks.spawn(sweep::serve(self.connector.clone(), self.to_sweep));
        #[cfg(feature = "tower")]
        {
            let requested = Arc::new(tokio::sync::Mutex::new(self.requested));
            for _ in 0..requests::CONNECTIONS {
                tasks.spawn(requests::serve(self.connector.clone(), Arc::clone(&requested)));
            }
        }
        let done = async { while tasks.join_next().await.is_some() {} };
        match &self.signals {
            None => done.await,
            Some(signals) => tokio::select! {
                () = done => {}
                () = listen::serve(&self.connector, signals) => {}
            },
        }
    }
}

impl TransactionalLedger for PostgresLedger {
    type Connection = sqlx::PgConnection;
}

#[async_trait]
impl Ledger for PostgresLedger {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        self.queue()?.claim(request).await
    }

    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        self.queue()?.change(owner, change).await
    }

    async fn resolve(&self, request: &ResolutionRequest) -> Result<ResolutionReply, LedgerError> {
        self.queue()?.resolve(request).await
    }

    fn transactions(&self) -> Transactions {
        Transactions::Beside
    }

    async fn begin(&self, limit: Duration) -> Result<Box<dyn EffectTransaction>, LedgerError> {
        self.ask(self.handles()?.transactions, |reply| begin::Wanted { limit, reply }).await
    }

    async fn read(&self, id: &EffectId) -> Result<Option<EffectHistory>, LedgerError> {
        self.ask(self.handles()?.reads, |reply| Request::Read(id.clone(), reply)).await
    }

    async fn unsettled(&self, query: &UnsettledQuery) -> Result<UnsettledPage, LedgerError> {
        self.ask(self.handles()?.reads, |reply| Request::Unsettled(query.clone(), reply)).await
    }

    async fn input(&self, id: &EffectId) -> Result<Option<Payload>, LedgerError> {
        self.ask(self.handles()?.reads, |reply| Request::Input(id.clone(), reply)).await
    }

    async fn sweep(&self, batch: Sweep) -> Result<Swept, LedgerError> {
        self.ask(self.handles()?.sweeps, |reply| sweep::Request::Sweep(batch, reply)).await
    }

    async fn forget(&self, id: &EffectId, by: &By) -> Result<Forgot, LedgerError> {
        let asked = sweep::Forget { id: id.clone(), by: by.clone() };
        self.ask(self.handles()?.sweeps, |reply| sweep::Request::Forget(asked, reply)).await
    }

    async fn of_run(&self, run: &RunId, page: &RunPage) -> Result<Vec<RunRow>, LedgerError> {
        self.ask(self.handles()?.lists, |reply| Request::Run(run.clone(), *page, reply)).await
    }

    fn linearizable_across_regions(&self) -> bool {
        self.linearizable_across_regions
    }

    async fn changed(&self, id: &EffectId) {
        let Some(signals) = &self.signals else { return std::future::pending().await };
        let head = encode::head(id);
        let mut waiting = signals.wait_for(head);
        // What is not told now is found by looking again.
        if let (true, Ok(handles)) = (waiting.is_first, self.handles()) {
            drop(handles.reads.try_send(Request::Tell(News::Awaited, vec![head])));
        }
        waiting.moved().await;
    }

    fn announces(&self) -> bool {
        self.signals.is_some()
    }

    fn name(&self) -> &'static str {
        "postgres"
    }

    async fn close(&self) {
        drop(self.handles.lock().unwrap_or_else(PoisonError::into_inner).take());
        let mut ended = self.ended.clone();
        // Never changes: it closes when the thread ends.
        while ended.changed().await.is_ok() {}
    }
}
