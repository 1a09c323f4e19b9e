//! A ledger in the memory of one process: for tests and for trying things out.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;

use super::{
    Change, Changed, Claim, ClaimRequest, EffectHistory, EffectRecord, Ledger, LedgerError, LedgerErrorKind,
    Owner, change, claim,
    identities::{Named, Resolved, resolve},
    record::{Evidence, LedgerTime},
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
pub(crate) struct Kept {
    pub(crate) effects: HashMap<EffectId, EffectHistory>,
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

    pub(crate) fn store<R>(&mut self, transition: Transition<R>) -> R {
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

    fn name(&self) -> &'static str {
        "memory"
    }

    async fn close(&self) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
