//! The outcomes that this process keeps in memory: off unless the builder is given an [`OutcomeCache`].

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use lru::LruCache;

use super::{
    erased::is_plain,
    known::{Asked, Known},
};
use crate::{
    clock::Moment,
    identity::EffectId,
    ledger::{
        EffectRecord,
        record::{OutcomeBody, OutcomeKind},
    },
};

/// The longest that an outcome may be answered from memory.
const KEPT_MAX: Duration = Duration::from_secs(3600);

/// So many locks at the most, and so much behind one at the least where there are several: an answer holds its lock for less
/// than a microsecond.
const SHARDS_MAX: usize = 16;
const SHARD_EFFECTS_MIN: usize = 1024;
const SHARD_BYTES_MIN: usize = 2 * 1024 * 1024;

/// What an entry takes beside its texts and its value, about.
const ENTRY_BYTES: usize = size_of::<Known>() + size_of::<EffectRecord>() + 512;

/// A bounded cache of outcomes in this process' memory, for
/// [`ExecutorBuilder::outcome_cache`](crate::ExecutorBuilder::outcome_cache): repeated calls of an effect are then answered without
/// asking the ledger. Worth its memory where the same effects are called again and again within a minute or so.
///
/// Kept are successes only, since nothing but their content is ever forgotten; never a refusal, which an operator may open
/// again, and never that an effect is not there. A value with a [`Secret`](crate::Secret) in it is not kept; others are in memory as
/// the function returned them, whatever [codec](crate::ExecutorBuilder::payload_codec) seals them in the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct OutcomeCache {
    effects_max: usize,
    bytes_max: usize,
    kept_for: Duration,
}

impl Default for OutcomeCache {
    fn default() -> Self {
        Self { effects_max: 100_000, bytes_max: 64 * 1024 * 1024, kept_for: Duration::from_secs(60) }
    }
}

impl OutcomeCache {
    /// With the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many effects' outcomes are kept at the most, from 1; what was not asked for the longest goes first. Default 100,000.
    pub fn effects_max(mut self, effects: usize) -> Self {
        self.effects_max = effects;
        self
    }

    /// How many bytes they take at the most, about, from 1. Default 64 MiB. A value over a sixteenth of that may not be kept.
    pub fn bytes_max(mut self, bytes: usize) -> Self {
        self.bytes_max = bytes;
        self
    }

    /// For how long an outcome is answered from memory after the ledger last gave it, above 0 and up to an hour. Default 60 s.
    ///
    /// This is how long a call in this process may still get the value of an effect that *another* process has
    /// [forgotten](crate::Executor::forget). What this process forgets is gone at once, and nothing is answered past its
    /// retention.
    pub fn kept_for(mut self, kept_for: Duration) -> Self {
        self.kept_for = kept_for;
        self
    }

    /// What is wrong with it, naming the method.
    pub(crate) fn check(&self) -> Result<(), String> {
        let refuse = |what: &str| Err(format!("`OutcomeCache::{what}"));
        match self {
            Self { effects_max: 0, .. } => {
                refuse("effects_max` must be 1 or more; without `outcome_cache` nothing is kept")
            }
            Self { bytes_max: 0, .. } => {
                refuse("bytes_max` must be 1 or more; without `outcome_cache` nothing is kept")
            }
            Self { kept_for, .. } if kept_for.is_zero() || *kept_for > KEPT_MAX => refuse(
                "kept_for` must be above 0 and at most an hour: what another process forgets is answered for so long",
            ),
            _ => Ok(()),
        }
    }
}

/// What this process knows of settled effects.
pub(crate) struct Outcomes {
    cache: Option<Cache>,
    /// How often this process forgot an outcome or opened one again, or may have: what was asked before that is not kept.
    overruled: AtomicU64,
}

struct Cache {
    shards: Vec<Mutex<Shard>>,
    kept_for: Duration,
}

struct Shard {
    kept: LruCache<EffectId, Arc<Known>>,
    bytes: usize,
    effects_max: usize,
    bytes_max: usize,
}

/// While an operator's or a privacy job's request is under way: what is remembered of the effect is dropped at its end.
pub(crate) struct Overruling<'a> {
    outcomes: &'a Outcomes,
    id: EffectId,
}

impl Outcomes {
    pub(crate) fn new(settings: Option<&OutcomeCache>) -> Self {
        Self { cache: settings.map(Cache::new), overruled: AtomicU64::new(0) }
    }

