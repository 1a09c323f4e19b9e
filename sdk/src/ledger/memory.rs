//! A ledger in the memory of one process: for tests and for trying things out.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;

use super::{
    By, Change, Changed, Claim, ClaimRequest, EffectHistory, EffectRecord, Forgot, Ledger, LedgerError,
    LedgerErrorKind, Owner, ResolutionReply, ResolutionRequest, RunPage, RunRow, Sweep, Swept,
    audit::AuditEntry,
    change, claim,
    identities::{Named, Resolved, resolve},
    listing::{Touch, page_of, rows_of},
    record::{AttemptRecord, Evidence, LedgerTime, Payload},
    resolution,
    sweep::{judge_forget, tombstone},
    transition::{Transition, Write},
    unsettled::{Unsettled, UnsettledCursor, UnsettledPage, UnsettledQuery},
};
use crate::{
    clock,
    identity::{ByDigest, EffectId, RunId},
    telemetry,
};

/// A ledger that forgets everything when the process ends, and that no other process sees.
///
/// It protects against concurrent and repeated calls within one process and against nothing else. For tests.
#[derive(Debug)]
pub struct MemoryLedger {
    kept: Mutex<Option<Kept>>,
}

#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) effects: HashMap<EffectId, Row, ByDigest>,
    /// Further identities: the effect that each names, and its key-schema version.
    aliases: HashMap<EffectId, (EffectId, u32), ByDigest>,
    pub(crate) inputs: HashMap<EffectId, Payload, ByDigest>,
    touches: HashMap<RunId, HashMap<EffectId, Touch, ByDigest>>,
}

/// What is kept of an effect: a history whose row is shared with who was told of it.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) effect: Arc<EffectRecord>,
    closed: Vec<AttemptRecord>,
    evidence: Vec<Evidence>,
    audit: Vec<AuditEntry>,
}

impl Row {
    fn history(&self) -> EffectHistory {
        let Self { effect, closed, evidence, audit } = self;
        EffectHistory {
            effect: EffectRecord::clone(effect),
            closed: closed.clone(),
            evidence: evidence.clone(),
            audit: audit.clone(),
        }
    }
}

