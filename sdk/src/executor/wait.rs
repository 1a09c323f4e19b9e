//! A loser waits for the winner, up to its own limit, and holds no connection while it does.

use std::{sync::Arc, time::Duration};

use super::{
    callers::{Found, Speaker},
    drive::Call,
    erased::{CallEnd, CallError},
    news::{Listener, News},
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

/// What a call hears from the others of its effect.
pub(crate) enum Heard {
    /// It is the one to ask, for all.
    Ask(Speaker),
    /// It asks for itself: what the others know does not answer it.
    AskApart,
    /// The call is over.
    Ended(Box<CallEnd>),
}

impl Call {
    /// Waits while another call of this process asks the ledger for the same, or works on it.
    pub(crate) async fn listen(&self, poll: &mut Duration) -> Heard {
        loop {
            let mut news = match self.scope.core.others(&self.id, &self.fingerprints) {
                Found::Nobody(speaker) => return Heard::Ask(speaker),
                Found::Another => return Heard::AskApart,
                Found::Others(news) => news,
            };
            // Rare beside a call that has nobody to listen to, which this keeps small.
            if let Some(heard) = Box::pin(self.listen_to(&mut news, poll)).await {
                return heard;
            }
        }
    }

    /// `None` when the other has gone without a last word.
    async fn listen_to(&self, news: &mut Listener, poll: &mut Duration) -> Option<Heard> {
        let limit = Until::new(self.started(), self.settings.wait);
        loop {
            let heard = news.read();
            let (lease_remaining, look_again) = match heard {
                News::Asked => (None, limit.remaining()),
                News::Here(held) => match held.remaining() {
                    // It may be another's by now.
                    Duration::ZERO => return Some(Heard::AskApart),
                    remaining => (Some(remaining), limit.remaining().min(remaining)),
                },
                News::Elsewhere(lease, soon) => {
                    *poll = soon;
                    (Some(lease.remaining()), limit.remaining())
                }
                News::Settled(known) => {
                    let stands = self.scope.core.outcomes.stands(&known);
                    let end = self.end_by(&known).filter(|_| stands);
                    return Some(end.map_or(Heard::AskApart, |end| Heard::Ended(Box::new(end))));
                }
                News::Released(record) => return Some(Heard::Ended(Box::new(released(&record)))),
                News::Nothing => return Some(Heard::AskApart),
            };
            if limit.is_past() {
                let in_flight = |remaining| Heard::Ended(Box::new(in_flight(remaining)));
                return Some(lease_remaining.map_or(Heard::AskApart, in_flight));
            }
            tokio::select! {
                biased;
                () = self.told_to_stop() => {
                    return Some(Heard::Ended(Box::new(CallError::new(ErrorKind::Draining).into())));
                }
                told = news.told() => told.ok()?,
                () = clock::sleep(look_again) => {}
            }
        }
    }

    /// Waits until the winner is done, its lease has ended or the call's own limit is reached; a speaker waits for all.
    ///
    /// `poll` is how soon another process' claim is looked at; it grows over all waits of one call.
    pub(crate) async fn wait_for_winner(
        &self,
        lease_remaining: Duration,
        poll: &mut Duration,
        speaker: Option<&Speaker>,
    ) -> Waited {
        let limit = Until::new(self.started(), self.settings.wait);
        let lease = Until::new(clock::Moment::now(), lease_remaining);
        let ledger = self.scope.core.ledger();
        let poll_max = if ledger.announces() { POLL_TOLD_MAX } else { POLL_MAX };
        let mut changed = ledger.changed(&self.id);
        if let Some(speaker) = speaker {
            speaker.tell(News::Elsewhere(lease, *poll));
        }
        loop {
            if limit.is_past() {
                return Waited::Ended(Box::new(in_flight(lease.remaining())));
            }
            // A winner in this process wakes us; another process' claim has to be looked at.
            let working = self.scope.core.callers.here(&self.id);
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
            if let Some(speaker) = speaker {
                speaker.note(News::Elsewhere(lease, *poll));
            }
            if lease.is_past() {
                return Waited::Moved;
            }
            match ledger.read(&self.id).await {
                Ok(Some(history)) if history.effect.state == State::Claimed => {}
                Ok(Some(history)) if history.effect.state == State::Released => {
                    let end = released(&history.effect);
                    if let Some(speaker) = speaker {
                        speaker.tell(News::Released(Arc::new(history.effect)));
                    }
                    return Waited::Ended(Box::new(end));
                }
                // An answer is there, or the row is to be judged again; a failing ledger tells the next claim so.
                _ => return Waited::Moved,
            }
        }
    }
}

/// Resolves when this process no longer works on the effect; never if it does not work on it.
async fn no_longer(working: Option<Listener>) {
    match working {
        // The sender is dropped at the end.
        Some(mut working) => while working.told().await.is_ok() {},
        None => std::future::pending().await,
    }
}

/// The winner's attempt did not perform it: a waiter does not pile on.
fn released(record: &EffectRecord) -> CallEnd {
    let released_at = record.end.as_ref().map(|end| end.at);
    let delay_ms = record.not_before.zip(released_at).map_or(0, |(not_before, at)| (not_before - at).max(0));
    CallError::new(ErrorKind::RetryLater)
        .retry_after(Some(Duration::from_millis(delay_ms.unsigned_abs())))
        .detail("the caller that was waited for did not perform it")
        .into()
}

fn in_flight(lease_remaining: Duration) -> CallEnd {
    CallError::new(ErrorKind::InFlight).retry_after(Some(lease_remaining)).into()
}
