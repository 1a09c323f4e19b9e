//! A request to one of a ledger's own tasks, and its answer.

use tokio::sync::{mpsc, oneshot};

use super::LedgerError;

/// Where an answer goes.
pub(crate) type Answered<T> = oneshot::Sender<Result<T, LedgerError>>;

/// Hands a request in and waits for its answer; `closed` says what it means that nobody serves any more.
pub(crate) async fn ask<R, T>(
    served_by: mpsc::Sender<R>,
    request: impl FnOnce(Answered<T>) -> R,
    closed: impl Fn() -> LedgerError,
) -> Result<T, LedgerError> {
    let (reply, answer) = oneshot::channel();
    served_by.send(request(reply)).await.map_err(|_| closed())?;
    // Not held while it waits: a ledger that is closed meanwhile ends.
    drop(served_by);
    answer.await.map_err(|_| closed())?
}