impl Default for MemoryLedger {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryLedger {
    /// An empty ledger. Warns in the log, in every build, so that it is not found out in production only.
    #[must_use]
    pub fn new() -> Self {
        telemetry::kept_in_memory();
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
    fn row(&self, id: &EffectId) -> Option<&Row> {
        let holder = self.aliases.get(id).map_or(id, |(holder, _)| holder);
        self.effects.get(holder)
    }

    pub(crate) fn history(&self, id: &EffectId) -> Option<EffectHistory> {
        self.row(id).map(Row::history)
    }

    fn shared(&self, id: &EffectId) -> Option<&Arc<EffectRecord>> {
        self.row(id).map(|row| &row.effect)
    }

    fn record(&self, id: &EffectId) -> Option<&EffectRecord> {
        self.shared(id).map(|record| &**record)
    }

    fn named(&self, id: &EffectId) -> Option<Named> {
        let holder = self.record(id)?.clone();
        let aliases = self.aliases.values().filter(|(of, _)| *of == holder.id).map(|(_, version)| *version);
        let versions = aliases.chain([holder.key_version]).collect();
        Some(Named { holder, versions })
    }

    fn claim(&mut self, request: &ClaimRequest, now: LedgerTime) -> Claim {
        if request.identities.is_empty() {
            let holder = self.shared(&request.id);
            let of = holder.map_or(&request.id, |holder| &holder.id).clone();
            let transition = claim::judge_shared(holder, request, now);
            return self.store_claim(request, of, transition, now);
        }
        let further = request.identities.further.iter().map(|further| self.named(&further.id)).collect();
        let (holder, aliases) = match resolve(request, self.named(&request.id), further) {
            Resolved::Row { holder, aliases } => (holder, aliases),
            Resolved::Ambiguous => return Claim::SchemaAmbiguous,
        };
        let of = holder.as_ref().map_or(&request.id, |holder| &holder.id).clone();
        let transition = claim::judge(holder.as_deref(), request, now);
        self.aliases.extend(aliases.into_iter().map(|alias| (alias.id, (of.clone(), alias.key_version))));
        self.store_claim(request, of, transition, now)
    }

    /// Stores what was judged of a claim of the effect `of`.
    fn store_claim(
        &mut self,
        request: &ClaimRequest,
        of: EffectId,
        transition: Transition<Claim>,
        now: LedgerTime,
    ) -> Claim {
        if let (true, Some(run)) = (transition.touch, &request.place.run) {
            let touch = Touch { place: request.place.clone(), at: now };
            self.touches.entry(run.clone()).or_default().entry(of).or_insert(touch);
        }
        self.store(transition)
    }

    fn of_run(&self, run: &RunId, page: &RunPage) -> Vec<RunRow> {
        let touches = self.touches.get(run);
        let rows = self.effects.iter().flat_map(|(id, row)| {
            let touch = touches.and_then(|touches| touches.get(id));
            rows_of(&row.effect, &row.closed, run, touch)
        });
        page_of(rows.collect(), page)
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
                    self.touches.values_mut().for_each(|touched| drop(touched.remove(id)));
                }
            }
        }
        Swept { effects: u32::try_from(ids.len()).unwrap_or(u32::MAX), more }
    }

    fn forget(&mut self, id: &EffectId, by: &By, now: LedgerTime) -> Forgot {
        let holder = self.record(id).map(|record| record.id.clone());
        let forgot = judge_forget(self.record(id));
        if let (Forgot::Forgotten, Some(holder)) = (forgot, holder) {
            self.forget_content(&holder);
            if let Some(kept) = self.effects.get_mut(&holder) {
                kept.audit.push(AuditEntry::forgotten(&kept.effect, by, now));
            }
        }
        forgot
    }

    fn forget_content(&mut self, holder: &EffectId) {
        if let Some(kept) = self.effects.get_mut(holder) {
            kept.effect = Arc::new(tombstone(&kept.effect));
            self.inputs.remove(holder);
            kept.evidence.iter_mut().for_each(|evidence| evidence.payload = None);
        }
    }

    pub(crate) fn store<R>(&mut self, transition: Transition<R>) -> R {
        if let Some(Write { effect, closed, evidence, input, audit }) = transition.write {
            if let Some(input) = input {
                self.inputs.insert(effect.id.clone(), input);
            }
            let row = match self.effects.entry(effect.id.clone()) {
                Entry::Occupied(known) => {
                    let row = known.into_mut();
                    row.effect = effect;
                    row
                }
                Entry::Vacant(new) => {
                    new.insert(Row { effect, closed: Vec::new(), evidence: Vec::new(), audit: Vec::new() })
                }
            };
            row.closed.extend(closed);
            // A change that is repeated because its acknowledgement was lost brings its evidence again.
            let known = |new: &Evidence| {
                let of = |evidence: &Evidence| (evidence.attempt, evidence.fence, evidence.verdict);
                row.evidence.iter().any(|old| of(old) == of(new))
            };
            let evidence = evidence.filter(|evidence| !known(evidence));
            row.evidence.extend(evidence);
            row.audit.extend(audit);
        }
        transition.reply
    }

    /// Looks at every row: it is a ledger for tests.
    pub(crate) fn unsettled(&self, query: &UnsettledQuery, now: LedgerTime) -> UnsettledPage {
        let has_input = |record: &EffectRecord| self.inputs.contains_key(&record.id);
        let due_at = |record: &EffectRecord| record.recovery_due_at(has_input(record));
        let mut looked: Vec<_> = self
            .effects
            .values()
            .map(|row| (UnsettledCursor::of(&row.effect), &*row.effect))
            .filter(|(at, record)| record.outcome.is_none() && query.after.is_none_or(|after| *at > after))
            .filter(|(_, record)| !query.due_only || due_at(record).is_some())
            .collect();
        looked.sort_unstable_by_key(|(at, _)| *at);
        let limit = usize::try_from(query.limit.max(1)).unwrap_or(usize::MAX);
        let next = looked.get(limit).and_then(|_| looked.get(limit - 1)).map(|(at, _)| *at);
        looked.truncate(limit);
        let effects = looked.into_iter().map(|(_, record)| record);
        let due = effects.filter(|record| !query.due_only || due_at(record).is_some_and(|at| at <= now));
        let effects =
            due.map(|record| Unsettled { effect: record.clone(), has_input: has_input(record) }).collect();
        UnsettledPage { effects, next, now }
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

    async fn resolve(&self, request: &ResolutionRequest) -> Result<ResolutionReply, LedgerError> {
        self.with(|kept| {
            let transition = resolution::judge(kept.record(&request.id), request, clock::wall_ms());
            kept.store(transition)
        })
    }

    async fn read(&self, id: &EffectId) -> Result<Option<EffectHistory>, LedgerError> {
        self.with(|kept| kept.history(id))
    }

    async fn unsettled(&self, query: &UnsettledQuery) -> Result<UnsettledPage, LedgerError> {
        self.with(|kept| kept.unsettled(query, clock::wall_ms()))
    }

    async fn input(&self, id: &EffectId) -> Result<Option<Payload>, LedgerError> {
        self.with(|kept| {
            let holder = kept.record(id).map_or(id, |record| &record.id);
            kept.inputs.get(holder).cloned()
        })
    }

    async fn sweep(&self, batch: Sweep) -> Result<Swept, LedgerError> {
        self.with(|kept| kept.sweep(batch, clock::wall_ms()))
    }

    async fn forget(&self, id: &EffectId, by: &By) -> Result<Forgot, LedgerError> {
        self.with(|kept| kept.forget(id, by, clock::wall_ms()))
    }

    async fn of_run(&self, run: &RunId, page: &RunPage) -> Result<Vec<RunRow>, LedgerError> {
        self.with(|kept| kept.of_run(run, page))
    }

    fn name(&self) -> &'static str {
        "memory"
    }

    async fn close(&self) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
