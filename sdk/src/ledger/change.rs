//! What the owner of a claim does with it: renew, end an attempt, open the next, settle. Judged by fence and attempt
//! token, never by time.

mod late;

use std::sync::Arc;

use self::late::{evidence_of, is_success_of_its_own, stale};
use super::{
    give_back::{clear, keep_from_acting, polled},
    record::{
        AcceptedHandle, AttemptEnd, AttemptToken, AttemptVerdict, EffectRecord, Fence, LedgerTime,
        OutcomeBody, OutcomeKind, State, StoredOutcome,
    },
    transition::{Transition, Write},
};
use crate::{descriptor::RecoveryClass, identity::EffectId};

/// Who makes a change: the effect, the fence of the claim and the token of the attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Which effect.
    pub id: EffectId,
    /// The fence of the claim.
    pub fence: Fence,
    /// The token of the claim's current attempt.
    pub token: AttemptToken,
    /// The number of that attempt.
    pub attempt: u32,
    /// The row as the owner last saw it: a hint that saves a ledger a read. A ledger that judges against it stores only
    /// if the row's revision, state and fence are still the same, and reads otherwise.
    pub seen: Option<Arc<EffectRecord>>,
}

impl Owner {
    /// The owner of the claim that this row shows.
    #[must_use]
    pub fn of(record: &EffectRecord) -> Self {
        Self::of_shared(Arc::new(record.clone()))
    }

    /// [`of`](Self::of) a row that is shared already.
    pub(crate) fn of_shared(record: Arc<EffectRecord>) -> Self {
        Self {
            id: record.id.clone(),
            fence: record.fence,
            token: record.token,
            attempt: record.attempt,
            seen: Some(record),
        }
    }
}

/// How an attempt ended, as its owner reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub verdict: AttemptVerdict,
    /// The class that the attempt is to be judged by from now on, where it is not the one stored at its start.
    pub class: Option<RecoveryClass>,
    /// The digest of the first request that was sent.
    pub send_digest: Option<[u8; 32]>,
    /// Whether the body took the provider key.
    pub key_taken: bool,
    /// How long ago the first request was let through, in milliseconds; `None` if none was.
    pub first_send_ago_ms: Option<i64>,
    /// For how long a request of this attempt may still reach the provider, in milliseconds from now.
    pub acts_for_ms: i64,
}

impl Ended {
    /// An end that comes with no request of its own: what a look-up found, or an attempt that never began.
    #[must_use]
    pub fn found(verdict: AttemptVerdict) -> Self {
        Self {
            verdict,
            class: None,
            send_digest: None,
            key_taken: false,
            first_send_ago_ms: None,
            acts_for_ms: 0,
        }
    }
}

/// What the owner writes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Change {
    /// Extends the lease to `lease_ms` from now.
    Renew {
        /// In milliseconds, above 0.
        lease_ms: i64,
    },
    /// Ends the attempt without an outcome.
    End {
        /// How it ended.
        ended: Ended,
        /// Whether the effect stays claimed, for a backoff or a look-up.
        keep_claim: bool,
        /// No attempt may start before this many milliseconds from now.
        not_before_ms: Option<i64>,
    },
    /// Opens the next attempt of a claim whose attempt is closed.
    Open {
        /// The new attempt's token.
        token: AttemptToken,
        /// Its class.
        class: RecoveryClass,
        /// Its lease, in milliseconds.
        lease_ms: i64,
        /// How long it may take, in milliseconds.
        attempt_timeout_ms: i64,
        /// Whether a truthful look-up found that no attempt in doubt performed it.
        doubt_cleared: bool,
    },
    /// Stores the outcome.
    Settle {
        /// How the attempt ended: `Performed` or `Refused`.
        ended: Ended,
        /// The outcome's kind.
        kind: OutcomeKind,
        /// The encoded value, or why there is none.
        body: OutcomeBody,
        /// Whether the provider marked its answer as a replay.
        provider_replay: bool,
        /// Whether a refusal answers the effect and not just this attempt: the provider's stored answer to our key,
        /// or what a look-up found.
        conclusive: bool,
        /// How long the outcome is kept, in milliseconds.
        retain_ms: i64,
    },
    /// Stores the provider's handle of an accepted effect.
    Accept {
        /// The job, batch or resource id.
        handle: String,
        /// How long to wait before asking, in milliseconds.
        poll_after_ms: i64,
    },
    /// The provider still works on an accepted effect, or could not be asked: the claim is given back, and nobody asks
    /// again before this.
    Polled {
        /// How long to wait before asking, in milliseconds.
        poll_after_ms: i64,
    },
    /// A truthful look-up found that no attempt in doubt performed it, and who asked cannot perform it: the claim is given
    /// back without the doubt.
    Clear,
    /// Marks the open attempt as escaped without raising the fence; the stored lease stays. One of the class
    /// `transactional` leaves no doubt and stays as it is.
    Label,
}

