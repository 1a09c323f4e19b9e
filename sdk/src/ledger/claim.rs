//! The claim: the one function through which every path wins the right to perform an effect.

pub(crate) mod answered;

use std::sync::Arc;

use self::answered::Answered;
use super::{
    identities::Identities,
    record::{
        AttemptEnd, AttemptToken, AttemptVerdict, Doubt, EffectRecord, LedgerTime, Payload, Place, State,
    },
    transition::{Transition, Write},
};
use crate::{
    descriptor::{Keying, RecoveryClass},
    identity::{ArgumentDigest, EffectId},
};

/// What a caller asks for when it wants to perform an effect.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// Which effect.
    pub id: EffectId,
    /// The operation's name.
    pub operation: Arc<str>,
    /// How the identity was derived.
    pub keying: Keying,
    /// The key-schema version of the identity, from 1.
    pub key_version: u32,
    /// Earlier identities of the same call; empty unless a key field has `since` or `until`.
    pub identities: Identities,
    /// The key's fields for an operator to read, most of each text left out; `None` where there is no key.
    pub readable: Option<Arc<str>>,
    /// The provider's pinned name.
    pub provider: Option<Arc<str>>,
    /// The provider key for a first claim; a stored one stays in use.
    pub provider_key: Arc<str>,
    /// What is asked.
    pub fingerprints: Arc<[ArgumentDigest]>,
    /// The arguments to be stored with a first claim, so that the effect can be finished without its caller.
    pub input: Option<Payload>,
    /// The class that a new attempt is stored with.
    pub class: RecoveryClass,
    /// Whether the caller can perform the effect. One that cannot (a recovery without the arguments) opens no attempt of an
    /// effect that is there; it claims no other.
    pub can_perform: bool,
    /// Whether the caller can ask the provider what happened.
    pub can_look_up: bool,
    /// Whether the caller can ask the provider by the handle of an accepted effect.
    pub can_poll: bool,
    /// For how long after a doubt began the provider still deduplicates, less the margin, in milliseconds.
    pub resend_window_ms: Option<i64>,
    /// How long to wait after the last attempt in doubt can act before sending again, in milliseconds; `None` where
    /// the provider documents what it does with a key in flight.
    pub resend_quiet_ms: Option<i64>,
    /// The new claim's token.
    pub token: AttemptToken,
    /// For how long the claim authorises, in milliseconds.
    pub lease_ms: i64,
    /// How long one attempt may take, in milliseconds.
    pub attempt_timeout_ms: i64,
    /// Where the call is made.
    pub place: Place,
}

/// What the winner of a claim has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Perform the effect: a new attempt is open.
    Perform,
    /// Ask the provider first: the current attempt is closed and in doubt.
    LookUp,
    /// Ask the provider by the handle that it gave: the current attempt is closed, and nothing is submitted again.
    Poll,
}

/// What a claim came to. Losing is a value, not an error.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Claim {
    /// The caller owns the effect until the record's lease ends.
    Won {
        /// The row as stored.
        record: Arc<EffectRecord>,
        /// What to do.
        task: Task,
    },
    /// The outcome is stored.
    Settled {
        /// The row.
        record: Arc<EffectRecord>,
        /// The ledger's clock when it answered: what is left of the outcome's retention counts from here.
        now: LedgerTime,
    },
    /// The outcome is past its retention.
    Expired,
    /// A record under an earlier identity may be the same effect and cannot prove it. Nothing was stored.
    SchemaAmbiguous,
    /// These arguments differ from the recorded ones.
    Mismatch {
        /// Their names.
        arguments: Vec<String>,
    },
    /// Somebody else may act.
    InFlight {
        /// How long its lease still runs, in milliseconds, above 0.
        lease_remaining_ms: i64,
    },
    /// An attempt is in doubt, and its class does not let this caller go on.
    Escaped(Arc<EffectRecord>),
    /// Known not to have been performed, and this caller cannot perform it.
    Released(Arc<EffectRecord>),
    /// An attempt may start only later.
    NotBefore {
        /// How long to wait, in milliseconds, above 0.
        delay_ms: i64,
    },
    /// The provider accepted it and works on it.
    Accepted {
        /// The provider's handle.
        handle: String,
        /// How long to wait before asking, in milliseconds, from 0.
        delay_ms: i64,
    },
}

/// Judges a claim against the row, in the one order that holds on every path: mismatch, expired, settled, escaped by
/// class, in flight, not before, claim. Pure: `now` is the ledger's clock.
#[must_use]
pub fn judge(current: Option<&EffectRecord>, request: &ClaimRequest, now: LedgerTime) -> Transition<Claim> {
    let Some(record) = current else { return first_claim(request, now) };
    judge_row(record, request, now, || Arc::new(record.clone()))
}

/// [`judge`] of a row that is shared already: who finds its outcome gets the row itself.
pub(crate) fn judge_shared(
    current: Option<&Arc<EffectRecord>>,
    request: &ClaimRequest,
    now: LedgerTime,
) -> Transition<Claim> {
    let Some(record) = current else { return first_claim(request, now) };
    judge_row(record, request, now, || Arc::clone(record))
}