    /// Whether outcomes are kept at all.
    pub(crate) fn are_kept(&self) -> bool {
        self.cache.is_some()
    }

    /// What is kept of the effect, unless it is too old.
    pub(crate) fn find(&self, id: &EffectId) -> Option<Arc<Known>> {
        let cache = self.cache.as_ref()?;
        let mut shard = cache.shard(id);
        let known = shard.kept.get(id)?.clone();
        if known.asked().at.elapsed() < cache.kept_for {
            return Some(known);
        }
        shard.remove(id);
        None
    }

    /// To be taken before the ledger is asked.
    pub(crate) fn asked(&self) -> Asked {
        Asked { at: Moment::now(), overruled: self.overruled.load(Ordering::SeqCst) }
    }

    /// Whether nothing was overruled since the ledger was asked.
    pub(crate) fn stands(&self, known: &Known) -> bool {
        known.asked().overruled == self.overruled.load(Ordering::SeqCst)
    }

    /// Keeps what a call of `id` learned, where it may be kept.
    pub(crate) fn keep(&self, id: &EffectId, known: &Arc<Known>) {
        let Some(cache) = &self.cache else { return };
        // Whoever forgets an effect knows its own identity only.
        if known.record().id != *id || !is_lasting(known.record()) {
            return;
        }
        let mut shard = cache.shard(id);
        // Under the lock that dropping it takes: it is dropped by now, or will be.
        if self.stands(known) {
            shard.add(id, known, cache.kept_for);
        }
    }

    /// Something is about to be done that changes what is known of the effect.
    pub(crate) fn overruling(&self, id: EffectId) -> Overruling<'_> {
        Overruling { outcomes: self, id }
    }
}

impl Drop for Overruling<'_> {
    fn drop(&mut self) {
        self.outcomes.overruled.fetch_add(1, Ordering::SeqCst);
        if let Some(cache) = &self.outcomes.cache {
            cache.shard(&self.id).remove(&self.id);
        }
    }
}

