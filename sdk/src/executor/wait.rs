//! A loser waits for the winner, up to its own limit, and holds no connection while it does.

use std::time::Duration;

use tokio::sync::watch;

use super::{
    drive::Call,
    erased::{CallEnd, CallError},
};
use crate::{
    clock::{self, Until},
    error::ErrorKind,
    ledger::{EffectRecord, record::State},
};

/// How often another process' claim is looked at: soon at first, then less and less.
pub(crate) const POLL_MIN: Duration = Duration::from_millis(5);
const POLL_MAX: Duration = Duration::from_millis(250);
/// The same where the ledger tells of changes, which it may miss.
const POLL_TOLD_MAX: Duration = Duration::from_secs(2);

/// What waiting came to.
pub(crate) enum Waited {
    /// Something changed: claim again.
    Moved,
    /// The call is over.
    Ended(Box<CallEnd>),
}

impl Call {
    /// Waits until the winner is done, its lease has ended or the call's own limit is reached.
    ///
    /// `poll` is how soon another process' claim is looked at; it grows over all waits of one call.
    pub(crate) async fn wait_for_winner(&self, lease_remaining: Duration, poll: &mut Duration) -> Waited {
        let limit = Until::new(self.started, self.settings.wait);
        let lease = Until::new(clock::Moment::now(), lease_remaining);
        let ledger = &self.scope.core.ledger;
        let poll_max = if ledger.announces() { POLL_TOLD_MAX } else { POLL_MAX };
        let mut changed = ledger.changed(&self.id);
        loop {
            if limit.is_past() {
                return in_flight(lease.remaining());
            }
            // A winner in this process wakes us; another process' claim has to be looked at.
            let working = self.scope.core.working_on(&self.id);
            let is_here = working.is_some();
            let look_again = if is_here { Duration::MAX } else { *poll };
            tokio::select! {
                biased;
                () = self.told_to_stop() => {
                    return Waited::Ended(Box::new(CallError::new(ErrorKind::Draining).into()));
                }
                () = no_longer(working) => {}
                () = &mut changed, if !is_here => changed = ledger.changed(&self.id),
                () = clock::sleep(look_again.min(limit.remaining()).min(lease.remaining())) => {}
            }
            *poll = (*poll * 2).min(poll_max);
            if lease.is_past() {
                return Waited::Moved;
            }
            match ledger.read(&self.id).await {
                Ok(Some(history)) if history.effect.state == State::Claimed => {}
                Ok(Some(history)) if history.effect.state == State::Released => {
                    return released(&history.effect);
                }
                // An answer is there, or the row is to be judged again; a failing ledger tells the next claim so.
                _ => return Waited::Moved,
            }
        }
    }
}

/// Resolves when this process no longer works on the effect; never if it does not work on it.
async fn no_longer(working: Option<watch::Receiver<()>>) {
    match working {
        // The sender says nothing and is dropped at the end.
        Some(mut working) => while working.changed().await.is_ok() {},
        None => std::future::pending().await,
    }
}

/// The winner's attempt did not perform it: a waiter does not pile on.
fn released(record: &EffectRecord) -> Waited {
    let released_at = record.end.as_ref().map(|end| end.at);
    let delay_ms = record.not_before.zip(released_at).map_or(0, |(not_before, at)| (not_before - at).max(0));
    let error = CallError::new(ErrorKind::RetryLater)
        .retry_after(Some(Duration::from_millis(delay_ms.unsigned_abs())))
        .detail("the caller that was waited for did not perform it");
    Waited::Ended(Box::new(error.into()))
}

fn in_flight(lease_remaining: Duration) -> Waited {
    let error = CallError::new(ErrorKind::InFlight).retry_after(Some(lease_remaining));
    Waited::Ended(Box::new(error.into()))
}
