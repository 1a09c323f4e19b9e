//! What a request may do, given the row that is there: pure, and the same for every store.

use super::{Absence, Begin, Begun, Change, Changed, Owner, RequestRecord, RequestState};
use crate::ledger::record::LedgerTime;

/// A judgement: what to answer, and what to store before answering.
#[derive(Debug, Clone)]
pub struct Judgement<R> {
    /// The answer, true only once the write is durable.
    pub reply: R,
    /// The write, where there is one. A store makes it only if the row is still the one that was judged.
    pub write: Option<Write>,
}

/// What becomes of the row.
#[derive(Debug, Clone)]
pub enum Write {
    /// The whole row; its revision is the judged row's plus one.
    Put(Box<RequestRecord>),
    /// The row goes.
    Drop,
}

impl<R> Judgement<R> {
    fn only(reply: R) -> Self {
        Self { reply, write: None }
    }

    fn put(reply: R, record: RequestRecord) -> Self {
        Self { reply, write: Some(Write::Put(Box::new(record))) }
    }
}

/// Whether the record counts as absent: its retention is over, and nobody is running.
#[must_use]
pub fn is_over(held: &RequestRecord, now: LedgerTime) -> bool {
    let is_running = matches!(held.state, RequestState::Pending { lease_until } if lease_until > now);
    held.retain_until <= now && !is_running
}

/// Judges a request: mismatch first, in whatever state; then what was answered, what is running, and who may run.
#[must_use]
pub fn begin(held: Option<&RequestRecord>, request: &Begin, now: LedgerTime) -> Judgement<Begun> {
    let Some(held) = held else { return run(None, request, now) };
    if held.token == request.token {
        return repeated(held, request);
    }
    if is_over(held, now) {
        return run(Some(held), request, now);
    }
    match look(held, request) {
        Some(told) => Judgement::only(told),
        None if matches!(held.state, RequestState::Pending { lease_until } if lease_until > now) => {
            Judgement::only(Begun::InFlight)
        }
        None => run(Some(held), request, now),
    }
}

/// What a request is told whoever runs: that it is another, or its answer. `None` where there is no answer (yet).
#[must_use]
pub fn look(held: &RequestRecord, request: &Begin) -> Option<Begun> {
    if held.fingerprint != request.fingerprint {
        return Some(Begun::Mismatch);
    }
    let is_same = held.principal == request.principal;
    match &held.state {
        RequestState::Final(_) | RequestState::Unavailable(_) if !is_same => {
            Some(Begun::Unavailable(Absence::OtherPrincipal))
        }
        RequestState::Final(response) => Some(Begun::Replay(response.clone())),
        RequestState::Unavailable(absence) => Some(Begun::Unavailable(*absence)),
        RequestState::Pending { .. } | RequestState::Retryable => None,
    }
}

/// The call of a request whose acknowledgement was lost.
fn repeated(held: &RequestRecord, request: &Begin) -> Judgement<Begun> {
    let running = matches!(held.state, RequestState::Pending { .. });
    Judgement::only(match look(held, request) {
        Some(told) => told,
        None if running => Begun::Run(owner_of(held)),
        None => Begun::InFlight,
    })
}

fn owner_of(held: &RequestRecord) -> Owner {
    Owner { key: held.key.clone(), fence: held.fence, token: held.token }
}

fn run(held: Option<&RequestRecord>, request: &Begin, now: LedgerTime) -> Judgement<Begun> {
    // What is over is forgotten, but for the numbers that make a stale owner lose.
    let same = held.filter(|held| !is_over(held, now));
    let record = RequestRecord {
        key: request.key.clone(),
        fingerprint: request.fingerprint,
        principal: request.principal,
        state: RequestState::Pending { lease_until: now.saturating_add(request.lease_ms) },
        fence: held.map_or(1, |held| held.fence + 1),
        token: request.token,
        ran_before: same.is_some(),
        started_at: now,
        ended_at: None,
        retain_until: now.saturating_add(request.retention_ms),
        revision: held.map_or(1, |held| held.revision + 1),
    };
    Judgement::put(Begun::Run(owner_of(&record)), record)
}

/// Judges an owner's change, by fence and token and never by time: an owner whose lease ended and whom nobody replaced is
/// still the owner.
#[must_use]
pub fn change(
    held: Option<&RequestRecord>,
    owner: &Owner,
    change: &Change,
    now: LedgerTime,
) -> Judgement<Changed> {
    let Some(held) = held.filter(|held| held.fence == owner.fence && held.token == owner.token) else {
        return Judgement::only(Changed::Stale);
    };
    if !matches!(held.state, RequestState::Pending { .. }) {
        return Judgement::only(Changed::Settled);
    }
    let end = |state, retention_ms: &i64| {
        let mut record = next(held);
        record.state = state;
        record.ended_at = Some(now);
        record.retain_until = now.saturating_add(*retention_ms);
        Judgement::put(Changed::Done, record)
    };
    match change {
        Change::Renew { lease_ms } => {
            let mut record = next(held);
            record.state = RequestState::Pending { lease_until: now.saturating_add(*lease_ms) };
            Judgement::put(Changed::Done, record)
        }
        Change::Complete { answer, retention_ms } => {
            let state = answer.clone().map_or_else(RequestState::Unavailable, RequestState::Final);
            end(state, retention_ms)
        }
        Change::Fail { keep_digest, retention_ms } if *keep_digest || held.ran_before => {
            end(RequestState::Retryable, retention_ms)
        }
        Change::Fail { .. } => Judgement { reply: Changed::Done, write: Some(Write::Drop) },
    }
}

fn next(held: &RequestRecord) -> RequestRecord {
    RequestRecord { revision: held.revision + 1, ..held.clone() }
}
