//! A state of the model, and its steps.

use std::sync::Arc;

use std::hash::{Hash, Hasher};

use super::asked::{LEASE, TIMEOUT, WINDOW, request, settle};
use crate::{
    descriptor::RecoveryClass,
    ledger::{
        Change, Changed, Claim, EffectRecord, Owner, Task,
        change::{self, Ended},
        claim,
        judge_model::{checks, world::ends_doubt},
        record::{AttemptToken, AttemptVerdict, OutcomeKind, State},
    },
};

/// The row, without what only counts or tells the time of day.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row(EffectRecord);

impl Hash for Row {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let row = &self.0;
        (row.state, row.fence, row.attempt, row.token, row.class).hash(hasher);
        (row.started_at, row.lease_until, row.not_before, row.late_success).hash(hasher);
        row.end.as_ref().map(|end| end.verdict).hash(hasher);
        row.doubt
            .as_ref()
            .map(|doubt| (doubt.attempt, doubt.since, doubt.class, doubt.acts_until))
            .hash(hasher);
        row.outcome.as_ref().map(|outcome| outcome.kind).hash(hasher);
    }
}

/// A process that may hold the claim, and what it knows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Worker {
    Idle,
    Holds {
        fence: i64,
        token: u8,
        attempt: u32,
        lease_until: i64,
        /// Whether its attempt is closed.
        closed: bool,
        sent: bool,
    },
}

/// A request that is under way, or has arrived.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Request {
    token: u8,
    until: i64,
    arrived: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Life {
    class: RecoveryClass,
    now: i64,
    row: Option<Row>,
    pub(super) workers: Vec<Worker>,
    requests: Vec<Request>,
    tokens: u8,
    pub(super) performed: u8,
    remembered: Option<i64>,
    pub(super) outcome_by: Option<u8>,
    pub(super) first_outcome_by: Option<u8>,
    pub(super) doubt_lost: bool,
}

/// A step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Tick,
    Claim(usize),
    /// Gets its permit and lets its request go.
    Send(usize),
    Arrive(usize),
    /// Its process is gone.
    Die(usize),
    Renew(usize),
    Label(usize),
    SettleSuccess(usize),
    SettleRefusal(usize),
    /// Ends its attempt: whether that is known not to have performed, and whether it keeps the claim.
    End(usize, bool, bool),
    /// Opens its next attempt.
    Open(usize),
    /// Asks, and goes on from the answer.
    LookUp(usize),
}

impl Life {
    pub(super) fn new(class: RecoveryClass, workers: usize) -> Self {
        Self {
            class,
            now: 0,
            row: None,
            workers: vec![Worker::Idle; workers],
            requests: Vec::new(),
            tokens: 0,
            performed: 0,
            remembered: None,
            outcome_by: None,
            first_outcome_by: None,
            doubt_lost: false,
        }
    }

    pub(super) fn state(&self) -> Option<State> {
        self.row.as_ref().map(|row| row.0.state)
    }

    pub(super) fn outcome(&self) -> Option<OutcomeKind> {
        self.row.as_ref()?.0.outcome.as_ref().map(|outcome| outcome.kind)
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.requests.iter().any(|request| !request.arrived && self.now < request.until)
    }

    /// Whether the worker's permit would be given now.
    pub(super) fn may_send(&self, worker: &Worker) -> bool {
        match worker {
            Worker::Holds { closed: false, sent: false, lease_until, .. } => {
                let in_window = self.class != RecoveryClass::Resend || self.in_window();
                lease_until - self.now > TIMEOUT && in_window
            }
            _ => false,
        }
    }

    /// Whether an effect in doubt may still be sent again.
    fn in_window(&self) -> bool {
        let doubt = self.row.as_ref().and_then(|row| row.0.doubt.as_ref());
        doubt.is_none_or(|doubt| self.now < doubt.since + WINDOW - TIMEOUT)
    }

    pub(super) fn is_stale(&self, worker: &Worker) -> bool {
        match (worker, &self.row) {
            (Worker::Holds { fence, .. }, Some(row)) => row.0.fence > *fence,
            _ => false,
        }
    }

    fn arrived(&self, token: u8) -> bool {
        self.requests.iter().any(|request| request.token == token && request.arrived)
    }

