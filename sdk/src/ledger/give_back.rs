//! How a claim whose attempt is closed is given back: by a poll, by a look-up, by what keeps the next attempt from acting.

use std::sync::Arc;

use super::{
    change::{Changed, already, applied},
    record::{AcceptedHandle, EffectRecord, LedgerTime, State},
    transition::{Transition, Write},
};

/// The row of a closed attempt without its claim.
fn given_back(record: &EffectRecord, now: LedgerTime) -> EffectRecord {
    let mut next = record.next();
    next.state = if next.doubt.is_some() { State::Escaped } else { State::Released };
    next.lease_until = now;
    next
}

pub(super) fn polled(record: &EffectRecord, poll_after: LedgerTime, now: LedgerTime) -> Transition<Changed> {
    match (record.state, &record.end, &record.accepted) {
        (State::Claimed, Some(_), Some(accepted)) => {
            let mut next = given_back(record, now);
            next.accepted = Some(AcceptedHandle { poll_after, ..accepted.clone() });
            applied(next)
        }
        (State::Escaped | State::Released, Some(_), Some(_)) => already(record),
        _ => Transition::read(Changed::Stale(Some(Arc::new(record.clone())))),
    }
}

pub(super) fn clear(record: &EffectRecord, now: LedgerTime) -> Transition<Changed> {
    match (record.state, &record.end) {
        (State::Claimed, Some(_)) if record.accepted.is_some() || record.late_success => {
            keep_from_acting(record, now)
        }
        (State::Claimed, Some(_)) => {
            applied(given_back(&EffectRecord { doubt: None, ..record.clone() }, now))
        }
        (State::Released, Some(_)) => already(record),
        _ => Transition::read(Changed::Stale(Some(Arc::new(record.clone())))),
    }
}

/// The provider works on it already, or an answer that came late says that it was performed, whatever the look-up found:
/// the claim ends and nothing is sent again.
pub(super) fn keep_from_acting(record: &EffectRecord, now: LedgerTime) -> Transition<Changed> {
    let next = given_back(record, now);
    let next = Arc::new(next);
    let reply = Changed::Stale(Some(Arc::clone(&next)));
    Transition::write(reply, Write::effect(next))
}
