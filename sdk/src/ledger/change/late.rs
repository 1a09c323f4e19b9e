//! Answers that are not the outcome: those that come behind a raised fence, and those that a doubt keeps from being it.

use std::sync::Arc;

use super::{Change, Changed, Owner};
use crate::ledger::{
    record::{
        AttemptVerdict, Doubt, EffectRecord, Evidence, LedgerTime, OutcomeBody, OutcomeKind, State,
        StoredOutcome,
    },
    transition::{Transition, Write},
};

/// An answer behind a raised fence is not the outcome; it is kept, and success beside success is marked.
pub(super) fn stale(
    record: &EffectRecord,
    owner: &Owner,
    change: &Change,
    now: LedgerTime,
) -> Transition<Changed> {
    let reply = Changed::Stale(Some(Arc::new(record.clone())));
    let Some(mut evidence) = evidence_of(owner, change, now).filter(|_| rule!(StaleAnswerIsKept)) else {
        return Transition::read(reply);
    };
    if record.outcome.as_ref().is_some_and(StoredOutcome::is_forgotten) {
        // What was forgotten does not come back by this way.
        evidence.payload = None;
    }
    let mut next = record.next();
    if evidence.verdict == AttemptVerdict::Performed {
        next.late_success = true;
        // An outcome of the same attempt, found by a look-up or given by an operator, is the same success.
        let others = record.outcome.as_ref().filter(|_| owner.attempt != record.attempt);
        next.double_suspected |= others.is_some_and(is_success_of_its_own);
        if rule!(LateSuccessIsDoubted) && record.state != State::Completed && record.doubt.is_none() {
            doubt_again(&mut next, owner, now);
        }
    }
    Transition::write(reply, Write { evidence: Some(evidence), ..Write::effect(next) })
}

/// What a look-up or an operator took for not performed was performed after all: no attempt may start as if it were not.
fn doubt_again(next: &mut EffectRecord, owner: &Owner, now: LedgerTime) {
    next.doubt = Some(Doubt {
        attempt: owner.attempt,
        // The provider's window has been running since then at the earliest.
        since: next.created_at,
        class: next.class,
        acts_until: now,
        send_digest: None,
    });
    if next.state == State::Released {
        next.state = State::Escaped;
    }
}

/// Whether an outcome says that its own attempt performed the effect, and not that an earlier request had.
pub(super) fn is_success_of_its_own(outcome: &StoredOutcome) -> bool {
    outcome.kind == OutcomeKind::Success && !outcome.provider_replay
}

pub(super) fn evidence_of(owner: &Owner, change: &Change, now: LedgerTime) -> Option<Evidence> {
    let (verdict, payload) = match change {
        Change::Settle { ended, body: OutcomeBody::Payload(payload), .. } => {
            (ended.verdict, Some(payload.clone()))
        }
        Change::Settle { ended, .. } => (ended.verdict, None),
        _ => return None,
    };
    Some(Evidence { attempt: owner.attempt, fence: owner.fence, at: now, verdict, payload })
}
