//! What all clones of an executor share.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::{Notify, watch};

use super::{
    background::Background,
    builder::{Defaults, same_operation},
    callers::{Callers, Speaker},
    durable::{Recoverable, Resources},
    held::Held,
    news::News,
    outcomes::{OutcomeCache, Outcomes},
    recovery::{Recoveries, Recovery},
    settings::{ConfigError, Settings},
};
use crate::{
    descriptor::{Descriptor, RecoveryClass},
    environment::Runtime,
    identity::{ArgumentDigest, ByDigest, FingerprintKey},
    ledger::{Ledger, Transactions, record::State},
    provider::{DynProvider, Profile},
    retention::{self, RetentionPolicy},
};

/// How far a drain has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Claims are taken.
    Open,
    /// No new claims; bodies run on and are renewed.
    Draining,
    /// The deadline has passed: nothing is sent, bodies are aborted, writes are not tried again.
    Over,
}

pub(crate) struct Core {
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) runtime: Runtime,
    pub(crate) provider_key_secret: Option<Vec<u8>>,
    pub(crate) fingerprint_keys: Vec<FingerprintKey>,
    pub(crate) background: Background,
    pub(crate) outcomes: Outcomes,
    defaults: Defaults,
    profiles: HashMap<String, Profile>,
    providers: HashMap<&'static str, Arc<dyn DynProvider>>,
    settings: RwLock<HashMap<&'static str, Arc<Settings>, ByDigest>>,
    pub(crate) resources: Resources,
    pub(crate) recoveries: Recoveries,
    /// Providers that said that they are not asked by handles.
    no_polls: Mutex<BTreeSet<&'static str>>,
    pub(crate) callers: Callers,
    phase: watch::Sender<Phase>,
    /// The claims that this process holds, and those that are on their way.
    held: Count,
}

/// What the builder was given.
pub(crate) struct Given {
    pub(crate) defaults: Defaults,
    pub(crate) profiles: HashMap<String, Profile>,
    pub(crate) providers: HashMap<&'static str, Arc<dyn DynProvider>>,
    pub(crate) provider_key_secret: Option<Vec<u8>>,
    pub(crate) fingerprint_keys: Vec<FingerprintKey>,
    pub(crate) resources: Resources,
    pub(crate) recovery: Recovery,
    pub(crate) outcome_cache: Option<OutcomeCache>,
}

impl Core {
    pub(crate) fn new(ledger: Arc<dyn Ledger>, runtime: Runtime, given: Given) -> Arc<Self> {
        let Given {
            defaults,
            profiles,
            providers,
            provider_key_secret,
            fingerprint_keys,
            resources,
            recovery,
            outcome_cache,
        } = given;
        let background = Background::start(defaults.lease);
        Arc::new(Self {
            ledger,
            runtime,
            provider_key_secret,
            fingerprint_keys,
            background,
            outcomes: Outcomes::new(outcome_cache.as_ref()),
            defaults,
            profiles,
            providers,
            settings: RwLock::default(),
            resources,
            recoveries: Recoveries::new(recovery),
            no_polls: Mutex::default(),
            callers: Callers::default(),
            phase: watch::Sender::new(Phase::Open),
            held: Count::default(),
        })
    }

    /// The settings of an operation; one first seen at a call passes the checks of the start here, before its claim.
    pub(crate) fn settings(&self, descriptor: &'static Descriptor) -> Result<Arc<Settings>, ConfigError> {
        let known =
            self.settings.read().unwrap_or_else(PoisonError::into_inner).get(descriptor.operation).cloned();
        if let Some(settings) = known {
            same_operation(settings.descriptor, descriptor)?;
            return Ok(settings);
        }
        let settings = Settings::with_overrides(descriptor, &self.profiles, &self.defaults)?;
        self.check_look_up(&settings)?;
        self.check_transactions(&settings)?;
        self.check_fingerprint_key(descriptor)?;
        self.check_durable(descriptor)?;
        self.background.watch_lease(settings.lease);
        let settings = Arc::new(settings);
        let mut all = self.settings.write().unwrap_or_else(PoisonError::into_inner);
        Ok(all.entry(descriptor.operation).or_insert(settings).clone())
    }

