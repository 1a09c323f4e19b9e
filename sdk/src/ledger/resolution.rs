//! What an operator decides of an effect that no rule lets go on: resolve it, or open its refusal again.
//!
//! A resolution takes the effect over: it raises the fence, so that whatever an attempt in doubt says later is evidence.

use std::sync::Arc;

use super::{
    audit::{AuditEntry, OperatorAction, Standing},
    record::{
        AttemptEnd, AttemptToken, AttemptVerdict, EffectRecord, Evidence, Fence, LedgerTime, OutcomeBody,
        OutcomeKind, Payload, State, StoredOutcome,
    },
    transition::{Transition, Write},
};
use crate::identity::EffectId;

/// The encoding of an operator's reason.
pub const REASON_CODEC: &str = "operator/1";

/// The longest name of an operator, in bytes.
const WHO_MAX: usize = 128;

/// The longest reason of an operator, in bytes.
const WHY_MAX: usize = 2048;

/// Who acts on an effect by hand, and why: kept in the audit for as long as the effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct By {
    who: String,
    why: String,
    seen: Option<Seen>,
}

/// Which claim and attempt of an effect an operator judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The fence of the latest claim or resolution.
    pub fence: Fence,
    /// The number of the current attempt.
    pub attempt: u32,
}

/// A text that cannot stand in the audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` must be 1 to {max} bytes of text without control characters; nothing was changed")]
pub struct InvalidBy {
    field: &'static str,
    max: usize,
}

impl By {
    /// `who` (1 to 128 bytes) for `why` (1 to 2048 bytes): a person who can be asked, and what they looked at.
    ///
    /// # Errors
    /// [`InvalidBy`] if one of them is blank, too long or holds control characters.
    pub fn new(who: impl Into<String>, why: impl Into<String>) -> Result<Self, InvalidBy> {
        let who = said("who", who.into(), WHO_MAX)?;
        Ok(Self { who, why: said("why", why.into(), WHY_MAX)?, seen: None })
    }

    /// The decision was made by what this row says: it is refused if the effect has been claimed, attempted or resolved
    /// since. Without it the row is read when the decision arrives.
    #[must_use]
    pub fn having_seen(mut self, record: &EffectRecord) -> Self {
        self.seen = Some(Seen::of(record));
        self
    }

    pub(crate) fn who(&self) -> &str {
        &self.who
    }

    pub(crate) fn why(&self) -> &str {
        &self.why
    }

    pub(crate) fn seen(&self) -> Option<Seen> {
        self.seen
    }
}

fn said(field: &'static str, text: String, max: usize) -> Result<String, InvalidBy> {
    let fits = text.len() <= max && !text.trim().is_empty() && !text.chars().any(char::is_control);
    if fits { Ok(text) } else { Err(InvalidBy { field, max }) }
}

impl Seen {
    pub(crate) fn of(record: &EffectRecord) -> Self {
        Self { fence: record.fence, attempt: record.attempt }
    }
}

/// What an operator asks of the ledger.
#[derive(Debug, Clone)]
pub struct ResolutionRequest {
    /// Which effect.
    pub id: EffectId,
    /// What of it the operator judged; anything later is not what was decided on.
    pub seen: Seen,
    /// Tells this request from every other, so that a lost acknowledgement is recognised.
    pub token: AttemptToken,
    /// Who and why.
    pub by: By,
    /// What to do.
    pub action: Action,
}

/// What to do.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Action {
    /// It was performed.
    Done {
        /// The value, encoded as the function's own return value is.
        body: OutcomeBody,
        /// How long the outcome is kept, in milliseconds.
        retain_ms: i64,
    },
    /// It was refused, finally.
    Refused {
        /// The operator's reason, under [`REASON_CODEC`].
        reason: Payload,
        /// As for [`NeverHappened`](Self::NeverHappened): it could still be performed, and be opened again later.
        settle_delay_ms: i64,
        /// How long the outcome is kept, in milliseconds.
        retain_ms: i64,
        /// Also where an attempt said later that it had performed it.
        despite_evidence: bool,
    },
    /// No attempt performed it: the next call performs it as a new attempt.
    NeverHappened {
        /// How long after the last attempt in doubt can act the provider may take to show what it did, in milliseconds.
        settle_delay_ms: i64,
        /// Also where an attempt said later that it had performed it.
        despite_evidence: bool,
    },
    /// Forget a stored refusal: the next call performs it as a new attempt.
    Reopen,
}