impl Cache {
    fn new(settings: &OutcomeCache) -> Self {
        let OutcomeCache { effects_max, bytes_max, kept_for } = *settings;
        let shards = (effects_max / SHARD_EFFECTS_MIN).min(bytes_max / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
        let shard = || {
            Mutex::new(Shard {
                kept: LruCache::unbounded(),
                bytes: 0,
                effects_max: effects_max / shards,
                bytes_max: bytes_max / shards,
            })
        };
        Self { shards: std::iter::repeat_with(shard).take(shards).collect(), kept_for }
    }

    fn shard(&self, id: &EffectId) -> MutexGuard<'_, Shard> {
        let number = usize::from(id.digest()[0]) % self.shards.len();
        self.shards[number].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard {
    fn add(&mut self, id: &EffectId, known: &Arc<Known>, kept_for: Duration) {
        let bytes = bytes_of(known.record());
        if bytes > self.bytes_max {
            return;
        }
        if let Some(older) = self.remove(id) {
            known.add_runs_of(&older);
        }
        self.kept.put(id.clone(), known.clone());
        self.bytes += bytes;
        while let Some((last, oldest)) = self.kept.peek_lru() {
            let is_over = self.kept.len() > self.effects_max || self.bytes > self.bytes_max;
            if !is_over && oldest.asked().at.elapsed() < kept_for {
                return;
            }
            let last = last.clone();
            self.remove(&last);
        }
    }

    fn remove(&mut self, id: &EffectId) -> Option<Arc<Known>> {
        let removed = self.kept.pop(id)?;
        self.bytes -= bytes_of(removed.record());
        Some(removed)
    }
}

/// Whether the outcome stays as it is for as long as it is kept, and may lie in memory.
fn is_lasting(record: &EffectRecord) -> bool {
    let outcome = record.outcome.as_ref().filter(|outcome| outcome.kind == OutcomeKind::Success);
    outcome.is_some_and(|outcome| is_plain(&outcome.body))
}

/// What the entry of a row takes, about.
fn bytes_of(record: &EffectRecord) -> usize {
    let value = match record.outcome.as_ref().map(|outcome| &outcome.body) {
        Some(OutcomeBody::Payload(payload)) => payload.bytes.len(),
        _ => 0,
    };
    let names: usize = record.fingerprints.iter().map(|digest| size_of_val(digest) + digest.name.len()).sum();
    ENTRY_BYTES + value + names + record.operation.len() + record.provider_key.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        descriptor::{Keying, RecoveryClass},
        executor::erased::encode,
        identity::Tenant,
        ledger::{
            Claim, ClaimRequest, claim,
            identities::Identities,
            record::{AttemptToken, Place, State, StoredOutcome},
        },
        secret::Secret,
    };

    fn settled(byte: u8, kind: OutcomeKind, body: OutcomeBody) -> EffectRecord {
        let request = ClaimRequest {
            id: EffectId::new(Tenant::parse("acme").expect("a tenant"), [byte; 32]),
            operation: "refund".into(),
            keying: Keying::BusinessIdentity,
            key_version: 1,
            identities: Identities::default(),
            readable: None,
            provider: None,
            provider_key: "key".into(),
            fingerprints: Arc::default(),
            input: None,
            class: RecoveryClass::Hold,
            can_perform: true,
            can_look_up: false,
            can_poll: false,
            resend_window_ms: None,
            resend_quiet_ms: None,
            token: AttemptToken([byte; 16]),
            lease_ms: 1,
            attempt_timeout_ms: 1,
            place: Place::default(),
        };
        let Claim::Won { record, .. } = claim::judge(None, &request, 0).reply else {
            panic!("a first claim")
        };
        let outcome =
            StoredOutcome { kind, body, provider_replay: false, settled_at: 0, retain_until: i64::MAX };
        EffectRecord { state: State::Completed, outcome: Some(outcome), ..(*record).clone() }
    }

    fn known(outcomes: &Outcomes, record: &EffectRecord) -> Arc<Known> {
        Arc::new(Known::new(Arc::new(record.clone()), 0, outcomes.asked(), None))
    }

    #[test]
    fn what_was_learned_before_it_was_overruled_is_not_kept() {
        let outcomes = Outcomes::new(Some(&OutcomeCache::new()));
        let record = settled(1, OutcomeKind::Success, encode(&7));
        let early = known(&outcomes, &record);
        outcomes.keep(&record.id, &early);
        assert!(outcomes.find(&record.id).is_some() && outcomes.stands(&early));
        drop(outcomes.overruling(record.id.clone()));
        assert!(outcomes.find(&record.id).is_none() && !outcomes.stands(&early));
        outcomes.keep(&record.id, &early);
        assert!(outcomes.find(&record.id).is_none(), "its answer may be from before");
        outcomes.keep(&record.id, &known(&outcomes, &record));
        assert!(outcomes.find(&record.id).is_some());
    }

    #[test]
    fn only_lasting_and_plain_outcomes_are_kept_and_under_their_own_identity() {
        let outcomes = Outcomes::new(Some(&OutcomeCache::new()));
        let secret = encode(&Secret::new(7));
        for record in [
            settled(1, OutcomeKind::Refusal, encode(&7)),
            settled(1, OutcomeKind::Success, secret),
            settled(
                1,
                OutcomeKind::Success,
                OutcomeBody::Absent(crate::ledger::record::AbsentReason::TooLarge),
            ),
        ] {
            outcomes.keep(&record.id, &known(&outcomes, &record));
            assert!(outcomes.find(&record.id).is_none(), "{:?}", record.outcome);
        }
        let record = settled(1, OutcomeKind::Success, encode(&7));
        let alias = settled(2, OutcomeKind::Success, encode(&7)).id;
        outcomes.keep(&alias, &known(&outcomes, &record));
        assert!(outcomes.find(&alias).is_none() && outcomes.find(&record.id).is_none());
    }

    #[test]
    fn many_effects_share_the_room() {
        let outcomes = Outcomes::new(Some(&OutcomeCache::new().effects_max(4_096)));
        let cache = outcomes.cache.as_ref().expect("outcomes are kept");
        assert_eq!(cache.shards.len(), 4);
        for byte in 0..=255 {
            let record = settled(byte, OutcomeKind::Success, encode(&7));
            outcomes.keep(&record.id, &known(&outcomes, &record));
        }
        let kept = |shard: &Mutex<Shard>| shard.lock().expect("no panic").kept.len();
        assert_eq!(cache.shards.iter().map(kept).collect::<Vec<_>>(), [64; 4]);
    }
}