    pub(super) fn acts(&self, attempts_max: u8, ticks_max: i64, acts: &mut Vec<Act>) {
        if self.now < ticks_max {
            acts.push(Act::Tick);
        }
        for (at, request) in self.requests.iter().enumerate() {
            if !request.arrived && self.now < request.until {
                acts.push(Act::Arrive(at));
            }
        }
        for (at, worker) in self.workers.iter().enumerate() {
            match worker {
                Worker::Idle if self.tokens < attempts_max => acts.push(Act::Claim(at)),
                Worker::Idle => {}
                Worker::Holds { closed, sent, token, .. } => {
                    acts.extend([Act::Die(at), Act::Renew(at)]);
                    if *closed {
                        if self.class == RecoveryClass::Reconcile
                            && (self.performed > 0 || self.tokens < attempts_max)
                        {
                            acts.push(Act::LookUp(at));
                        }
                        if self.tokens < attempts_max {
                            acts.push(Act::Open(at));
                        }
                        continue;
                    }
                    acts.extend([Act::Label(at), Act::End(at, false, false), Act::End(at, false, true)]);
                    if self.may_send(worker) {
                        acts.push(Act::Send(at));
                    }
                    if !sent {
                        acts.extend([Act::End(at, true, false), Act::End(at, true, true)]);
                    } else if self.arrived(*token) {
                        acts.push(Act::SettleSuccess(at));
                    } else if self.class != RecoveryClass::Resend {
                        acts.push(Act::SettleRefusal(at));
                    }
                }
            }
        }
    }

    pub(super) fn take(&mut self, act: Act) {
        match act {
            Act::Tick => self.now += 1,
            Act::Claim(at) => self.claim(at),
            Act::Send(at) => self.send(at),
            Act::Arrive(at) => self.arrive(at),
            Act::Die(at) => self.workers[at] = Worker::Idle,
            Act::Renew(at) => self.change(at, &Change::Renew { lease_ms: LEASE }),
            Act::Label(at) => self.change(at, &Change::Label),
            Act::SettleSuccess(at) => self.change(at, &settle(OutcomeKind::Success, false)),
            Act::SettleRefusal(at) => {
                // The provider refused it: what was under way has arrived, and performs nothing.
                if let Worker::Holds { token, .. } = self.workers[at] {
                    self.requests.retain(|request| request.token != token);
                }
                self.change(at, &settle(OutcomeKind::Refusal, false));
            }
            Act::End(at, not_performed, keep_claim) => self.end(at, not_performed, keep_claim),
            Act::Open(at) => self.open(at, false),
            Act::LookUp(at) => self.look_up(at),
        }
        self.forget_what_makes_no_difference();
    }

    /// Two states that behave alike are one: workers have no names, and of what is past some matters to nobody.
    fn forget_what_makes_no_difference(&mut self) {
        self.workers.sort();
        let (now, workers) = (self.now, &self.workers);
        let has_owner = |token| {
            workers.iter().any(
                |worker| matches!(worker, Worker::Holds { token: held, closed: false, .. } if *held == token),
            )
        };
        self.requests.retain(
            |request| {
                if request.arrived { has_owner(request.token) } else { now < request.until }
            },
        );
        self.requests.sort_by_key(|request| request.token);
        self.performed = self.performed.min(2);
        let Some(Row(row)) = &mut self.row else { return };
        if matches!(row.state, State::Completed | State::Released) {
            row.lease_until = 0;
        }
        if self.class != RecoveryClass::Resend {
            self.remembered = None;
            row.started_at = 0;
            if let Some(doubt) = &mut row.doubt {
                doubt.since = 0;
            }
        }
        if self.class != RecoveryClass::Reconcile
            && let Some(doubt) = &mut row.doubt
        {
            doubt.acts_until = 0;
        }
    }

    fn claim(&mut self, at: usize) {
        self.tokens += 1;
        let token = self.tokens;
        let request = request(self.class, token);
        let before = self.row.as_ref().map(|row| row.0.clone());
        let judged = claim::judge(before.as_ref(), &request, self.now);
        self.store(before, judged.write.map(|write| Arc::unwrap_or_clone(write.effect)), false);
        if let Claim::Won { record, task } = judged.reply {
            self.workers[at] = Worker::Holds {
                fence: record.fence,
                token,
                attempt: record.attempt,
                lease_until: record.lease_until,
                closed: task == Task::LookUp,
                sent: false,
            };
        }
    }

    fn send(&mut self, at: usize) {
        let Worker::Holds { token, sent, .. } = &mut self.workers[at] else { return };
        *sent = true;
        self.requests.push(Request { token: *token, until: self.now + TIMEOUT, arrived: false });
    }

    fn arrive(&mut self, at: usize) {
        self.requests[at].arrived = true;
        let known = self.remembered.is_some_and(|since| self.now < since + WINDOW);
        if self.class == RecoveryClass::Resend && known {
            return;
        }
        self.remembered = Some(self.now);
        self.performed += 1;
    }