    /// The settings of an operation by its name; `None` where this program does not have it.
    pub(crate) fn settings_of(&self, operation: &str) -> Option<Arc<Settings>> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).get(operation).cloned()
    }

    /// What holds for operations that say nothing else.
    pub(crate) fn defaults(&self) -> &Defaults {
        &self.defaults
    }

    /// A provider whose effects are reconciled must be there to be asked, unless the attribute names a path.
    fn check_look_up(&self, settings: &Settings) -> Result<(), ConfigError> {
        let descriptor = settings.descriptor;
        if settings.class != RecoveryClass::Reconcile
            || descriptor.on_unknown == Some(RecoveryClass::Reconcile)
        {
            return Ok(());
        }
        match descriptor.provider {
            Some(provider) if !self.providers.contains_key(provider.name) => Err(ConfigError(format!(
                "the effect `{}` at {}: effects at `{}` are reconciled, and nothing can ask it: give the provider with \
                 `.provider(…)`, or declare `on_unknown = reconcile(path)` or `hold`",
                descriptor.operation, descriptor.location, provider.name
            ))),
            _ => Ok(()),
        }
    }

    /// A transactional effect needs a ledger that has transactions; where all other writes wait for one, none of them may
    /// last so long that a lease ends.
    fn check_transactions(&self, settings: &Settings) -> Result<(), ConfigError> {
        let offered = self.ledger.transactions();
        let is_transactional = settings.class == RecoveryClass::Transactional;
        if is_transactional && offered == Transactions::None {
            return Err(ConfigError(format!(
                "the effect `{}` at {}: `on_unknown = transactional` needs a ledger in whose database an effect's own SQL \
                 commits with its outcome, and `{}` is none: use the one in SQLite or in PostgreSQL, or choose \
                 `reconcile(path)` or `hold`",
                settings.descriptor.operation,
                settings.descriptor.location,
                self.ledger.name()
            )));
        }
        if offered != Transactions::Exclusive {
            return Ok(());
        }
        let known = self.settings.read().unwrap_or_else(PoisonError::into_inner);
        let known = known.values().map(|known| &**known).chain([settings]);
        let transactions = known.clone().filter(|known| known.class == RecoveryClass::Transactional);
        let (longest, shortest) =
            (transactions.max_by_key(|known| known.attempt_timeout), known.min_by_key(|known| known.lease));
        match (longest, shortest) {
            (Some(longest), Some(shortest)) if longest.attempt_timeout > shortest.lease / 3 => {
                Err(ConfigError(format!(
                    "the effect `{}` at {}: its `attempt_timeout` ({:?}) must be at most a third of the shortest `lease` \
                     ({:?}, of `{}`): while its transaction is open, the `{}` ledger renews nothing",
                    longest.descriptor.operation,
                    longest.descriptor.location,
                    longest.attempt_timeout,
                    shortest.lease,
                    shortest.descriptor.operation,
                    self.ledger.name()
                )))
            }
            _ => Ok(()),
        }
    }

    /// What a `#[secret]` argument was must not be found out by trying values against its digest.
    fn check_fingerprint_key(&self, descriptor: &Descriptor) -> Result<(), ConfigError> {
        if !descriptor.secret || !self.fingerprint_keys.is_empty() {
            return Ok(());
        }
        Err(ConfigError(format!(
            "the effect `{}` at {}: it has a `#[secret]` argument, and no key for its fingerprint: give one with \
             `.fingerprint_key(\"2026-01\", secret)`, or mark the argument `#[skip]`",
            descriptor.operation, descriptor.location
        )))
    }

    /// A recovery must find what stands in for a skipped argument, and must not find what is secret.
    fn check_durable(&self, descriptor: &Descriptor) -> Result<(), ConfigError> {
        if !descriptor.durable {
            return Ok(());
        }
        let at = format!("the effect `{}` at {}", descriptor.operation, descriptor.location);
        if descriptor.secret {
            return Err(ConfigError(format!(
                "{at}: it is `durable` and has a `#[secret]` argument, which would be stored as it is: mark the argument \
                 `#[skip]` and give it with `.resource(…)`, or remove `durable`"
            )));
        }
        let missing = Recoverable::find(descriptor.operation)
            .and_then(|recoverable| self.resources.missing(recoverable.resources));
        match missing {
            Some(resource) => Err(ConfigError(format!(
                "{at}: it is `durable`, and nothing stands in for its skipped argument {resource}: give one with \
                 `.resource(…)`"
            ))),
            None => Ok(()),
        }
    }

    /// The ledger itself: a shared pointer to one is a ledger too, and takes a detour.
    pub(crate) fn ledger(&self) -> &dyn Ledger {
        &*self.ledger
    }

    /// Whether the provider may be asked by a handle.
    pub(crate) fn may_poll(&self, descriptor: &Descriptor) -> bool {
        let Some(provider) = descriptor.provider else { return false };
        self.providers.contains_key(provider.name) && !self.no_polls().contains(provider.name)
    }

    /// The provider is not asked by handles; nobody needs to claim an effect to find that out again.
    pub(crate) fn cannot_poll(&self, descriptor: &Descriptor) {
        self.no_polls().extend(descriptor.provider.map(|provider| provider.name));
    }

    fn no_polls(&self) -> MutexGuard<'_, BTreeSet<&'static str>> {
        self.no_polls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn provider(&self, descriptor: &Descriptor) -> Option<Arc<dyn DynProvider>> {
        self.providers.get(descriptor.provider?.name).cloned()
    }

    /// Registers a claim until the guard is dropped: it is renewed, counted, and callers of the same effect wait for it.
    /// `asking` spoke for those who asked for it.
    pub(crate) fn hold(
        self: &Arc<Self>,
        held: Held,
        asked: &Arc<[ArgumentDigest]>,
        asking: Option<Speaker>,
    ) -> Holding {
        let held = Arc::new(held);
        let speaker = self.speak_for(&held, asked, asking);
        self.held.up();
        let renewal = self.background.renew(held.clone());
        if self.phase() == Phase::Over {
            // Too late for the drain to have found it.
            held.revoke();
        }
        Holding { core: self.clone(), held, renewal, speaker }
    }

    /// Counts a claim that is on its way, so that a drain waits for its answer.
    pub(crate) fn claiming(self: &Arc<Self>) -> Claiming {
        self.held.up();
        Claiming(self.clone())
    }

    /// From now on no permit is given.
    pub(crate) fn revoke_all(&self) {
        self.background.for_each(Held::revoke);
    }

    pub(crate) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    pub(crate) fn set_phase(&self, phase: Phase) {
        self.phase.send_modify(|current| *current = phase.max(*current));
    }

    /// How far the drain has come, for who must not keep the executor alive.
    pub(crate) fn phases(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// Resolves when the drain has come this far.
    pub(crate) async fn reached(&self, phase: Phase) {
        // The sender lives as long as `self`.
        let _ = self.phase.subscribe().wait_for(|current| *current >= phase).await;
    }

    /// Forgets what is past its retention until the executor drains, or the last clone of it is dropped.
    pub(crate) fn sweep(&self, policy: RetentionPolicy) {
        let mut phase = self.phase.subscribe();
        let stop = async move { drop(phase.wait_for(|phase| *phase != Phase::Open).await) };
        drop(self.runtime.spawn(retention::run(self.ledger.clone(), policy, stop)));
    }

    /// Resolves when no claim is held, or with the number of those that are when the time is over.
    pub(crate) async fn idle(&self, within: Duration) -> usize {
        tokio::select! {
            biased;
            () = self.held.zero() => 0,
            () = crate::clock::sleep(within) => self.held.now(),
        }
    }
}

/// A count that every call moves, and that only a drain waits for.
#[derive(Default)]
struct Count {
    now: AtomicUsize,
    is_zero: Notify,
}

impl Count {
    fn up(&self) {
        self.now.fetch_add(1, Ordering::SeqCst);
    }

    fn down(&self) {
        if self.now.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.is_zero.notify_waiters();
        }
    }

    fn now(&self) -> usize {
        self.now.load(Ordering::SeqCst)
    }

    /// Resolves when it is zero.
    async fn zero(&self) {
        loop {
            let mut told = std::pin::pin!(self.is_zero.notified());
            // Before it is looked at: nothing that is told from now on is missed.
            told.as_mut().enable();
            if self.now() == 0 {
                return;
            }
            told.await;
        }
    }
}

/// A claim that is on its way to the ledger.
pub(crate) struct Claiming(Arc<Core>);

impl Drop for Claiming {
    fn drop(&mut self) {
        self.0.held.down();
    }
}

/// A claim that this process works on. Dropped when the call is over, however it ends.
pub(crate) struct Holding {
    core: Arc<Core>,
    pub(crate) held: Arc<Held>,
    renewal: u64,
    /// Tells those who wait.
    pub(crate) speaker: Speaker,
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.core.background.stop_renewing(self.renewal);
        let record = self.held.record();
        if record.state == State::Released {
            self.speaker.tell(News::Released(record));
        }
        self.core.held.down();
    }
}