fn judge_row(
    record: &EffectRecord,
    request: &ClaimRequest,
    now: LedgerTime,
    shared: impl FnOnce() -> Arc<EffectRecord>,
) -> Transition<Claim> {
    if rule!(OwnClaimIsRecognised) && record.token == request.token && record.state == State::Claimed {
        // The acknowledgement of our own claim was lost.
        let task = match (&record.end, &record.accepted) {
            (None, _) => Task::Perform,
            (Some(_), None) => Task::LookUp,
            (Some(_), Some(_)) => Task::Poll,
        };
        return Transition::read(Claim::Won { record: shared(), task });
    }
    match answered::judge(record, &request.fingerprints, now) {
        Some(Answered::Mismatch { arguments }) => Transition::read(Claim::Mismatch { arguments }),
        Some(Answered::Expired) => Transition::read(Claim::Expired).with_touch(),
        Some(Answered::Settled) => Transition::read(Claim::Settled { record: shared(), now }).with_touch(),
        None => judge_unsettled(record, request, now),
    }
}

fn judge_unsettled(record: &EffectRecord, request: &ClaimRequest, now: LedgerTime) -> Transition<Claim> {
    let lease_remaining_ms = record.lease_until - now;
    if rule!(LeaseEndsFirst) && record.state == State::Claimed && lease_remaining_ms > 0 {
        return Transition::read(Claim::InFlight { lease_remaining_ms });
    }
    if rule!(AcceptedBeforeClass)
        && let Some(accepted) = &record.accepted
    {
        // A labelled attempt's lease may still run: its body may be the one that asks.
        let delay_ms = (accepted.poll_after - now).max(lease_remaining_ms).max(0);
        if delay_ms == 0 && request.can_poll {
            return take_over(record, record.doubt_at_expiry(), Task::Poll, request, now);
        }
        let claim = Claim::Accepted { handle: accepted.handle.clone(), delay_ms };
        return match record.state {
            // Its owner is gone: nobody else would say that its end is unknown.
            State::Claimed => labelled(record, record.doubt_at_expiry(), now, |_| claim),
            _ => Transition::read(claim).with_touch(),
        };
    }
    let doubt = record.doubt_at_expiry();
    let task = match &doubt {
        None => request.can_perform.then_some(Task::Perform),
        Some(doubt) => task_in_doubt(doubt, request, now),
    };
    let Some(task) = task else {
        return label(record, doubt, now);
    };
    if rule!(LabelKeepsLease) && record.state == State::Escaped && lease_remaining_ms > 0 {
        // Labelled while its body may still be alive.
        return Transition::read(Claim::InFlight { lease_remaining_ms });
    }
    let not_before = record.not_before.into_iter().chain(quiet_until(task, doubt.as_ref(), request)).max();
    if let Some(delay_ms) = not_before.map(|at| at - now).filter(|delay| rule!(NotBeforeIsKept) && *delay > 0)
    {
        return Transition::read(Claim::NotBefore { delay_ms });
    }
    take_over(record, doubt, task, request, now)
}

/// What the class of the attempts in doubt allows; `None` where the effect stays escaped.
fn task_in_doubt(doubt: &Doubt, request: &ClaimRequest, now: LedgerTime) -> Option<Task> {
    let look_up = request.can_look_up.then_some(Task::LookUp);
    let perform = request.can_perform.then_some(Task::Perform);
    match doubt.class {
        RecoveryClass::Rerun => perform,
        RecoveryClass::Resend => {
            let in_window =
                request.resend_window_ms.is_some_and(|window| now < doubt.since.saturating_add(window));
            if in_window || !rule!(WindowAtTheClaim) { perform.or(look_up) } else { look_up }
        }
        RecoveryClass::Reconcile if rule!(ReconcileAsksFirst) => look_up,
        RecoveryClass::Reconcile => perform,
        RecoveryClass::Transactional | RecoveryClass::Hold => perform.filter(|_| !rule!(HoldIsHeld)),
    }
}

/// When a re-send may go out where the provider's treatment of a key in flight is not documented.
fn quiet_until(task: Task, doubt: Option<&Doubt>, request: &ClaimRequest) -> Option<LedgerTime> {
    let doubt = doubt.filter(|doubt| task == Task::Perform && doubt.class == RecoveryClass::Resend)?;
    request
        .resend_quiet_ms
        .filter(|_| rule!(QuietBeforeResend))
        .map(|quiet| doubt.acts_until.saturating_add(quiet))
}

fn first_claim(request: &ClaimRequest, now: LedgerTime) -> Transition<Claim> {
    let record = EffectRecord {
        id: request.id.clone(),
        operation: request.operation.clone(),
        keying: request.keying,
        key_version: request.key_version,
        readable: request.readable.clone(),
        provider: request.provider.clone(),
        provider_key: request.provider_key.clone(),
        fingerprints: request.fingerprints.clone(),
        created_at: now,
        first_send_at: None,
        state: State::Claimed,
        fence: 1,
        attempt: 1,
        token: request.token,
        class: request.class,
        place: request.place.clone(),
        started_at: now,
        lease_until: now.saturating_add(request.lease_ms),
        attempt_timeout_ms: request.attempt_timeout_ms,
        end: None,
        doubt: None,
        accepted: None,
        not_before: None,
        outcome: None,
        late_success: false,
        double_suspected: false,
        revision: 1,
    };
    let record = Arc::new(record);
    let claim = Claim::Won { record: Arc::clone(&record), task: Task::Perform };
    Transition::write(claim, Write { input: request.input.clone(), ..Write::effect(record) })
}

