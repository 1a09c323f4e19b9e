//! A ledger in the memory of one process: for tests and for trying things out.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;

use super::{
    Change, Changed, Claim, ClaimRequest, EffectHistory, Ledger, LedgerError, LedgerErrorKind, Owner, change,
    claim,
    record::{Evidence, LedgerTime},
    transition::{Transition, Write},
};
use crate::{clock, identity::EffectId};

/// A ledger that forgets everything when the process ends, and that no other process sees.
///
/// It protects against concurrent and repeated calls within one process and against nothing else. For tests.
#[derive(Debug)]
pub struct MemoryLedger {
    effects: Mutex<Option<HashMap<EffectId, EffectHistory>>>,
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
        Self { effects: Mutex::new(Some(HashMap::new())) }
    }

    fn with<R>(
        &self,
        work: impl FnOnce(&mut HashMap<EffectId, EffectHistory>) -> R,
    ) -> Result<R, LedgerError> {
        // A panic while the lock is held cannot leave a half-made row: rows are replaced whole.
        let mut effects: MutexGuard<'_, _> = self.effects.lock().unwrap_or_else(PoisonError::into_inner);
        match effects.as_mut() {
            Some(effects) => Ok(work(effects)),
            None => Err(LedgerError::new(LedgerErrorKind::Closed, "the in-memory ledger was closed")),
        }
    }

    pub(super) fn store<R>(effects: &mut HashMap<EffectId, EffectHistory>, transition: Transition<R>) -> R {
        if let Some(Write { effect, closed, evidence }) = transition.write {
            let history = effects.entry(effect.id.clone()).or_insert_with(|| EffectHistory {
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

    fn now() -> LedgerTime {
        clock::wall_ms()
    }
}

#[async_trait]
impl Ledger for MemoryLedger {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        self.with(|effects| {
            let current = effects.get(&request.id).map(|history| &history.effect);
            let transition = claim::judge(current, request, Self::now());
            Self::store(effects, transition)
        })
    }

    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        self.with(|effects| {
            let current = effects.get(&owner.id).map(|history| &history.effect);
            let transition = change::judge(current, owner, change, Self::now());
            Self::store(effects, transition)
        })
    }

    async fn read(&self, id: &EffectId) -> Result<Option<EffectHistory>, LedgerError> {
        self.with(|effects| effects.get(id).cloned())
    }

    fn name(&self) -> &'static str {
        "memory"
    }

    async fn close(&self) {
        *self.effects.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
