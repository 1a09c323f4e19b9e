//! The ledger: where claims are won and outcomes are kept.
//!
//! [`claim::judge`], [`change::judge`] and [`resolution::judge`] are the whole state machine, and they are pure. A backend reads a row, lets
//! them judge, and stores what they say by compare-and-set: that is all that differs from one database to the next.

#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod ask;
pub mod audit;
pub mod change;
pub mod claim;
pub mod codec;
mod error;
mod give_back;
pub mod identities;
#[cfg(test)]
pub(crate) mod judge_model;
mod listing;
mod memory;
mod names;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(test)]
mod protocol_model;
pub mod record;
#[cfg(feature = "tower")]
pub mod requests;
pub mod resolution;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub mod sweep;
pub mod transaction;
pub mod transition;
pub mod unsettled;
#[cfg(any(test, feature = "sqlite", feature = "postgres"))]
pub(crate) mod writer;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

#[cfg(test)]
pub(crate) use self::memory::Kept;
#[cfg(any(test, feature = "sqlite", feature = "postgres"))]
pub use self::writer::WhenFull;
pub use self::{
    change::{Change, Changed, Owner},
    claim::{Claim, ClaimRequest, Task},
    error::{LedgerError, LedgerErrorKind},
    listing::{RunCursor, RunPage, RunRow},
    memory::MemoryLedger,
    record::{EffectHistory, EffectRecord, Payload},
    resolution::{By, ResolutionReply, ResolutionRequest},
    sweep::{Forgot, Sweep, Swept},
    transaction::{EffectTransaction, TransactionEnd, TransactionalLedger, Transactions},
    unsettled::{Unsettled, UnsettledCursor, UnsettledPage, UnsettledQuery},
};
use crate::identity::{EffectId, RunId};

/// What a ledger owes.
///
/// # Contract
/// - **Durable**: when `claim`, `change` or `resolve` resolves with `Ok`, what it says is on disk and survives the death of the
///   process and of the machine. The one exception is [`MemoryLedger`], which says so.
/// - **Atomic**: each call stores all of its [`Write`](transition::Write) or none of it, and only if revision, state and
///   fence of the row are still the judged ones. Of callers that judge one row at the same time, one stores; the others
///   judge again on a fresh read.
/// - **One clock**: every time in a row comes from the ledger's own clock, never from a caller's.
/// - **Own transaction**: no call takes part in a transaction of the caller, but for what [`begin`](Ledger::begin) is for.
/// - **Idempotent by token**: a call repeated after a lost acknowledgement finds its own token and answers as the first.
/// - **Honest**: an error means that the call may or may not have been stored; it never stands for a lost race.
///
/// # Cancel safety
/// A future of these methods that is dropped may or may not have taken effect; it never leaves a transaction open, a
/// connection unusable or a row half written.
#[async_trait]
pub trait Ledger: Send + Sync + std::fmt::Debug + 'static {
    /// Claims an effect, or says why not: stores what [`claim::judge`] decides.
    ///
    /// A hit never writes, but for the first touch by another run.
    ///
    /// # Errors
    /// [`LedgerError`]; nothing was started, and a repeated call with the same token finds a claim that was stored.
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError>;

    /// Stores what [`change::judge`] decides of the owner's change.
    ///
    /// # Errors
    /// [`LedgerError`]; a repeated call with the same owner is recognised.
    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError>;

    /// Stores what [`resolution::judge`] decides of an operator's request, and its audit entry in the same write. By default
    /// it is [`Unsupported`](LedgerErrorKind::Unsupported).
    ///
    /// # Errors
    /// [`LedgerError`]; a repeated call with the same token finds a resolution that was stored.
    async fn resolve(&self, request: &ResolutionRequest) -> Result<ResolutionReply, LedgerError> {
        let _ = request;
        Err(unsupported(self.name(), "resolve effects"))
    }

    /// What it offers to effects of the class `transactional`; nothing by default.
    fn transactions(&self) -> Transactions {
        Transactions::None
    }

    /// Opens a transaction of the ledger's database for one attempt of an effect. One that is silent for longer than `limit`
    /// may be rolled back. By default it is [`Unsupported`](LedgerErrorKind::Unsupported).
    ///
    /// # Errors
    /// [`LedgerError`]; nothing was begun.
    async fn begin(&self, limit: Duration) -> Result<Box<dyn EffectTransaction>, LedgerError> {
        let _ = limit;
        Err(LedgerError::new(LedgerErrorKind::Unsupported, "it has no transactions; nothing was performed"))
    }

    /// Everything known of the effect that an identity names, as its own or as a further one; `None` if there is none.
    ///
    /// # Errors
    /// [`LedgerError`].
    async fn read(&self, id: &EffectId) -> Result<Option<EffectHistory>, LedgerError>;

    /// One page of the effects without an outcome, oldest first: those that are due for a recovery, or all. A page looks at
    /// no more than [`limit`](UnsettledQuery::limit) effects, whatever it finds, and finds them by an index. By default refused.
    ///
    /// # Errors
    /// [`LedgerError`], of kind [`Unsupported`](LedgerErrorKind::Unsupported) where the ledger does not list.
    async fn unsettled(&self, query: &UnsettledQuery) -> Result<UnsettledPage, LedgerError> {
        let _ = query;
        Err(unsupported(self.name(), "list effects without an outcome"))
    }

    /// The arguments that were stored with the effect's first claim; `None` where none were. By default refused.
    ///
    /// # Errors
    /// [`LedgerError`], of kind [`Unsupported`](LedgerErrorKind::Unsupported) where the ledger does not keep them.
    async fn input(&self, id: &EffectId) -> Result<Option<Payload>, LedgerError> {
        let _ = id;
        Err(unsupported(self.name(), "give arguments back"))
    }

    /// Forgets one batch of what is past its retention on the ledger's clock, as [`sweep`](sweep) says. Never touches an
    /// effect without an outcome. A batch is stored whole or not at all, is bounded in rows and bytes, and may be smaller than
    /// what was asked for; several at once share the work. By default refused.
    ///
    /// # Errors
    /// [`LedgerError`], of kind [`Unsupported`](LedgerErrorKind::Unsupported) where the ledger does not sweep. Nothing was
    /// forgotten, or the whole batch; calling again is safe.
    async fn sweep(&self, batch: Sweep) -> Result<Swept, LedgerError> {
        let _ = batch;
        Err(unsupported(self.name(), "sweep"))
    }

    /// Forgets the content of one completed effect before its time: what is left is its tombstone, and a line in the audit
    /// of who did it and why. Finds the effect by any of its identities. By default refused.
    ///
    /// # Errors
    /// [`LedgerError`], of kind [`Unsupported`](LedgerErrorKind::Unsupported) where the ledger does not forget; a repeated call
    /// finds out whether it was stored.
    async fn forget(&self, id: &EffectId, by: &By) -> Result<Forgot, LedgerError> {
        let _ = (id, by);
        Err(unsupported(self.name(), "forget single effects"))
    }

    /// A page of what a run did and met, by [`RunCursor`]: one row for each attempt that the run made, and one for each
    /// effect that only other runs performed, from the run's first touch. A row's state is the one of the moment.
    ///
    /// By default a ledger lists no run.
    ///
    /// # Errors
    /// [`LedgerError`]; of kind [`Unsupported`](LedgerErrorKind::Unsupported) by default.
    async fn of_run(&self, run: &RunId, page: &RunPage) -> Result<Vec<RunRow>, LedgerError> {
        let _ = (run, page);
        Err(LedgerError::new(LedgerErrorKind::Unsupported, "it lists no runs"))
    }

    /// Whether the ledger is linearizable across regions: whether a claim that one region stored is seen by every claim
    /// that any region makes after it, also during a partition. `false` unless whoever set the ledger up says so; see the
    /// page on [regions](crate::docs::multi_region).
    fn linearizable_across_regions(&self) -> bool {
        false
    }

    /// Resolves when the effect may have changed, soon after another process stored that it is no longer in flight. It
    /// may resolve for no reason, and may miss a change, so callers look again from time to time whatever this does: every
    /// 250 ms at the latest, or every 2 s where [`announces`](Self::announces) says so. By default it never resolves.
    ///
    /// # Cancel safety
    /// A future that is dropped leaves nothing behind.
    async fn changed(&self, id: &EffectId) {
        let _ = id;
        std::future::pending().await
    }

    /// Whether [`changed`](Self::changed) usually resolves within a few milliseconds of a change, so that callers may look
    /// again less often. `false` by default.
    fn announces(&self) -> bool {
        false
    }

    /// A short name for messages, such as `sqlite`.
    fn name(&self) -> &'static str;

    /// Ends what the ledger runs by itself, after what was already handed in is stored. Later calls get
    /// [`LedgerErrorKind::Closed`].
    async fn close(&self);
}

