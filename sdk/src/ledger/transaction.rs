//! Transactions in which an effect's own SQL and its outcome commit together.

use std::{any::Any, fmt, sync::Arc};

use async_trait::async_trait;

use super::{Change, EffectRecord, Ledger, LedgerError, Owner};

/// What a ledger offers to effects of the class `transactional`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transactions {
    /// Nothing.
    None,
    /// A transaction beside the ledger's own writes.
    Beside,
    /// A transaction that all other writes of the ledger wait for, renewals too: it must be over in a third of the
    /// shortest lease.
    Exclusive,
}

/// A ledger whose database takes an effect's own SQL: what
/// [`cx.transaction::<L>()`](crate::EffectContext::transaction) names.
pub trait TransactionalLedger: Ledger {
    /// The connection that the body is lent.
    type Connection: Any + Send;
}

/// An open transaction of one attempt. The body is lent its connection; only the executor ends it.
///
/// # Cancel safety
/// Dropped, it is rolled back.
#[async_trait]
pub trait EffectTransaction: Send {
    /// The connection: [`TransactionalLedger::Connection`] of the ledger that opened it.
    fn connection(&self) -> &(dyn Any + Send);

    /// The same, to run statements on.
    fn connection_mut(&mut self) -> &mut (dyn Any + Send);

    /// Stores what [`change::judge`](super::change::judge) decides of the owner's change and commits it with what the body
    /// did: the row is compared in the transaction itself. Rolls back whatever is not applied.
    async fn settle(self: Box<Self>, owner: &Owner, change: &Change) -> TransactionEnd;

    /// Rolls back. `false` if the body had ended the transaction by itself, so that nobody knows what became of it.
    async fn roll_back(self: Box<Self>) -> bool;
}

/// What a settle came to.
#[derive(Debug)]
#[non_exhaustive]
pub enum TransactionEnd {
    /// The body's SQL and the outcome are committed: the row as it stands.
    Committed(Arc<EffectRecord>),
    /// The fence was raised: rolled back, nothing was performed.
    Stale,
    /// No commit was acknowledged. Whether it was stored, the next change by the same owner finds out: it waits for the row.
    Unacknowledged(LedgerError),
    /// The body had ended the transaction by itself: nobody knows what of it was committed.
    EndedByBody,
}

impl fmt::Debug for dyn EffectTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EffectTransaction")
    }
}
