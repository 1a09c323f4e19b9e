//! One effect, its callers, the ledger's clock, and the truth at the provider.

mod operator;

use super::{Random, checks};
use crate::{
    descriptor::{Keying, RecoveryClass},
    identity::{EffectId, Tenant},
    ledger::{
        Change, Changed, Claim, ClaimRequest, Owner, Task,
        change::{self, Ended},
        claim,
        memory::Kept,
        record::{
            AbsentReason, AttemptToken, AttemptVerdict, EffectRecord, LedgerTime, OutcomeBody, OutcomeKind,
            Place, State,
        },
    },
};

/// A caller that won a claim, and what it knows.
struct Caller {
    owner: Owner,
    request: ClaimRequest,
    /// Whether it is looking up, or between attempts.
    closed: bool,
    /// Whether its current attempt performed the effect.
    performed: bool,
    /// Until when a request of its current attempt may arrive at the provider.
    acts_until: LedgerTime,
}

pub(super) struct World {
    random: Random,
    kept: Kept,
    id: EffectId,
    callers: Vec<Caller>,
    /// Requests of attempts that are over, still on their way: until when.
    under_way: Vec<LedgerTime>,
    now: LedgerTime,
    tokens: u8,
    /// The classes in this life; one with no other than `hold` and `reconcile` performs at most once.
    classes: &'static [RecoveryClass],
    clock_steps_back: bool,
    performed: u32,
    pub(super) looked_up: bool,
    pub(super) resolved: bool,
}

const STRICT: &[RecoveryClass] = &[RecoveryClass::Hold, RecoveryClass::Reconcile, RecoveryClass::Reconcile];
const ALL: &[RecoveryClass] = &[
    RecoveryClass::Rerun,
    RecoveryClass::Resend,
    RecoveryClass::Reconcile,
    RecoveryClass::Transactional,
    RecoveryClass::Hold,
];
const TIMEOUT: i64 = 30;

impl World {
    pub(super) fn new(mut random: Random) -> Self {
        let tenant = Tenant::parse("model").expect("a valid tenant");
        let strict = random.one_in(2);
        Self {
            kept: Kept::default(),
            id: EffectId::new(tenant, [7; 32]),
            callers: Vec::new(),
            under_way: Vec::new(),
            now: 1_000_000,
            tokens: 0,
            classes: if strict { STRICT } else { ALL },
            clock_steps_back: !strict && random.one_in(3),
            performed: 0,
            looked_up: false,
            resolved: false,
            random,
        }
    }

    fn row(&self) -> Option<&EffectRecord> {
        self.kept.effects.get(&self.id).map(|row| &*row.effect)
    }

    pub(super) fn is_completed(&self) -> bool {
        self.row().is_some_and(|row| row.state == State::Completed)
    }

    pub(super) fn attempts(&self) -> u32 {
        self.row().map_or(0, |row| row.attempt)
    }

    fn token(&mut self) -> AttemptToken {
        self.tokens += 1;
        AttemptToken([self.tokens; 16])
    }

    pub(super) fn step(&mut self) {
        match self.random.below(11) {
            0 | 1 => {
                let step = self.random.pick(&[1, 5, 20, 60, 200]);
                self.now += if self.clock_steps_back && self.random.one_in(3) { -step } else { step };
            }
            2..=4 => self.claim(),
            5 => self.arrive(),
            6 => self.operate(),
            _ if self.callers.is_empty() => self.claim(),
            _ => self.act(),
        }
    }

    fn request(&mut self) -> ClaimRequest {
        ClaimRequest {
            id: self.id.clone(),
            operation: "refund-order".into(),
            keying: Keying::BusinessIdentity,
            key_version: 1,
            identities: crate::ledger::identities::Identities::default(),
            readable: Some("order=…1042".into()),
            provider: None,
            provider_key: format!("key-{}", self.tokens).into(),
            fingerprints: [].into(),
            input: None,
            class: self.random.pick(self.classes),
            // A first claim is a caller's own.
            can_perform: self.row().is_none() || !self.random.one_in(4),
            can_look_up: !self.random.one_in(3),
            can_poll: self.random.one_in(2),
            resend_window_ms: (!self.random.one_in(4)).then_some(300),
            resend_quiet_ms: self.random.one_in(2).then_some(10),
            token: self.token(),
            lease_ms: 100,
            attempt_timeout_ms: TIMEOUT,
            place: Place::default(),
        }
    }

