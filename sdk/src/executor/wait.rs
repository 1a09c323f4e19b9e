//! A loser waits for the winner, up to its own limit, and holds no connection while it does.

use std::time::Duration;

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
const POLL_MIN: Duration = Duration::from_millis(5);
const POLL_MAX: Duration = Duration::from_millis(250);

/// What waiting came to.
pub(crate) enum Waited {
    /// Something changed: claim again.
    Moved,
    /// The call is over.
    Ended(Box<CallEnd>),
}

impl Call {
    /// Waits until the winner is done, its lease has ended or the call's own limit is reached.
    pub(crate) async fn wait_for_winner(&self, lease_remaining: Duration) -> Waited {
        let limit = Until::new(self.started, self.settings.wait);
        let lease = Until::new(clock::Moment::now(), lease_remaining);
        let mut poll = POLL_MIN;
        loop {
            if limit.is_past() {
                return in_flight(lease.remaining());
            }
            // A winner in this process wakes us; another process' claim has to be looked at.
            let look_again =
                if self.scope.core.working_on(&self.id).is_some() { Duration::MAX } else { poll };
            tokio::select! {
                () = self.winner_in_this_process() => {}
                () = clock::sleep(look_again.min(limit.remaining()).min(lease.remaining())) => {}
                () = self.told_to_stop() => {
                    return Waited::Ended(Box::new(CallError::new(ErrorKind::Draining).into()));
                }
            }
            poll = (poll * 2).min(POLL_MAX);
            if lease.is_past() {
                return Waited::Moved;
            }
            match self.scope.core.ledger.read(&self.id).await {
                Ok(Some(history)) if history.effect.state == State::Claimed => {}
                Ok(Some(history)) if history.effect.state == State::Released => {
                    return released(&history.effect);
                }
                // An answer is there, or the row is to be judged again; a failing ledger tells the next claim so.
                _ => return Waited::Moved,
            }
        }
    }

    /// Resolves when this process no longer works on the effect; never if it does not work on it.
    async fn winner_in_this_process(&self) {
        match self.scope.core.working_on(&self.id) {
            // The sender says nothing and is dropped at the end.
            Some(mut working) => while working.changed().await.is_ok() {},
            None => std::future::pending().await,
        }
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
