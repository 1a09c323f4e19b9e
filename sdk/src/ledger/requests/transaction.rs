//! An application's own transaction, in which a record is completed.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Change, Changed, Owner};
use crate::ledger::LedgerError;

/// Where a transaction finds the records.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// The schema that holds the table; `None` where the connection's own search path leads to it.
    pub schema: Option<Arc<str>>,
    /// How far the store's clock is ahead of the database's, in milliseconds. Not 0 in tests only.
    #[doc(hidden)]
    pub clock_offset_ms: i64,
}

/// A transaction of an application, on the database that also holds its request records.
#[async_trait]
pub trait RequestTransaction: Send + Sized + 'static {
    /// Stores what [`judge::change`](super::judge::change) decides, as part of this transaction.
    ///
    /// # Errors
    /// [`LedgerError`]; the transaction is then to be rolled back.
    async fn change(&mut self, place: &Place, owner: &Owner, change: &Change)
    -> Result<Changed, LedgerError>;

    /// Commits.
    ///
    /// # Errors
    /// [`LedgerError`]; it may or may not be committed.
    async fn commit(self) -> Result<(), LedgerError>;

    /// Rolls back.
    async fn rollback(self);
}