    fn claim(&mut self) {
        let repeated = if self.random.one_in(8) { self.callers.last() } else { None };
        let request = match repeated.map(|caller| caller.request.clone()) {
            Some(request) => request,
            None => self.request(),
        };
        let before = self.kept.history(&self.id);
        let judged = claim::judge(self.row(), &request, self.now);
        let claim = self.kept.store(judged);
        let after = self.kept.history(&self.id).expect("claimed once, known for ever");
        checks::step(before.as_ref(), &after);
        let Some(before) = before.map(|history| history.effect) else {
            return self.won(claim, request);
        };
        checks::doubt(&before, &after.effect, false);
        if after.effect.fence > before.fence {
            let doubt = before.doubt_at_expiry();
            let is_free = before.state == State::Released || before.lease_until <= self.now;
            assert!(is_free, "taken over during the lease: {before:?} at {}", self.now);
            // Asking by a handle is no attempt.
            let asks = before.accepted.is_some();
            assert!(asks || before.not_before.is_none_or(|at| at <= self.now), "too early: {before:?}");
            assert_eq!(after.effect.doubt, doubt, "a takeover keeps the doubt");
            if let (Some(doubt), true) = (&doubt, after.effect.attempt > before.attempt) {
                assert!(doubt.class <= RecoveryClass::Resend, "performed again under {doubt:?}");
                if doubt.class == RecoveryClass::Resend {
                    assert!(request.resend_window_ms.is_some_and(|window| self.now < doubt.since + window));
                    assert!(request.resend_quiet_ms.is_none_or(|quiet| doubt.acts_until + quiet <= self.now));
                }
            }
            match claim {
                // What a transaction left open must not commit any more.
                _ if after.effect.state == State::Released => {
                    assert_eq!((before.class, before.end), (RecoveryClass::Transactional, None));
                }
                claim => self.won(claim, request),
            }
        }
    }

    fn won(&mut self, claim: Claim, request: ClaimRequest) {
        let Claim::Won { record, task } = claim else { panic!("a raised fence is a won claim: {claim:?}") };
        assert_eq!(Some(&*record), self.row(), "the winner is told what is stored");
        assert!(task != Task::Perform || request.can_perform, "who cannot perform opened an attempt");
        self.looked_up |= task == Task::LookUp;
        self.callers.push(Caller {
            owner: Owner::of(&record),
            request,
            closed: task != Task::Perform,
            performed: false,
            acts_until: record.lease_until + record.attempt_timeout_ms,
        });
    }

    /// A request arrives at the provider: that of a live attempt, or one that was left behind.
    fn arrive(&mut self) {
        let now = self.now;
        self.under_way.retain(|until| now <= *until);
        let alive: Vec<_> = (0..self.callers.len())
            .filter(|at| !self.callers[*at].closed && now <= self.callers[*at].acts_until)
            .collect();
        if !alive.is_empty() {
            let at = self.random.pick(&alive);
            self.performed += u32::from(!self.callers[at].performed);
            self.callers[at].performed = true;
        } else if self.under_way.pop().is_some() {
            self.performed += 1;
        }
        let strict = self.classes.len() == STRICT.len();
        assert!(
            !strict || self.performed <= 1,
            "performed twice under `hold` and `reconcile`: {:?}",
            self.kept.effects
        );
    }

    /// One of the callers that still live writes something that it can know, or falls silent.
    fn act(&mut self) {
        let at =
            usize::try_from(self.random.below(i64::try_from(self.callers.len()).unwrap_or(1))).unwrap_or(0);
        if self.random.one_in(12) {
            let gone = self.callers.swap_remove(at);
            if !gone.closed && !gone.performed {
                self.under_way.push(gone.acts_until);
            }
            return;
        }
        let Some(change) = (if self.callers[at].closed { self.between(at) } else { self.report(at) }) else {
            return;
        };
        let owner = self.callers[at].owner.clone();
        let before = self.kept.history(&self.id).expect("somebody claimed it");
        let judged = change::judge(Some(&before.effect), &owner, &change, self.now);
        let changed = self.kept.store(judged);
        let after = self.kept.history(&self.id).expect("somebody claimed it");
        checks::step(Some(&before), &after);
        let mine = matches!(changed, Changed::Applied(_));
        checks::doubt(&before.effect, &after.effect, mine && ends_doubt(&change, &before.effect));
        if before.effect.fence > owner.fence {
            assert!(!mine, "a stale owner changed the row: {change:?}");
            assert!(
                !matches!(change, Change::Settle { .. }) || !after.evidence.is_empty(),
                "a stale answer is kept"
            );
            let says_performed = matches!(change, Change::Settle { kind: OutcomeKind::Success, .. });
            let row = &after.effect;
            let known = row.state == State::Completed || row.doubt.is_some();
            assert!(!says_performed || known, "a late success is forgotten: {row:?}");
        }
        self.applied(at, &change, changed);
    }

    /// What follows for the caller from its write.
    fn applied(&mut self, at: usize, change: &Change, changed: Changed) {
        let Changed::Applied(row) = changed else {
            if !matches!(change, Change::Renew { .. }) {
                let gone = self.callers.swap_remove(at);
                if !gone.closed && !gone.performed && !is_known(change) {
                    self.under_way.push(gone.acts_until);
                }
            }
            return;
        };
        assert_eq!(Some(&*row), self.row(), "the owner is told what is stored");
        let (now, caller) = (self.now, &mut self.callers[at]);
        caller.owner = Owner::of(&row);
        match change {
            Change::Renew { lease_ms } => caller.acts_until = now + lease_ms + TIMEOUT,
            Change::Open { lease_ms, .. } => {
                (caller.closed, caller.performed) = (false, false);
                caller.acts_until = now + lease_ms + TIMEOUT;
            }
            Change::End { ended, keep_claim, .. } => {
                if !caller.closed && !caller.performed && ended.verdict == AttemptVerdict::Unknown {
                    self.under_way.push(now + ended.acts_for_ms);
                }
                caller.closed = true;
                if !keep_claim || row.state != State::Claimed {
                    self.callers.swap_remove(at);
                }
            }
            Change::Settle { .. } | Change::Polled { .. } | Change::Clear => {
                drop(self.callers.swap_remove(at))
            }
            Change::Accept { .. } | Change::Label => {}
        }
    }