fn unsupported(ledger: &str, what: &str) -> LedgerError {
    let context =
        format!("the {ledger} ledger does not {what}; use one of the library's, or write its method");
    LedgerError::new(LedgerErrorKind::Unsupported, context)
}

/// A shared ledger is a ledger.
#[async_trait]
impl<L: Ledger + ?Sized> Ledger for Arc<L> {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        (**self).claim(request).await
    }

    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        (**self).change(owner, change).await
    }

    async fn resolve(&self, request: &ResolutionRequest) -> Result<ResolutionReply, LedgerError> {
        (**self).resolve(request).await
    }

    fn transactions(&self) -> Transactions {
        (**self).transactions()
    }

    async fn begin(&self, limit: Duration) -> Result<Box<dyn EffectTransaction>, LedgerError> {
        (**self).begin(limit).await
    }

    async fn read(&self, id: &EffectId) -> Result<Option<EffectHistory>, LedgerError> {
        (**self).read(id).await
    }

    async fn unsettled(&self, query: &UnsettledQuery) -> Result<UnsettledPage, LedgerError> {
        (**self).unsettled(query).await
    }

    async fn input(&self, id: &EffectId) -> Result<Option<Payload>, LedgerError> {
        (**self).input(id).await
    }

    async fn sweep(&self, batch: Sweep) -> Result<Swept, LedgerError> {
        (**self).sweep(batch).await
    }

    async fn forget(&self, id: &EffectId, by: &By) -> Result<Forgot, LedgerError> {
        (**self).forget(id, by).await
    }

    async fn of_run(&self, run: &RunId, page: &RunPage) -> Result<Vec<RunRow>, LedgerError> {
        (**self).of_run(run, page).await
    }

    fn linearizable_across_regions(&self) -> bool {
        (**self).linearizable_across_regions()
    }

    async fn changed(&self, id: &EffectId) {
        (**self).changed(id).await;
    }

    fn announces(&self) -> bool {
        (**self).announces()
    }

    fn name(&self) -> &'static str {
        (**self).name()
    }

    async fn close(&self) {
        (**self).close().await;
    }
}
