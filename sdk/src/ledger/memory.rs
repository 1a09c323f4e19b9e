//! A ledger in the memory of one process: for tests and for trying things out.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;

use super::{
    Change, Changed, Claim, ClaimRequest, EffectHistory, EffectRecord, Forgot, Ledger, LedgerError,
    LedgerErrorKind, Owner, Sweep, Swept, change, claim,
    identities::{Named, Resolved, resolve},
    record::{Evidence, LedgerTime},
    sweep::{judge_forget, tombstone},
    transition::{Transition, Write},
};
use crate::{clock, identity::EffectId};

/// A ledger that forgets everything when the process ends, and that no other process sees.
///
/// It protects against concurrent and repeated calls within one process and against nothing else. For tests.
#[derive(Debug)]
pub struct MemoryLedger {
    kept: Mutex<Option<Kept>>,
}

#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) effects: HashMap<EffectId, EffectHistory>,
    /// Further identities: the effect that each names, and its key-schema version.
    aliases: HashMap<EffectId, (EffectId, u32)>,
}

impl Default for MemoryLedger {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryLedger {
    /// An empty ledger.
    #[must_use]
    pub fn new() -> Self {
        Self { kept: Mutex::new(Some(Kept::default())) }
    }

    fn with<R>(&self, work: impl FnOnce(&mut Kept) -> R) -> Result<R, LedgerError> {
        // A panic while the lock is held cannot leave a half-made row: rows are replaced whole.
        let mut kept: MutexGuard<'_, _> = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.as_mut() {
            Some(kept) => Ok(work(kept)),
            None => Err(LedgerError::new(LedgerErrorKind::Closed, "the in-memory ledger was closed")),
        }
    }
}

impl Kept {
    fn history(&self, id: &EffectId) -> Option<&EffectHistory> {
        let holder = self.aliases.get(id).map_or(id, |(holder, _)| holder);
        self.effects.get(holder)
    }

    fn record(&self, id: &EffectId) -> Option<&EffectRecord> {
        self.history(id).map(|history| &history.effect)
    }

    fn named(&self, id: &EffectId) -> Option<Named> {
        let holder = self.record(id)?.clone();
        let aliases = self.aliases.values().filter(|(of, _)| *of == holder.id).map(|(_, version)| *version);
        let versions = aliases.chain([holder.key_version]).collect();
        Some(Named { holder, versions })
    }

    fn claim(&mut self, request: &ClaimRequest, now: LedgerTime) -> Claim {
        let further = request.identities.further.iter().map(|further| self.named(&further.id)).collect();
        let (holder, aliases) = match resolve(request, self.named(&request.id), further) {
            Resolved::Row { holder, aliases } => (holder, aliases),
            Resolved::Ambiguous => return Claim::SchemaAmbiguous,
        };
        let of = holder.as_ref().map_or(&request.id, |holder| &holder.id).clone();
        let transition = claim::judge(holder.as_deref(), request, now);
        self.aliases.extend(aliases.into_iter().map(|alias| (alias.id, (of.clone(), alias.key_version))));
        self.store(transition)
    }

    fn sweep(&mut self, batch: Sweep, now: LedgerTime) -> Swept {
        let mut due: Vec<_> = self.effects.values().filter(|kept| batch.is_due(&kept.effect, now)).collect();
        due.sort_by_key(|kept| kept.effect.outcome.as_ref().map(|outcome| outcome.retain_until));
        let at_most = usize::try_from(batch.at_most()).unwrap_or(usize::MAX);
        let ids: Vec<_> = due.iter().take(at_most).map(|kept| kept.effect.id.clone()).collect();
        let more = due.len() > ids.len();
        for id in &ids {
            match batch {
                Sweep::Outcomes { .. } => self.forget_content(id),
                Sweep::Tombstones { .. } => {
                    self.effects.remove(id);
                    self.aliases.retain(|_, (of, _)| of != id);
                }
            }
        }
        Swept { effects: u32::try_from(ids.len()).unwrap_or(u32::MAX), more }
    }

    fn forget(&mut self, id: &EffectId) -> Forgot {
        let holder = self.record(id).map(|record| record.id.clone());
        let forgot = judge_forget(self.record(id));
        if let (Forgot::Forgotten, Some(holder)) = (forgot, holder) {
            self.forget_content(&holder);
        }
        forgot
    }

    fn forget_content(&mut self, holder: &EffectId) {
        if let Some(kept) = self.effects.get_mut(holder) {
            kept.effect = tombstone(&kept.effect);
            kept.evidence.iter_mut().for_each(|evidence| evidence.payload = None);
        }
    }

    pub(super) fn store<R>(&mut self, transition: Transition<R>) -> R {
        if let Some(Write { effect, closed, evidence }) = transition.write {
            let history = self.effects.entry(effect.id.clone()).or_insert_with(|| EffectHistory {
                effect: effect.clone(),
                closed: Vec::new(),
                evidence: Vec::new(),
            });
            history.effect = effect;
            history.closed.extend(closed);
            // A change that is repeated because its acknowledgement was lost brings its evidence again.
            let known = |new: &Evidence| {
                let of = |evidence: &Evidence| (evidence.attempt, evidence.fence, evidence.verdict);
                history.evidence.iter().any(|old| of(old) == of(new))
            };
            let evidence = evidence.filter(|evidence| !known(evidence));
            history.evidence.extend(evidence);
        }
        transition.reply
    }
}

#[async_trait]
impl Ledger for MemoryLedger {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        self.with(|kept| kept.claim(request, clock::wall_ms()))
    }

    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        self.with(|kept| {
            let transition = change::judge(kept.record(&owner.id), owner, change, clock::wall_ms());
            kept.store(transition)
        })
    }

    async fn read(&self, id: &EffectId) -> Result<Option<EffectHistory>, LedgerError> {
        self.with(|kept| kept.history(id).cloned())
    }

    async fn sweep(&self, batch: Sweep) -> Result<Swept, LedgerError> {
        self.with(|kept| kept.sweep(batch, clock::wall_ms()))
    }

    async fn forget(&self, id: &EffectId, _who: &str, _why: &str) -> Result<Forgot, LedgerError> {
        self.with(|kept| kept.forget(id))
    }

    fn name(&self) -> &'static str {
        "memory"
    }

    async fn close(&self) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
