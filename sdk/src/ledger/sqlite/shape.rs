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

    /// The narrowest one that leaves nothing of the row out.
    pub(super) fn of(current: Option<&EffectRecord>, write: &Write) -> Self {
        let Some(current) = current else { return Self::Claim };
        if write.is_settlement_of(current) {
            Self::Settle
        } else if is_renewed(current, &write.effect) {
            Self::Renew
        } else {
            Self::Whole
        }
    }
}

/// Whether a claim stays one and differs in nothing but the lease and the revision.
fn is_renewed(current: &EffectRecord, next: &EffectRecord) -> bool {
    if (current.state, next.state) != (State::Claimed, State::Claimed) {
        return false;
    }
    let EffectRecord { lease_until, revision, .. } = *next;
    *next == EffectRecord { lease_until, revision, ..current.clone() }
}

/// Binds a new row.
pub(super) fn bind_claim<'q>(query: Bound<'q>, write: &'q Write) -> Bound<'q> {
    let record = &write.effect;
    debug_assert!(record.is_first_claim(), "a first claim sets nothing else");
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
