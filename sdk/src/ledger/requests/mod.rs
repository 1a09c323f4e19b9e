//! Where the records of callers' requests are kept: one row for a tenant, an endpoint and a caller's key.
//!
//! [`begin`](judge::begin) and [`change`](judge::change) are the whole state machine, and they are pure. A store reads a
//! row, lets them judge, and stores what they say by compare-and-set on revision, state and fence. The rows have a table
//! of their own: an effect's identity, or any other key that the host makes, never meets a caller's key.

mod headers;
pub mod judge;
mod memory;
mod record;
#[cfg(test)]
mod tests;
mod transaction;

use std::{fmt, sync::Arc};

use async_trait::async_trait;

#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) use self::headers::{decode as decode_headers, encode as encode_headers};
pub use self::{
    memory::MemoryRequests,
    record::{Absence, RecordKey, RequestRecord, RequestState, StoredResponse},
    transaction::{Place, RequestTransaction},
};
use super::LedgerError;

/// A request that asks for its record.
#[derive(Clone)]
pub struct Begin {
    /// Which record.
    pub key: RecordKey,
    /// The digest of what is asked.
    pub fingerprint: [u8; 32],
    /// The digest of who asks, where the host names principals.
    pub principal: Option<[u8; 32]>,
    /// This request's own mark: a call that is repeated after a lost acknowledgement is recognised by it.
    pub token: [u8; 16],
    /// For how long it is authorised, in milliseconds from the store's "now".
    pub lease_ms: i64,
    /// For how long the record is kept, in milliseconds from the store's "now".
    pub retention_ms: i64,
}

/// What a request that asked for its record is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// It is the one to run.
    Run(Owner),
    /// An equal request has its final answer.
    Replay(StoredResponse),
    /// An equal request was answered, and the answer cannot be given again.
    Unavailable(Absence),
    /// An equal request is running.
    InFlight,
    /// Another request has this key.
    Mismatch,
}

/// Who was told to run.
#[derive(Clone, PartialEq, Eq)]
pub struct Owner {
    /// The record.
    pub key: RecordKey,
    /// The number that makes a stale owner lose.
    pub fence: i64,
    /// The request's own mark.
    pub token: [u8; 16],
}

/// What an owner changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It is still running.
    Renew {
        /// In milliseconds from the store's "now".
        lease_ms: i64,
    },
    /// It has its final answer.
    Complete {
        /// The answer, or why it is not kept.
        answer: Result<StoredResponse, Absence>,
        /// In milliseconds from the store's "now".
        retention_ms: i64,
    },
    /// It ended without a final answer.
    Fail {
        /// Whether the request's digest stays. Where it does not, nothing stays but the digest of an earlier run.
        keep_digest: bool,
        /// In milliseconds from the store's "now".
        retention_ms: i64,
    },
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// Stored.
    Done,
    /// This owner's end is stored already, and nothing was changed.
    Settled,
    /// The record is another's by now, or gone: nothing was changed.
    Stale,
}

/// What a store of request records owes.
///
/// # Contract
/// - **Durable**: when `begin` or `change` resolves with `Ok`, what it says is on disk. The one exception is
///   [`MemoryRequests`], which says so.
/// - **Atomic**: of callers that judge one row at the same time, one stores; the others judge again on a fresh read.
/// - **One clock**: every time in a row comes from the store's own clock.
/// - **Honest**: an error means that the call may or may not have been stored; it never stands for a lost race.
///
/// # Cancel safety
/// A future of these methods that is dropped may or may not have taken effect; it never leaves a transaction open or a
/// row half written.
#[async_trait]
pub trait RequestStore: Send + Sync + fmt::Debug + 'static {
    /// Asks for a record: stores what [`judge::begin`] decides. A request that is not to run writes nothing.
    ///
    /// # Errors
    /// [`LedgerError`]; a repeated call with the same token finds what was stored.
    async fn begin(&self, request: &Begin) -> Result<Begun, LedgerError>;

    /// Stores what [`judge::change`] decides of the owner's change.
    ///
    /// # Errors
    /// [`LedgerError`]; a repeated call is recognised.
    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError>;

    /// The record as it is; `None` if there is none.
    ///
    /// # Errors
    /// [`LedgerError`].
    async fn read(&self, key: &RecordKey) -> Result<Option<RequestRecord>, LedgerError>;

    /// Drops at most `limit` records whose retention is over and that nobody is running; returns how many went.
    ///
    /// # Errors
    /// [`LedgerError`]; what was not dropped is dropped by a later call.
    async fn sweep(&self, limit: u32) -> Result<u64, LedgerError>;

    /// Where an application's own transaction finds the records. By default where its connection looks by itself.
    fn place(&self) -> Place {
        Place::default()
    }

    /// A short name for messages, such as `sqlite`.
    fn name(&self) -> &'static str;
}

/// A shared store is a store.
#[async_trait]
impl<S: RequestStore + ?Sized> RequestStore for Arc<S> {
    async fn begin(&self, request: &Begin) -> Result<Begun, LedgerError> {
        (**self).begin(request).await
    }

    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        (**self).change(owner, change).await
    }

    async fn read(&self, key: &RecordKey) -> Result<Option<RequestRecord>, LedgerError> {
        (**self).read(key).await
    }

    async fn sweep(&self, limit: u32) -> Result<u64, LedgerError> {
        (**self).sweep(limit).await
    }

    fn place(&self) -> Place {
        (**self).place()
    }

    fn name(&self) -> &'static str {
        (**self).name()
    }
}

impl fmt::Debug for Begin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Begin").field("key", &self.key).finish_non_exhaustive()
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owner").field("key", &self.key).field("fence", &self.fence).finish_non_exhaustive()
    }
}
