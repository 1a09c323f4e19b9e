//! How much of a row is written: all of it, or what the common writes change.

use super::row::{Bound, bind_end, bind_fixed, bind_input, bind_outcome, bind_place};
use crate::ledger::{
    record::{EffectRecord, State},
    transition::Write,
};

/// Which statement stores a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Shape {
    /// A new row.
    Claim,
    /// The outcome of a claim.
    Settle,
    /// A longer lease.
    Renew,
    /// Anything else: the whole row.
    Whole,
}

impl Shape {
    pub(super) const ALL: [Self; 4] = [Self::Claim, Self::Settle, Self::Renew, Self::Whole];

    /// The narrowest one that leaves nothing of `next` out.
    pub(super) fn of(current: Option<&EffectRecord>, next: &EffectRecord) -> Self {
        match current {
            None => Self::Claim,
            Some(current) if is_renewed(current, next) => Self::Renew,
            Some(current) if is_settled(current, next) => Self::Settle,
            Some(_) => Self::Whole,
        }
    }
}

/// Whether the two are claims that differ in nothing but the lease.
fn is_renewed(current: &EffectRecord, next: &EffectRecord) -> bool {
    is_same_attempt(current, next)
        && (current.state, next.state) == (State::Claimed, State::Claimed)
        && current.first_send_at == next.first_send_at
        && current.end == next.end
        && current.outcome == next.outcome
}

/// Whether they differ in nothing but what the end of a claim with its outcome changes.
fn is_settled(current: &EffectRecord, next: &EffectRecord) -> bool {
    is_same_attempt(current, next) && (current.state, next.state) == (State::Claimed, State::Completed)
}

/// Whether they are the same but for state, lease, end, first send, outcome and revision. What is written with the first
/// claim never changes.
fn is_same_attempt(current: &EffectRecord, next: &EffectRecord) -> bool {
    let EffectRecord {
        id: _,
        operation: _,
        keying: _,
        key_version: _,
        readable: _,
        provider: _,
        provider_key: _,
        fingerprints: _,
        created_at: _,
        first_send_at: _,
        state: _,
        fence,
        attempt,
        token,
        class,
        place,
        started_at,
        lease_until: _,
        attempt_timeout_ms,
        end: _,
        doubt,
        accepted,
        not_before,
        outcome: _,
        late_success,
        double_suspected,
        revision: _,
    } = next;
    current.fence == *fence
        && current.attempt == *attempt
        && current.token == *token
        && current.class == *class
        && current.place == *place
        && current.started_at == *started_at
        && current.attempt_timeout_ms == *attempt_timeout_ms
        && current.doubt == *doubt
        && current.accepted == *accepted
        && current.not_before == *not_before
        && current.late_success == *late_success
        && current.double_suspected == *double_suspected
}

/// Whether a row has nothing but what the statement of a claim writes.
fn is_new(record: &EffectRecord) -> bool {
    record.state == State::Claimed
        && (record.fence, record.attempt, record.revision) == (1, 1, 1)
        && record.started_at == record.created_at
        && record.first_send_at.is_none()
        && record.end.is_none()
        && record.doubt.is_none()
        && record.accepted.is_none()
        && record.not_before.is_none()
        && record.outcome.is_none()
        && !record.late_success
        && !record.double_suspected
}

/// Binds a new row.
pub(super) fn bind_claim<'q>(query: Bound<'q>, write: &'q Write) -> Bound<'q> {
    let record = &write.effect;
    debug_assert!(is_new(record), "a first claim sets nothing else");
    let query = bind_fixed(query, record).bind(&record.token.0[..]).bind(record.class.as_str());
    let query = bind_place(query, &record.place).bind(record.lease_until).bind(record.attempt_timeout_ms);
    bind_input(query, write.input.as_ref())
}

/// Binds what a settle changes.
pub(super) fn bind_settle<'q>(query: Bound<'q>, record: &'q EffectRecord) -> Bound<'q> {
    let query = query.bind(record.lease_until).bind(record.first_send_at);
    let query = bind_end(query, record.end.as_ref());
    bind_outcome(query, record.outcome.as_ref()).bind(record.revision)
}

/// Binds what a renewal changes.
pub(super) fn bind_renewal<'q>(query: Bound<'q>, record: &'q EffectRecord) -> Bound<'q> {
    query.bind(record.lease_until).bind(record.revision)
}