    fn end(&mut self, at: usize, not_performed: bool, keep_claim: bool) {
        let Worker::Holds { token, .. } = self.workers[at] else { return };
        let verdict = if not_performed { AttemptVerdict::NotPerformed } else { AttemptVerdict::Unknown };
        let mut ended = Ended::found(verdict);
        let request = self.requests.iter().find(|request| request.token == token);
        ended.acts_for_ms = request.map_or(0, |request| (request.until - self.now).max(0));
        self.change(at, &Change::End { ended, keep_claim, not_before_ms: None });
    }

    /// Opens the next attempt of a claim: where the class sends again, or where a look-up found nothing.
    fn open(&mut self, at: usize, doubt_cleared: bool) {
        let doubt = self.row.as_ref().and_then(|row| row.0.doubt.clone());
        let again = match doubt.map(|doubt| doubt.class) {
            _ if doubt_cleared => true,
            None | Some(RecoveryClass::Rerun) => true,
            Some(RecoveryClass::Resend) => self.in_window(),
            Some(_) => false,
        };
        if !again {
            return;
        }
        self.tokens += 1;
        let change = Change::Open {
            token: AttemptToken([self.tokens; 16]),
            class: self.class,
            lease_ms: LEASE,
            attempt_timeout_ms: TIMEOUT,
            doubt_cleared,
        };
        self.change(at, &change);
    }

    /// A truthful look-up, whose "absent" counts once no attempt in doubt can act.
    fn look_up(&mut self, at: usize) {
        let Some(doubt) = self.row.as_ref().and_then(|row| row.0.doubt.clone()) else { return };
        if doubt.class > RecoveryClass::Reconcile {
            return;
        }
        if self.performed > 0 {
            self.change(at, &settle(OutcomeKind::Success, true));
        } else if doubt.acts_until <= self.now {
            self.open(at, true);
        }
    }

    fn change(&mut self, at: usize, change: &Change) {
        let Worker::Holds { fence, token, attempt, .. } = self.workers[at] else { return };
        let Some(before) = self.row.as_ref().map(|row| row.0.clone()) else { return };
        let owner =
            Owner { id: before.id.clone(), fence, token: AttemptToken([token; 16]), attempt, seen: None };
        let judged = change::judge(Some(&before), &owner, change, self.now);
        let mine = matches!(judged.reply, Changed::Applied(_));
        let may_end_doubt = mine && ends_doubt(change, &before);
        self.store(Some(before), judged.write.map(|write| Arc::unwrap_or_clone(write.effect)), may_end_doubt);
        match judged.reply {
            Changed::Applied(row) => self.applied(at, change, &row),
            // A renewal that is refused stops its worker from sending; it may still settle.
            Changed::Stale(_) => self.workers[at] = Worker::Idle,
        }
    }

    fn applied(&mut self, at: usize, change: &Change, row: &EffectRecord) {
        let Worker::Holds { token, attempt, lease_until, closed, sent, .. } = &mut self.workers[at] else {
            return;
        };
        match change {
            Change::Renew { .. } => *lease_until = row.lease_until,
            Change::Open { token: opened, .. } => {
                (*token, *attempt, *lease_until) = (opened.0[0], row.attempt, row.lease_until);
                (*closed, *sent) = (false, false);
            }
            Change::End { keep_claim: true, .. } if row.state == State::Claimed => {
                (*closed, *sent) = (true, false);
            }
            Change::Settle { .. } if row.state == State::Completed => {
                // Its acknowledgement may be lost: then it settles again.
                *lease_until = 0;
            }
            Change::Label => {}
            _ => self.workers[at] = Worker::Idle,
        }
    }

    fn store(&mut self, before: Option<EffectRecord>, after: Option<EffectRecord>, may_end_doubt: bool) {
        let Some(mut row) = after else { return };
        checks::row(&row);
        if let Some(old) = before.as_ref().and_then(|before| before.doubt.as_ref()) {
            let kept = row.doubt.as_ref().is_some_and(|new| {
                (new.attempt, new.since) == (old.attempt, old.since)
                    && new.class >= old.class
                    && new.acts_until >= old.acts_until
            });
            let ended = row.doubt.is_none() && may_end_doubt;
            self.doubt_lost |= !(kept || ended);
        }
        row.revision = 1;
        row.created_at = 0;
        if let Some(end) = &mut row.end {
            end.at = 0;
        }
        if let Some(outcome) = &mut row.outcome {
            outcome.settled_at = 0;
            outcome.retain_until = i64::MAX;
        }
        self.outcome_by = row.outcome.is_some().then_some(row.token.0[0]);
        self.first_outcome_by = self.first_outcome_by.or(self.outcome_by);
        self.row = Some(Row(row));
    }
}
