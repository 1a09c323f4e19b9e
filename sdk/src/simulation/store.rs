//! The one database of a simulated world. It judges and stores as the real backends do: on the row as its owner saw it,
//! or on a fresh read, and then by compare-and-set. Every row that is stored is checked.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::scheduler::Scheduler;
use crate::{
    identity::EffectId,
    ledger::{
        Changed, EffectHistory, EffectRecord, Kept, Payload, ResolutionReply, UnsettledPage, UnsettledQuery,
        change, claim,
        judge_model::{checks, world::ends_doubt},
        record::{Fence, LedgerTime, State},
        resolution,
        transition::{Transition, Write},
        writer::{Command, Reply},
    },
};

/// A judgement older than this is made again when it is stored.
const JUDGED_FOR_MS: i64 = 50;

pub(super) struct Store {
    scheduler: Arc<Scheduler>,
    inner: Mutex<Inner>,
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Inner {
    kept: Kept,
    /// How far the database's clock is from the true time.
    offset_ms: i64,
    counts: Counts,
}

counted! {
    /// How often a store met this.
    Counts { missed, taken_over, evidence, looked_up, late_success, double_suspected }
}

/// What of a judged row must still hold when its successor is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    revision: i64,
    state: State,
    fence: Fence,
}

impl Seen {
    fn of(record: &EffectRecord) -> Self {
        Self { revision: record.revision, state: record.state, fence: record.fence }
    }
}

/// A command's answer, and what makes it true.
pub(super) struct Judged {
    reply: Reply,
    write: Option<Write>,
    seen: Option<Seen>,
    now: LedgerTime,
}

impl Judged {
    fn claim(judged: Transition<claim::Claim>, seen: Option<&EffectRecord>, now: LedgerTime) -> Self {
        Self { reply: Reply::Claim(judged.reply), write: judged.write, seen: seen.map(Seen::of), now }
    }

    fn change(judged: Transition<Changed>, seen: Option<&EffectRecord>, now: LedgerTime) -> Self {
        Self { reply: Reply::Change(judged.reply), write: judged.write, seen: seen.map(Seen::of), now }
    }

    fn resolution(judged: Transition<ResolutionReply>, seen: Option<&EffectRecord>, now: LedgerTime) -> Self {
        Self { reply: Reply::Resolve(judged.reply), write: judged.write, seen: seen.map(Seen::of), now }
    }
}

impl Store {
    pub(super) fn new(scheduler: Arc<Scheduler>) -> Arc<Self> {
        Arc::new(Self { scheduler, inner: Mutex::default(), changes: watch::Sender::new(0) })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_clock(&self, offset_ms: i64) {
        self.inner().offset_ms = offset_ms;
    }

    pub(super) fn counts(&self) -> Counts {
        self.inner().counts
    }

    fn now(&self) -> LedgerTime {
        self.scheduler.true_ms() + self.inner().offset_ms
    }

    pub(super) fn read(&self, id: &EffectId) -> Option<EffectHistory> {
        self.inner().kept.history(id)
    }

    pub(super) fn unsettled(&self, query: &UnsettledQuery) -> UnsettledPage {
        let now = self.now();
        self.inner().kept.unsettled(query, now)
    }

    pub(super) fn input(&self, id: &EffectId) -> Option<Payload> {
        self.inner().kept.inputs.get(id).cloned()
    }

    /// Tells of every commit.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Judges a command: a change on the row as its owner saw it where that leads to a write, which compares.
    pub(super) fn judge(&self, command: &Command, trust_owner: bool) -> Judged {
        let now = self.now();
        if let (Command::Change(owner, change), true) = (command, trust_owner)
            && let Some(seen) = owner.seen.as_deref()
        {
            let judged = change::judge(Some(seen), owner, change, now);
            if judged.write.is_some() {
                return Judged::change(judged, Some(seen), now);
            }
        }
        let inner = self.inner();
        let current = inner.kept.effects.get(command.id()).map(|row| &*row.effect);
        match command {
            Command::Claim(request) => Judged::claim(claim::judge(current, request, now), current, now),
            Command::Change(owner, change) => {
                Judged::change(change::judge(current, owner, change, now), current, now)
            }
            Command::Resolve(request) => {
                Judged::resolution(resolution::judge(current, request, now), current, now)
            }
        }
    }

    /// Stores a batch; what was judged on another row than the present one, or long ago, is judged again.
    pub(super) fn commit(&self, batch: &[Command], judged: Vec<Judged>) -> Vec<Reply> {
        let replies = batch.iter().zip(judged).map(|(command, judged)| {
            let stale = self.now() - judged.now > JUDGED_FOR_MS;
            let judged = if stale { self.judge(command, false) } else { judged };
            self.store(command, judged).unwrap_or_else(|| {
                self.inner().counts.missed += 1;
                let again = self.judge(command, false);
                self.store(command, again).expect("nobody else writes while the lock is held")
            })
        });
        let replies = replies.collect();
        self.changes.send_modify(|count| *count += 1);
        replies
    }

    /// Stores by compare-and-set; `None` if the row is no longer the judged one.
    fn store(&self, command: &Command, judged: Judged) -> Option<Reply> {
        let mut inner = self.inner();
        let Some(write) = judged.write.clone() else { return Some(judged.reply) };
        let before = inner.kept.history(command.id());
        if before.as_ref().map(|history| Seen::of(&history.effect)) != judged.seen {
            return None;
        }
        inner.counts.evidence += u64::from(write.evidence.is_some());
        inner.counts.late_success += u64::from(write.effect.late_success);
        inner.counts.double_suspected += u64::from(write.effect.double_suspected);
        inner.kept.store(Transition { reply: (), write: Some(write), touch: false });
        let after = inner.kept.history(command.id()).expect("it was just stored");
        drop(inner);
        checks::step(before.as_ref(), &after);
        if let Some(before) = before {
            self.check(command, &judged, &before.effect, &after.effect);
        }
        Some(judged.reply)
    }

    /// What this command must not have done.
    fn check(&self, command: &Command, judged: &Judged, before: &EffectRecord, after: &EffectRecord) {
        match (command, &judged.reply) {
            (Command::Claim(_), reply) => {
                checks::doubt(before, after, false);
                if after.fence > before.fence {
                    let free = before.state == State::Released || before.lease_until <= judged.now;
                    assert!(free, "taken over during the lease: {before:?} at {}", judged.now);
                    // Asking by a handle is no attempt.
                    let asks = before.accepted.is_some();
                    assert!(
                        asks || before.not_before.is_none_or(|at| at <= judged.now),
                        "too early: {before:?}"
                    );
                    assert_eq!(after.doubt, before.doubt_at_expiry(), "a takeover keeps the doubt");
                    let mut inner = self.inner();
                    inner.counts.taken_over += 1;
                    let looks_up =
                        matches!(reply, Reply::Claim(claim::Claim::Won { task: claim::Task::LookUp, .. }));
                    inner.counts.looked_up += u64::from(looks_up);
                }
            }
            (Command::Resolve(_), _) => assert!(before.lease_until <= judged.now || before.outcome.is_some()),
            (Command::Change(owner, change), reply) => {
                let mine = matches!(reply, Reply::Change(Changed::Applied(_)));
                checks::doubt(before, after, mine && ends_doubt(change, before));
                if before.fence > owner.fence {
                    assert!(!mine, "a stale owner changed the row: {change:?}");
                }
            }
        }
    }
}
