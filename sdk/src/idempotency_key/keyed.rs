//! A request as its handler sees it: with the record that it may complete in a transaction of its own.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use bytes::Bytes;
use http::Response;
use http_body::Body;

use super::{
    answer::{self, Ending},
    body::ResponseBody,
    refusal::{Refusal, RefusalKind},
    settings::Settings,
    shared::Shared,
};
use crate::{
    ledger::{
        LedgerError,
        requests::{Changed, Owner, RequestState, RequestTransaction},
    },
    telemetry,
};

/// In the extensions of every request that came through the layer; with the feature `axum` also an extractor.
///
/// Through it a handler commits its own rows and the record of its answer together: a crash then leaves both or neither.
///
/// ```
/// # #[cfg(all(feature = "axum", feature = "postgres"))] mod example {
/// use axum::{http::StatusCode, response::{IntoResponse, Response}};
/// use effectual::idempotency_key::KeyedRequest;
///
/// async fn create(keyed: KeyedRequest, pool: sqlx::PgPool) -> Response {
///     let Ok(tx) = pool.begin().await else { return StatusCode::SERVICE_UNAVAILABLE.into_response() };
///     let mut tx = keyed.within(tx);
///     if sqlx::query("INSERT INTO runs DEFAULT VALUES").execute(&mut **tx).await.is_err() {
///         return StatusCode::INTERNAL_SERVER_ERROR.into_response(); // rolled back
///     }
///     tx.commit(StatusCode::CREATED.into_response()).await.into_response()
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct KeyedRequest {
    settings: Arc<Settings>,
    /// `None` without a key.
    owned: Option<(Owner, Arc<Shared>)>,
}

impl fmt::Debug for KeyedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedRequest").field("has_key", &self.has_key()).finish_non_exhaustive()
    }
}

impl KeyedRequest {
    pub(super) fn new(settings: Arc<Settings>, owned: Option<(Owner, Arc<Shared>)>) -> Self {
        Self { settings, owned }
    }

    /// Whether the request came with a key, and so has a record.
    #[must_use]
    pub fn has_key(&self) -> bool {
        self.owned.is_some()
    }

    /// Joins the record to a transaction on the database that holds the records. Without a key the transaction is on its
    /// own.
    ///
    /// On PostgreSQL use `READ COMMITTED`, its default: under a stricter level a renewal of the record is a conflict. On
    /// SQLite begin it with `BEGIN IMMEDIATE`, and call no effect before it has ended: the effect's ledger waits for the
    /// same lock.
    pub fn within<T: RequestTransaction>(self, transaction: T) -> RequestTx<T> {
        RequestTx { keyed: self, transaction }
    }
}

/// A transaction that ends with the handler's answer; made by [`KeyedRequest::within`]. Dropped, it is rolled back, and
/// the record is completed by the answer that the handler returns.
#[derive(Debug)]
pub struct RequestTx<T> {
    keyed: KeyedRequest,
    transaction: T,
}

impl<T> Deref for RequestTx<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.transaction
    }
}

impl<T> DerefMut for RequestTx<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.transaction
    }
}

impl<T: RequestTransaction> RequestTx<T> {
    /// Commits the transaction and, in it, the record of `response`; returns what the handler is to return.
    ///
    /// A response that is not final (408, 425, 429, 5xx, 401, 403, 400 `validation_error`, a retriable code) rolls back and
    /// is returned. Where the record is another's by now, or the commit fails, everything is rolled back and a refusal is
    /// returned. A commit whose acknowledgement was lost is looked up.
    ///
    /// # Cancel safety
    /// Dropped before it resolves, it may or may not have committed; never one without the other.
    pub async fn commit<B: Body<Data = Bytes>>(self, response: Response<B>) -> Response<ResponseBody<B>> {
        let Self { keyed, mut transaction } = self;
        let taken = answer::take(response, &keyed.settings).await;
        if !matches!(taken.ending, Ending::Complete(_)) {
            transaction.rollback().await;
            return taken.response;
        }
        let Some((owner, shared)) = &keyed.owned else {
            return match transaction.commit().await {
                Ok(()) => taken.response,
                Err(error) => keyed.failed("committing", &error),
            };
        };
        let change = taken.ending.change(keyed.settings.retention_ms());
        match transaction.change(&shared.store.place(), owner, &change).await {
            Ok(Changed::Done) => {}
            Ok(Changed::Settled | Changed::Stale) => {
                transaction.rollback().await;
                return keyed.refusal(RefusalKind::InFlight);
            }
            Err(error) => {
                transaction.rollback().await;
                return keyed.failed("completing", &error);
            }
        }
        match transaction.commit().await {
            Ok(()) => taken.response,
            Err(_) if is_committed(shared, owner).await => taken.response,
            Err(error) => keyed.failed("committing", &error),
        }
    }
}

impl KeyedRequest {
    fn refusal<B: Body>(&self, kind: RefusalKind) -> Response<ResponseBody<B>> {
        self.settings.refuse(Refusal::new(kind)).map(ResponseBody::whole)
    }

    fn failed<B: Body>(&self, doing: &'static str, error: &LedgerError) -> Response<ResponseBody<B>> {
        telemetry::request_store_failed(doing, error);
        self.refusal(RefusalKind::HandlerStopped)
    }
}

/// After a commit that gave an error: whether it happened all the same.
async fn is_committed(shared: &Shared, owner: &Owner) -> bool {
    match shared.store.read(&owner.key).await {
        Ok(Some(held)) => {
            held.token == owner.token
                && held.fence == owner.fence
                && matches!(held.state, RequestState::Final(_) | RequestState::Unavailable(_))
        }
        _ => false,
    }
}