/// Makes visible what a claim whose lease ended came to. The fence stays, so that its own late outcome still counts, unless the
/// attempt is said not to have performed it although it was left open: then it must not commit any more.
fn label(record: &EffectRecord, doubt: Option<Doubt>, now: LedgerTime) -> Transition<Claim> {
    let (state, claim): (_, fn(Arc<EffectRecord>) -> Claim) = match doubt {
        Some(_) => (State::Escaped, Claim::Escaped),
        None => (State::Released, Claim::Released),
    };
    if record.state == state {
        return Transition::read(claim(Arc::new(record.clone()))).with_touch();
    }
    labelled(record, doubt, now, claim)
}

fn labelled(
    record: &EffectRecord,
    doubt: Option<Doubt>,
    now: LedgerTime,
    claim: impl FnOnce(Arc<EffectRecord>) -> Claim,
) -> Transition<Claim> {
    let mut next = record.next();
    next.state = if doubt.is_some() { State::Escaped } else { State::Released };
    if next.state == State::Released && next.end.is_none() {
        next.end = Some(end_of_what_is_left_open(record, now));
        next.fence += 1;
    }
    next.doubt = doubt;
    let next = Arc::new(next);
    Transition::write(claim(Arc::clone(&next)), Write::effect(next)).with_touch()
}

fn take_over(
    record: &EffectRecord,
    doubt: Option<Doubt>,
    task: Task,
    request: &ClaimRequest,
    now: LedgerTime,
) -> Transition<Claim> {
    let left_open = end_of_what_is_left_open(record, now);
    let mut next = record.next();
    next.state = State::Claimed;
    next.fence += i64::from(rule!(TakeoverRaisesFence));
    next.token = request.token;
    next.lease_until = now.saturating_add(request.lease_ms);
    next.not_before = None;
    next.doubt = doubt;
    let closed = match task {
        Task::LookUp | Task::Poll => {
            next.end = Some(record.end.clone().unwrap_or(left_open));
            None
        }
        Task::Perform => {
            next.attempt += 1;
            next.class = request.class;
            next.place = request.place.clone();
            next.started_at = now;
            next.attempt_timeout_ms = request.attempt_timeout_ms;
            next.end = None;
            Some(record.closed_attempt(left_open))
        }
    };
    let next = Arc::new(next);
    let claim = Claim::Won { record: Arc::clone(&next), task };
    let transition = Transition::write(claim, Write { closed, ..Write::effect(next) });
    // Who does not perform makes no attempt: the effect stays another's, and this run has met it.
    if task == Task::Perform { transition } else { transition.with_touch() }
}

/// The end of an attempt that is still open when its effect is taken over: unknown, but for one whose outcome would have
/// committed together with what it did, and under the raised fence no longer can.
fn end_of_what_is_left_open(record: &EffectRecord, now: LedgerTime) -> AttemptEnd {
    let verdict = match record.class {
        RecoveryClass::Transactional => AttemptVerdict::NotPerformed,
        _ => AttemptVerdict::Unknown,
    };
    AttemptEnd { at: now, verdict, send_digest: None, key_taken: false }
}

impl EffectRecord {
    /// The doubt as it stands once the lease has ended: an attempt that is still open is then in doubt, unless what it did
    /// commits only together with its outcome.
    pub(crate) fn doubt_at_expiry(&self) -> Option<Doubt> {
        let is_open = self.state == State::Claimed && self.end.is_none() && rule!(OpenAttemptIsDoubted);
        if !is_open || self.class == RecoveryClass::Transactional {
            return self.doubt.clone();
        }
        let acts_until = self.lease_until.saturating_add(self.attempt_timeout_ms);
        Some(self.doubt_with(self.class, acts_until, None))
    }

    /// The doubt with the current attempt in it.
    pub(crate) fn doubt_with(
        &self,
        class: RecoveryClass,
        acts_until: LedgerTime,
        send_digest: Option<[u8; 32]>,
    ) -> Doubt {
        match &self.doubt {
            None => Doubt { attempt: self.attempt, since: self.started_at, class, acts_until, send_digest },
            Some(doubt) => Doubt {
                class: if rule!(StrictestClassCounts) { doubt.class.max(class) } else { class },
                acts_until: if rule!(LatestActCounts) {
                    doubt.acts_until.max(acts_until)
                } else {
                    acts_until
                },
                send_digest: doubt.send_digest.or(send_digest),
                ..doubt.clone()
            },
        }
    }

    /// The row for the next write.
    pub(crate) fn next(&self) -> Self {
        Self { revision: self.revision + 1, ..self.clone() }
    }
}