/// What a change came to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Changed {
    /// Stored, now or by an earlier try whose acknowledgement was lost: the row as it stands.
    Applied(Arc<EffectRecord>),
    /// The fence was raised, or the attempt is not the current one: nothing of the row changed. An answer that the
    /// change carried is kept as evidence. Also where the next attempt must not be opened, because the provider has
    /// accepted the effect or a late answer says that it was performed: the claim has then ended.
    Stale(Option<Arc<EffectRecord>>),
}

/// Judges a change against the row. Pure. Compares times only where an attempt ends beside an older doubt, whose later
/// end is kept: for any other change `now` may stand for a clock that the database reads when it stores.
#[must_use]
pub fn judge(
    current: Option<&EffectRecord>,
    owner: &Owner,
    change: &Change,
    now: LedgerTime,
) -> Transition<Changed> {
    let Some(record) = current else {
        return Transition::read(Changed::Stale(None));
    };
    let compared = match change {
        Change::Renew { .. } => rule!(RenewComparesFence),
        _ => rule!(SettleComparesFence),
    };
    if compared && (record.fence != owner.fence || !is_current(record, owner, change)) {
        return stale(record, owner, change, now);
    }
    match change {
        Change::Renew { lease_ms } => renew(record, *lease_ms, now),
        Change::End { ended, keep_claim, not_before_ms } => {
            end(record, ended, *keep_claim, not_before_ms.map(|delay| now.saturating_add(delay)), now)
        }
        Change::Open { .. } => open(record, change, now),
        Change::Settle { .. } => settle(record, owner, change, now),
        Change::Accept { handle, poll_after_ms } => {
            accept(record, handle, now.saturating_add(*poll_after_ms))
        }
        Change::Polled { poll_after_ms } => polled(record, now.saturating_add(*poll_after_ms), now),
        Change::Clear => clear(record, now),
        Change::Label => label(record),
    }
}

/// Whether the change speaks for the row's current attempt; one that opened the next already counts as its own.
fn is_current(record: &EffectRecord, owner: &Owner, change: &Change) -> bool {
    record.token == owner.token
        || !rule!(AttemptTokenIsCompared)
        || matches!(change, Change::Open { token, .. } if *token == record.token)
}

pub(super) fn applied(record: EffectRecord) -> Transition<Changed> {
    let record = Arc::new(record);
    Transition::write(Changed::Applied(Arc::clone(&record)), Write::effect(record))
}

pub(super) fn already(record: &EffectRecord) -> Transition<Changed> {
    Transition::read(Changed::Applied(Arc::new(record.clone())))
}

fn renew(record: &EffectRecord, lease_ms: i64, now: LedgerTime) -> Transition<Changed> {
    if rule!(RenewNeedsAClaim) && record.state != State::Claimed {
        return Transition::read(Changed::Stale(Some(Arc::new(record.clone()))));
    }
    let mut next = record.next();
    next.lease_until = now.saturating_add(lease_ms);
    applied(next)
}

/// The row with the attempt's end written in.
fn with_end(record: &EffectRecord, ended: &Ended, now: LedgerTime) -> EffectRecord {
    let mut next = record.next();
    next.class = ended.class.unwrap_or(record.class);
    next.first_send_at = record.first_send_at.or(ended.first_send_ago_ms.map(|ago| now.saturating_sub(ago)));
    // A look-up ends an attempt that was closed before; what that attempt sent stays known.
    let before = record.end.as_ref();
    next.end = Some(AttemptEnd {
        at: now,
        verdict: ended.verdict,
        send_digest: before.and_then(|end| end.send_digest).or(ended.send_digest),
        key_taken: ended.key_taken || before.is_some_and(|end| end.key_taken),
    });
    next
}