/// What a request came to. Nothing was changed but by [`Applied`](Self::Applied).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ResolutionReply {
    /// Stored with its audit, now or by an earlier try whose acknowledgement was lost: the row as it stands.
    Applied(Arc<EffectRecord>),
    /// There is no such effect.
    Unknown,
    /// It was claimed, attempted or resolved since the operator looked.
    Moved,
    /// An executor may act: its lease runs.
    InFlight {
        /// How long it still runs, in milliseconds, above 0.
        lease_remaining_ms: i64,
    },
    /// A request of an attempt in doubt may still arrive at the provider, so nobody can say yet that it never will.
    NotYet {
        /// How long to wait, in milliseconds, above 0.
        delay_ms: i64,
    },
    /// Its attempts are known not to have performed it: the next call performs it.
    NotInDoubt,
    /// It has an outcome.
    Settled,
    /// It has no refusal that could be opened again.
    NotARefusal,
    /// Its outcome is past its retention.
    Expired,
    /// An attempt said, behind a raised fence, that it performed it.
    AgainstEvidence,
}

/// Judges an operator's request against the row. Pure: `now` is the ledger's clock.
///
/// Resolved is what would be escaped: an effect in doubt, or one that the provider accepted, whose lease has ended.
#[must_use]
pub fn judge(
    current: Option<&EffectRecord>,
    request: &ResolutionRequest,
    now: LedgerTime,
) -> Transition<ResolutionReply> {
    let Some(record) = current else {
        return Transition::read(ResolutionReply::Unknown);
    };
    if record.token == request.token {
        return Transition::read(ResolutionReply::Applied(Arc::new(record.clone())));
    }
    if Seen::of(record) != request.seen {
        return Transition::read(ResolutionReply::Moved);
    }
    let refused = match &request.action {
        Action::Reopen => keeps_from_reopening(record, now),
        action => keeps_from_resolving(record, action, now),
    };
    match refused {
        Some(reply) => Transition::read(reply),
        None => store(record, request, now),
    }
}

/// Why this action may not resolve the row.
fn keeps_from_resolving(record: &EffectRecord, action: &Action, now: LedgerTime) -> Option<ResolutionReply> {
    if record.outcome.is_some() {
        return Some(ResolutionReply::Settled);
    }
    let lease_remaining_ms = record.lease_until - now;
    if rule!(ResolutionWaitsForLease) && record.state != State::Released && lease_remaining_ms > 0 {
        return Some(ResolutionReply::InFlight { lease_remaining_ms });
    }
    let doubt = record.doubt_at_expiry();
    if doubt.is_none() && record.accepted.is_none() {
        return Some(ResolutionReply::NotInDoubt);
    }
    match action {
        Action::Refused { despite_evidence: false, .. }
        | Action::NeverHappened { despite_evidence: false, .. }
            if record.late_success =>
        {
            Some(ResolutionReply::AgainstEvidence)
        }
        Action::Refused { settle_delay_ms, .. } | Action::NeverHappened { settle_delay_ms, .. } => {
            let own = record.lease_until.saturating_add(record.attempt_timeout_ms);
            let acts_until = doubt.map_or(own, |doubt| doubt.acts_until);
            // Until the end of that millisecond.
            let quiet_from = acts_until.saturating_add(*settle_delay_ms).saturating_add(1);
            let delay_ms = quiet_from.saturating_sub(now);
            (rule!(ResolutionWaitsForRequests) && delay_ms > 0)
                .then_some(ResolutionReply::NotYet { delay_ms })
        }
        _ => None,
    }
}

