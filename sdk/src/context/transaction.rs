//! The transaction that a body of the class `transactional` is lent.

use std::{
    any::type_name,
    fmt,
    marker::PhantomData,
    ops::{Deref, DerefMut},
};

use tokio::sync::{Mutex, MutexGuard};

use super::{Attempt, EffectContext};
use crate::{
    clock::Until,
    failure::{Failure, Verdict},
    ledger::{EffectTransaction, TransactionalLedger},
};

/// Where an attempt keeps its transaction: the body borrows it, the executor ends it.
#[derive(Debug)]
pub(crate) struct Slot {
    /// For how long a statement or a pause of it may take at the most: until the attempt's timeout.
    until: Until,
    open: Mutex<Option<Box<dyn EffectTransaction>>>,
}

impl Slot {
    pub(crate) fn new(until: Until) -> Self {
        Self { until, open: Mutex::default() }
    }

    /// Takes the transaction, whoever may have kept its guard.
    pub(crate) fn take(&mut self) -> Option<Box<dyn EffectTransaction>> {
        self.open.get_mut().take()
    }

    /// Takes it where the context of the gone body is still about to go.
    pub(crate) fn try_take(&self) -> Result<Option<Box<dyn EffectTransaction>>, StillLent> {
        self.open.try_lock().map(|mut open| open.take()).map_err(|_| StillLent)
    }
}

/// A body is gone and its transaction is not.
#[derive(Debug)]
pub(crate) struct StillLent;

/// Why a body gets no transaction. Nothing was performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TransactionRefused {
    /// The effect is of another class.
    #[error("the effect does not declare `on_unknown = transactional`; no transaction was opened")]
    NotTransactional,
    /// The executor's ledger is another one than the one whose connection is asked for.
    #[error(
        "the executor's ledger is not the one whose connection the body asks for; no transaction was opened"
    )]
    OtherLedger,
    /// The body holds it already.
    #[error("the body holds its transaction already; drop that guard first")]
    AlreadyLent,
    /// The executor's drain deadline has passed.
    #[error("the executor is draining; no transaction was opened")]
    Draining,
    /// The ledger opened none. Another attempt may get one.
    #[error("the ledger did not open a transaction; nothing was performed")]
    Unavailable,
}

impl Failure for TransactionRefused {
    /// Not performed; only an unavailable ledger is mended by another attempt.
    fn verdict(&self) -> Verdict {
        Verdict::NotPerformed { retry: *self == Self::Unavailable }
    }
}

/// The transaction of an attempt, lent to its body: it stands for the connection of the ledger `L`, on which the body runs
/// its own SQL.
///
/// It cannot be committed from here. When the body returns `Ok`, the executor stores the outcome in it and commits both;
/// when it returns an error, panics or takes too long, it is rolled back.
#[must_use = "the body's own SQL runs on it"]
pub struct Transaction<'a, L> {
    open: MutexGuard<'a, Option<Box<dyn EffectTransaction>>>,
    ledger: PhantomData<fn() -> L>,
}

impl EffectContext {
    /// The transaction of the ledger's database in which this attempt's SQL and its outcome commit together. `L` is the
    /// executor's ledger: [`SqliteLedger`](crate::SqliteLedger) lends an `sqlx::SqliteConnection`,
    /// [`PostgresLedger`](crate::PostgresLedger) an `sqlx::PgConnection`. It is opened by the first call of an attempt; a
    /// later one is lent the same.
    ///
    /// # Errors
    /// [`TransactionRefused`].
    ///
    /// # Cancel safety
    /// Dropped, it may leave the transaction open for the rest of the attempt.
    pub async fn transaction<L: TransactionalLedger>(
        &self,
    ) -> Result<Transaction<'_, L>, TransactionRefused> {
        let Attempt { transaction, held, look_up, .. } = &*self.attempt;
        let slot = transaction.as_ref().filter(|_| !look_up).ok_or(TransactionRefused::NotTransactional)?;
        let mut open = slot.open.try_lock().map_err(|_| TransactionRefused::AlreadyLent)?;
        if held.is_revoked() {
            return Err(TransactionRefused::Draining);
        }
        if open.is_none() {
            let begun = held.ledger().begin(slot.until.remaining()).await;
            *open = Some(begun.map_err(|_| TransactionRefused::Unavailable)?);
        }
        let is_of_ledger = open.as_ref().is_some_and(|open| open.connection().is::<L::Connection>());
        if !is_of_ledger {
            return Err(TransactionRefused::OtherLedger);
        }
        Ok(Transaction { open, ledger: PhantomData })
    }
}

const OPEN: &str = "only the executor takes it away, once the body is gone";
const TYPED: &str = "its type was looked at when it was lent";

impl<L: TransactionalLedger> Deref for Transaction<'_, L> {
    type Target = L::Connection;

    fn deref(&self) -> &L::Connection {
        self.open.as_ref().expect(OPEN).connection().downcast_ref().expect(TYPED)
    }
}

impl<L: TransactionalLedger> DerefMut for Transaction<'_, L> {
    fn deref_mut(&mut self) -> &mut L::Connection {
        self.open.as_mut().expect(OPEN).connection_mut().downcast_mut().expect(TYPED)
    }
}

impl<L> fmt::Debug for Transaction<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").field("ledger", &type_name::<L>()).finish_non_exhaustive()
    }
}