    /// What a caller with an open attempt may write.
    fn report(&mut self, at: usize) -> Option<Change> {
        let performed = self.callers[at].performed;
        let keep_claim = self.random.one_in(2);
        Some(match self.random.below(10) {
            0 | 1 => Change::Renew { lease_ms: 100 },
            2 => Change::Label,
            3 if self.random.one_in(4) => Change::Accept { handle: "job".to_owned(), poll_after_ms: 5 },
            3..=5 if performed => settle(OutcomeKind::Success, self.random.one_in(3)),
            3 | 4 => self.end(AttemptVerdict::NotPerformed, keep_claim),
            5 => settle(OutcomeKind::Refusal, false),
            6 | 7 if performed => settle(OutcomeKind::Success, false),
            6 | 7 => self.end(AttemptVerdict::NotPerformed, keep_claim),
            _ => self.end(AttemptVerdict::Unknown, keep_claim),
        })
    }

    fn end(&mut self, verdict: AttemptVerdict, keep_claim: bool) -> Change {
        let mut ended = Ended::found(verdict);
        ended.acts_for_ms = self.random.below(TIMEOUT + 1);
        ended.send_digest = self.random.one_in(2).then_some([self.tokens; 32]);
        let not_before_ms = self.random.one_in(4).then_some(15);
        Change::End { ended, keep_claim, not_before_ms }
    }

    /// What a caller between attempts may write: what a truthful look-up found, or the next attempt.
    fn between(&mut self, at: usize) -> Option<Change> {
        if self.random.one_in(3) {
            return Some(Change::Renew { lease_ms: 100 });
        }
        let token = self.token();
        let seen = self.callers[at].owner.seen.clone()?;
        if seen.accepted.is_some() && self.random.one_in(2) {
            return Some(Change::Polled { poll_after_ms: 5 });
        }
        let can_perform = self.callers[at].request.can_perform;
        let open = |class, doubt_cleared| Change::Open {
            token,
            class,
            lease_ms: 100,
            attempt_timeout_ms: TIMEOUT,
            doubt_cleared,
        };
        let class = self.random.pick(self.classes);
        let give_up = self.end(AttemptVerdict::Unknown, false);
        Some(match &seen.doubt {
            None => open(class, false),
            Some(doubt) if doubt.class <= RecoveryClass::Resend && self.random.one_in(2) => {
                open(class, false)
            }
            Some(doubt) if doubt.class <= RecoveryClass::Reconcile => {
                // Outside the strict lives a look-up may be wrong.
                let strict = self.classes.len() == STRICT.len();
                if self.performed > 0 && (strict || !self.random.one_in(3)) {
                    settle(OutcomeKind::Success, true)
                } else if doubt.acts_until < self.now {
                    if can_perform { open(class, true) } else { Change::Clear }
                } else {
                    give_up
                }
            }
            Some(_) => give_up,
        })
    }
}

fn settle(kind: OutcomeKind, conclusive: bool) -> Change {
    let verdict = match kind {
        OutcomeKind::Success => AttemptVerdict::Performed,
        OutcomeKind::Refusal => AttemptVerdict::Refused,
    };
    let body = OutcomeBody::Absent(AbsentReason::Unencodable);
    let ended = Ended::found(verdict);
    Change::Settle { ended, kind, body, provider_replay: false, conclusive, retain_ms: 1_000_000 }
}

/// Whether the change says for certain that its attempt has nothing under way.
fn is_known(change: &Change) -> bool {
    match change {
        Change::End { ended, .. } => ended.verdict == AttemptVerdict::NotPerformed,
        Change::Settle { .. } => true,
        _ => false,
    }
}

/// The ends of a doubt: an answer, the doubted attempt's own "not performed", and a look-up.
pub(crate) fn ends_doubt(change: &Change, row: &EffectRecord) -> bool {
    let own = row.doubt.as_ref().is_some_and(|doubt| doubt.attempt == row.attempt) && row.end.is_none();
    match change {
        Change::Settle { kind, conclusive, .. } => *kind == OutcomeKind::Success || *conclusive || own,
        Change::End { ended, .. } => ended.verdict == AttemptVerdict::NotPerformed && own,
        Change::Open { doubt_cleared, .. } => *doubt_cleared && !row.late_success,
        Change::Clear => !row.late_success,
        _ => false,
    }
}