fn end(
    record: &EffectRecord,
    ended: &Ended,
    keep_claim: bool,
    not_before: Option<LedgerTime>,
    now: LedgerTime,
) -> Transition<Changed> {
    if record.state == State::Completed {
        return Transition::read(Changed::Stale(Some(Arc::new(record.clone()))));
    }
    // A closed attempt (one that a look-up holds) keeps the end that it has.
    let mut next = if record.end.is_some() { record.next() } else { with_end(record, ended, now) };
    if record.end.is_none() {
        match ended.verdict {
            AttemptVerdict::Unknown => {
                let class = next.class;
                next.doubt =
                    Some(record.doubt_with(class, now.saturating_add(ended.acts_for_ms), ended.send_digest));
            }
            _ if !rule!(OnlyOwnDoubtIsCleared)
                || record.doubt.as_ref().is_some_and(|doubt| doubt.attempt == record.attempt) =>
            {
                next.doubt = None
            }
            _ => {}
        }
    }
    next.not_before = not_before;
    // A labelled attempt has no claim left to keep.
    if !keep_claim || record.state != State::Claimed {
        next.state = if next.doubt.is_some() { State::Escaped } else { State::Released };
        next.lease_until = now;
    }
    applied(next)
}

fn open(record: &EffectRecord, change: &Change, now: LedgerTime) -> Transition<Changed> {
    let Change::Open { token, class, lease_ms, attempt_timeout_ms, doubt_cleared } = change else {
        return already(record);
    };
    if record.token == *token {
        return already(record);
    }
    let (State::Claimed, Some(end)) = (record.state, record.end.clone()) else {
        return Transition::read(Changed::Stale(Some(Arc::new(record.clone()))));
    };
    let accepted = rule!(AcceptedIsNotReopened) && record.accepted.is_some();
    if accepted || (rule!(LateSuccessBlocksAbsent) && *doubt_cleared && record.late_success) {
        return keep_from_acting(record, now);
    }
    let mut next = record.next();
    next.attempt += 1;
    next.token = *token;
    next.class = *class;
    next.started_at = now;
    next.lease_until = now.saturating_add(*lease_ms);
    next.attempt_timeout_ms = *attempt_timeout_ms;
    next.end = None;
    next.not_before = None;
    if *doubt_cleared {
        next.doubt = None;
    }
    let closed = Some(record.closed_attempt(end));
    let next = Arc::new(next);
    let reply = Changed::Applied(Arc::clone(&next));
    Transition::write(reply, Write { closed, ..Write::effect(next) })
}

fn settle(record: &EffectRecord, owner: &Owner, change: &Change, now: LedgerTime) -> Transition<Changed> {
    let Change::Settle { ended, kind, body, provider_replay, conclusive, retain_ms } = change else {
        return already(record);
    };
    if rule!(OutcomeIsFinal) && record.state == State::Completed {
        return already(record);
    }
    let doubted_before = record.doubt.as_ref().is_some_and(|doubt| doubt.attempt != record.attempt);
    if rule!(RefusalUnderDoubtIsEvidence) && *kind == OutcomeKind::Refusal && doubted_before && !conclusive {
        // The refusal answers this attempt; an earlier one may still have performed the effect.
        let mut transition = end(record, ended, false, None, now);
        if let Some(write) = &mut transition.write {
            write.evidence = evidence_of(owner, change, now);
        }
        return transition;
    }
    let mut next = with_end(record, ended, now);
    next.state = State::Completed;
    next.lease_until = now;
    next.doubt = None;
    next.not_before = None;
    let outcome = StoredOutcome {
        kind: *kind,
        body: body.clone(),
        provider_replay: *provider_replay,
        settled_at: now,
        retain_until: now.saturating_add(*retain_ms),
    };
    // What a look-up found, with the attempt closed before, is no second success.
    next.double_suspected |= record.late_success && record.end.is_none() && is_success_of_its_own(&outcome);
    next.outcome = Some(outcome);
    applied(next)
}

fn accept(record: &EffectRecord, handle: &str, poll_after: LedgerTime) -> Transition<Changed> {
    if record.state == State::Completed {
        return Transition::read(Changed::Stale(Some(Arc::new(record.clone()))));
    }
    let mut next = record.next();
    next.accepted = Some(AcceptedHandle { handle: handle.to_owned(), poll_after });
    applied(next)
}

fn label(record: &EffectRecord) -> Transition<Changed> {
    if record.state != State::Claimed {
        return already(record);
    }
    let doubt = record.doubt_at_expiry();
    if doubt.is_none() && record.end.is_none() {
        // It may still commit, with its outcome and under this fence: whoever comes after its lease raises that.
        return already(record);
    }
    let mut next = record.next();
    next.state = if doubt.is_some() { State::Escaped } else { State::Released };
    next.doubt = doubt;
    applied(next)
}
