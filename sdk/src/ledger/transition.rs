//! What a judgement writes: the shape that every backend stores by compare-and-set.

use std::sync::Arc;

use super::{
    audit::AuditEntry,
    record::{AttemptRecord, EffectRecord, Evidence, Payload},
};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::ledger::record::State;

/// A judgement: what to answer, and what to store before answering.
#[derive(Debug, Clone)]
pub struct Transition<R> {
    /// The answer, true only once the write is durable.
    pub reply: R,
    /// The write, where there is one. A backend stores it only if the row is still the one that was judged.
    pub write: Option<Write>,
    /// Whether the first touch of the effect by the caller's run is to be kept, if the caller has a run and the
    /// effect is not one of that run's own.
    pub touch: bool,
}

/// One atomic write.
#[derive(Debug, Clone)]
pub struct Write {
    /// The whole row; its revision is the judged row's plus one.
    pub effect: Arc<EffectRecord>,
    /// The attempt that moves into the history, because the row's attempt number changes.
    pub closed: Option<AttemptRecord>,
    /// Evidence to keep beside it.
    pub evidence: Option<Evidence>,
    /// The arguments to keep with a new row.
    pub input: Option<Payload>,
    /// What an operator did, whose doing this write is.
    pub audit: Option<AuditEntry>,
}

impl Write {
    /// Whether a claimed row is completed, nothing is written but the row, and of that nothing but what its outcome brings
    /// with it: the attempt's end, the outcome, the state, the end of the lease and the revision.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn is_settlement_of(&self, seen: &EffectRecord) -> bool {
        let Self { effect, closed, evidence, input, audit } = self;
        if closed.is_some() || evidence.is_some() || input.is_some() || audit.is_some() {
            return false;
        }
        // Named one by one, so that a new field must be decided on.
        let EffectRecord {
            id,
            operation: _,
            keying: _,
            key_version: _,
            readable: _,
            provider: _,
            provider_key: _,
            fingerprints: _,
            created_at: _,
            first_send_at: _,
            state,
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
            outcome,
            late_success,
            double_suspected,
            revision: _,
        } = &**effect;
        outcome.is_some()
            && (seen.state, *state) == (State::Claimed, State::Completed)
            && (id, fence, attempt, token, class)
                == (&seen.id, &seen.fence, &seen.attempt, &seen.token, &seen.class)
            && (started_at, attempt_timeout_ms) == (&seen.started_at, &seen.attempt_timeout_ms)
            && (doubt, accepted, not_before) == (&seen.doubt, &seen.accepted, &seen.not_before)
            && (late_success, double_suspected) == (&seen.late_success, &seen.double_suspected)
            && place == &seen.place
    }

    pub(crate) fn effect(effect: impl Into<Arc<EffectRecord>>) -> Self {
        Self { effect: effect.into(), closed: None, evidence: None, input: None, audit: None }
    }
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl EffectRecord {
    /// Whether the row is that of a first claim: claimed, for the first attempt under the first fence, since it was made.
    pub(crate) fn is_first_claim(&self) -> bool {
        self.state == State::Claimed
            && (self.fence, self.attempt, self.revision) == (1, 1, 1)
            && self.started_at == self.created_at
            && (self.first_send_at, self.not_before) == (None, None)
            && self.end.is_none()
            && self.doubt.is_none()
            && self.accepted.is_none()
            && self.outcome.is_none()
            && !self.late_success
            && !self.double_suspected
    }
}

impl<R> Transition<R> {
    pub(crate) fn read(reply: R) -> Self {
        Self { reply, write: None, touch: false }
    }

    pub(crate) fn write(reply: R, write: Write) -> Self {
        Self { reply, write: Some(write), touch: false }
    }

    pub(crate) fn with_touch(mut self) -> Self {
        self.touch = true;
        self
    }
}