/// Why the row cannot be opened again.
fn keeps_from_reopening(record: &EffectRecord, now: LedgerTime) -> Option<ResolutionReply> {
    match &record.outcome {
        Some(outcome) if outcome.kind == OutcomeKind::Refusal => match () {
            () if outcome.is_expired(now) => Some(ResolutionReply::Expired),
            () if record.late_success => Some(ResolutionReply::AgainstEvidence),
            () => None,
        },
        _ => Some(ResolutionReply::NotARefusal),
    }
}

fn store(record: &EffectRecord, request: &ResolutionRequest, now: LedgerTime) -> Transition<ResolutionReply> {
    let mut next = record.next();
    next.fence += i64::from(rule!(ResolutionRaisesFence));
    next.token = request.token;
    next.lease_until = now;
    next.doubt = None;
    next.not_before = None;
    let outcome = |kind, body, retain_ms: i64| {
        let retain_until = now.saturating_add(retain_ms);
        Some(StoredOutcome { kind, body, provider_replay: false, settled_at: now, retain_until })
    };
    let (verdict, action) = match &request.action {
        Action::Done { body, retain_ms } => {
            next.outcome = outcome(OutcomeKind::Success, body.clone(), *retain_ms);
            (AttemptVerdict::Performed, OperatorAction::Done)
        }
        Action::Refused { reason, retain_ms, .. } => {
            let reason = OutcomeBody::Payload(reason.clone());
            next.outcome = outcome(OutcomeKind::Refusal, reason, *retain_ms);
            let against = record.late_success;
            (
                AttemptVerdict::Refused,
                if against { OperatorAction::RefusedDespiteEvidence } else { OperatorAction::Refused },
            )
        }
        Action::NeverHappened { .. } => {
            let against = record.late_success;
            let action = if against {
                OperatorAction::NeverHappenedDespiteEvidence
            } else {
                OperatorAction::NeverHappened
            };
            (AttemptVerdict::NotPerformed, action)
        }
        Action::Reopen => {
            next.outcome = None;
            (AttemptVerdict::Refused, OperatorAction::Reopened)
        }
    };
    next.state = if next.outcome.is_some() { State::Completed } else { State::Released };
    if next.outcome.is_none() {
        // The next call submits it anew.
        next.accepted = None;
    }
    next.end = Some(end_as(record, verdict, now));
    let audit = AuditEntry {
        at: now,
        who: request.by.who.clone(),
        why: request.by.why.clone(),
        action,
        before: Standing::of(record),
        after: Standing::of(&next),
    };
    let next = Arc::new(next);
    let reply = ResolutionReply::Applied(Arc::clone(&next));
    let evidence = forgotten(record, now).filter(|_| next.outcome.is_none());
    Transition::write(reply, Write { evidence, audit: Some(audit), ..Write::effect(next) })
}

/// The current attempt's end as the operator knows it; what it sent stays known.
fn end_as(record: &EffectRecord, verdict: AttemptVerdict, now: LedgerTime) -> AttemptEnd {
    match &record.end {
        Some(end) if end.verdict == verdict => end.clone(),
        Some(end) => AttemptEnd { at: now, verdict, ..end.clone() },
        None => AttemptEnd { at: now, verdict, send_digest: None, key_taken: false },
    }
}

/// The refusal that is opened again, kept as evidence.
fn forgotten(record: &EffectRecord, now: LedgerTime) -> Option<Evidence> {
    let outcome = record.outcome.as_ref()?;
    let payload = match &outcome.body {
        OutcomeBody::Payload(payload) => Some(payload.clone()),
        OutcomeBody::Absent(_) => None,
    };
    let (attempt, fence) = (record.attempt, record.fence);
    Some(Evidence { attempt, fence, at: now, verdict: AttemptVerdict::Refused, payload })
}
