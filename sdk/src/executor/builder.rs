//! Making an executor, and the check at start.

use std::{collections::HashMap, sync::Arc, time::Duration};

use super::{
    Executor,
    core::{Core, Given},
    durable::Resources,
    outcomes::OutcomeCache,
    recovery::{self, Recovery},
    settings::{ConfigError, RETENTION_MIN, Settings},
};
use crate::{
    descriptor::{Descriptor, Registered},
    environment::Runtime,
    identity::FingerprintKey,
    ledger::{
        Ledger,
        codec::{Codecs, PayloadCodec, Sealed},
    },
    provider::{DynProvider, Profile, Provider},
    retention::RetentionPolicy,
    retry::RetryPolicy,
};

/// What holds for operations that say nothing else.
#[derive(Debug, Clone)]
pub(crate) struct Defaults {
    pub(crate) attempt_timeout: Duration,
    pub(crate) lease: Duration,
    pub(crate) margin: Duration,
    pub(crate) wait: Duration,
    pub(crate) retry: RetryPolicy,
    pub(crate) retention: Duration,
    pub(crate) outcome_size_max: usize,
    /// Whether stored values are sealed, so that secrets may be among them.
    pub(crate) seals: bool,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            attempt_timeout: Duration::from_secs(15),
            lease: Duration::from_secs(60),
            margin: Duration::from_secs(5),
            wait: Duration::from_secs(30),
            retry: RetryPolicy::default(),
            retention: Duration::from_secs(30 * 24 * 3600),
            outcome_size_max: 1024 * 1024,
            seals: false,
        }
    }
}

/// Makes an [`Executor`].
#[must_use = "an executor is made by `build`"]
pub struct ExecutorBuilder {
    ledger: Arc<dyn Ledger>,
    defaults: Defaults,
    profiles: HashMap<String, Profile>,
    providers: HashMap<&'static str, Arc<dyn DynProvider>>,
    provider_key_secret: Option<Vec<u8>>,
    fingerprint_keys: Vec<(String, Vec<u8>)>,
    sweep: Option<RetentionPolicy>,
    resources: Resources,
    recovery: Recovery,
    recovers: Vec<String>,
    codecs: Codecs,
    outcome_cache: Option<OutcomeCache>,
}

impl ExecutorBuilder {
    pub(crate) fn new(ledger: Arc<dyn Ledger>) -> Self {
        Self {
            ledger,
            defaults: Defaults::default(),
            profiles: HashMap::new(),
            providers: HashMap::new(),
            provider_key_secret: None,
            fingerprint_keys: Vec::new(),
            sweep: None,
            resources: Resources::default(),
            recovery: Recovery::default(),
            recovers: Vec::new(),
            codecs: Codecs::default(),
            outcome_cache: None,
        }
    }

    /// How long one attempt may take, above 0. Default 15 s. Past it the body is aborted and its end is unknown.
    pub fn attempt_timeout(mut self, attempt_timeout: Duration) -> Self {
        self.defaults.attempt_timeout = attempt_timeout;
        self
    }

    /// For how long a claim authorises without a renewal. Default 60 s; longer than attempt timeout plus margin.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.defaults.lease = lease;
        self
    }

    /// What is left of a lease, beyond the attempt's timeout, when the last request may start. Default 5 s: it has to
    /// cover clock steps and pauses between the permit and the socket.
    pub fn margin(mut self, margin: Duration) -> Self {
        self.defaults.margin = margin;
        self
    }

    /// How long a caller waits for another that holds the claim. Default 30 s; 0 does not wait.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.defaults.wait = wait;
        self
    }

    /// How calls retry; [`RetryPolicy`] has the defaults.
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.defaults.retry = retry;
        self
    }

    /// How long an outcome is kept. Default 30 days; at least 14, and no shorter than the retry policy's `elapsed_max` or
    /// a provider's window. After that a call gets [`ErrorKind::Expired`](crate::ErrorKind::Expired).
    pub fn retention(mut self, retention: Duration) -> Self {
        self.defaults.retention = retention;
        self
    }

    /// Seals every stored value with this codec, which also opens them: [encryption at rest](crate::docs::retention#encryption-at-rest).
    /// What was stored before without one stays readable.
    pub fn payload_codec(mut self, codec: impl PayloadCodec) -> Self {
        self.codecs.seal_with(Arc::new(codec));
        self
    }

    /// Opens values that this codec sealed, and seals none with it: a key that was replaced. May be given several times.
    pub fn payload_decoder(mut self, codec: impl PayloadCodec) -> Self {
        self.codecs.open_with(Arc::new(codec));
        self
    }

    /// Has this process forget what is past its retention, on a task of the executor's runtime, until it drains or is dropped. Not by
    /// default: nothing is deleted unless somebody says so. Several processes may do so at once.
    /// [The page on retention](crate::docs::retention) says what goes and what stays.
    pub fn sweep(mut self, policy: RetentionPolicy) -> Self {
        self.sweep = Some(policy);
        self
    }

    /// The largest outcome that is stored, in bytes as encoded. Default 1 MiB. A larger one is recorded as performed
    /// without its value.
    pub fn outcome_size_max(mut self, bytes: usize) -> Self {
        self.defaults.outcome_size_max = bytes;
        self
    }

    /// Keeps outcomes in this process' memory, so that repeated calls of an effect do not ask the ledger: see [`OutcomeCache`]. By
    /// default none is kept.
    pub fn outcome_cache(mut self, cache: OutcomeCache) -> Self {
        self.outcome_cache = Some(cache);
        self
    }

    /// Uses this profile for the provider that it names, instead of the one that the provider's type gives.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profiles.insert(profile.name.clone(), profile);
        self
    }

    /// Gives a provider that can be asked what happened: it is asked before an effect in doubt is performed again.
    pub fn provider<P: Provider>(mut self, provider: P) -> Self {
        self.providers.insert(P::NAME, Arc::new(provider));
        self
    }

    /// Keys the derivation of provider keys, so that nobody who guesses an identity can name its key. Effects that are
    /// in the ledger keep the key that they have.
    pub fn provider_key_secret(mut self, secret: impl Into<Vec<u8>>) -> Self {
        self.provider_key_secret = Some(secret.into());
        self
    }

    /// A key under which `#[secret]` arguments enter the fingerprint: its id (1 to 64 of `A-Z a-z 0-9 . _ -`), which is stored
    /// with each digest, and a random secret of at least 16 bytes, which is not.
    ///
    /// To change keys, give the new one beside the old one, each by a call of its own: digests are made under all of them,
    /// and the old one can go when what was recorded under it alone need no longer be compared. A digest under an id that
    /// is not given compares as absent. [`build`](Self::build) refuses an id or a secret that is not as said here, and an id that is
    /// given twice.
    pub fn fingerprint_key(mut self, id: impl Into<String>, secret: impl Into<Vec<u8>>) -> Self {
        self.fingerprint_keys.push((id.into(), secret.into()));
        self
    }

    /// How effects that were left behind are finished without their callers: see [`Recovery`]. Every 30 s unless set.
    pub fn recovery(mut self, recovery: Recovery) -> Self {
        self.recovery = recovery;
        self
    }

    /// A value for the skipped arguments of its type, where a recovery performs a `durable` effect: a client, a handle. A
    /// later one of the same type replaces it.
    pub fn resource<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.resources.insert(value);
        self
    }

    /// Names an operation that this process must be able to recover: [`build`](Self::build) refuses if no effect of that name is
    /// linked in, as may be the case for a crate that nothing refers to.
    pub fn recovers(mut self, operation: impl Into<String>) -> Self {
        self.recovers.push(operation.into());
        self
    }

    /// Checks the set-up and makes the executor. Effects run on the runtime that this is called in.
    ///
    /// # Errors
    /// [`ConfigError`], naming the fields: outside a Tokio runtime or in one without a timer, a retention under 14 days, a
    /// lease that leaves no room for a request, `resend` without a documented window, a profile of class `reconcile` without
    /// a provider to ask, two functions with one operation name, a profile that contradicts itself, a `#[secret]` argument
    /// without a fingerprint key, a fingerprint key that is too short or given twice, a `durable` effect without a resource for
    /// a skipped argument, an operation that is to be recovered and is not linked in, `transactional` on a ledger without
    /// transactions or, on SQLite, with an attempt timeout over a third of the shortest lease.
    pub fn build(self) -> Result<Executor, ConfigError> {
        let runtime = Runtime::current().ok_or_else(|| {
            ConfigError(
                "an executor must be built inside a Tokio runtime, which then runs its effects: call `build` in an \
                 `async` function under `#[tokio::main]`, or inside `runtime.enter()`"
                    .to_owned(),
            )
        })?;
        if !crate::clock::has_timer() {
            return Err(ConfigError(
                "the Tokio runtime that runs the effects has no timer, and leases and timeouts need one: call `enable_time` \
                 or `enable_all` on its builder"
                    .to_owned(),
            ));
        }
        if self.defaults.retention < RETENTION_MIN {
            return Err(ConfigError(format!(
                "`retention` ({:?}) must be at least 14 days ({RETENTION_MIN:?}): an outcome that is forgotten earlier \
                 lets a late retry perform its effect again",
                self.defaults.retention
            )));
        }
        if let Some(policy) = &self.sweep {
            policy.check().map_err(ConfigError)?;
        }
        if let Some(cache) = &self.outcome_cache {
            cache.check().map_err(ConfigError)?;
        }
        for profile in self.profiles.values() {
            profile.check().map_err(|error| ConfigError(error.to_string()))?;
        }
        let fingerprint_keys = fingerprint_keys(&self.fingerprint_keys)?;
        self.codecs.check().map_err(ConfigError)?;
        let defaults = Defaults { seals: self.codecs.seals(), ..self.defaults };
        let ledger: Arc<dyn Ledger> = if self.codecs.is_empty() {
            self.ledger
        } else {
            Arc::new(Sealed::new(self.ledger, self.codecs))
        };
        let given = Given {
            defaults,
            profiles: self.profiles,
            providers: self.providers,
            provider_key_secret: self.provider_key_secret,
            fingerprint_keys,
            resources: self.resources,
            recovery: self.recovery,
            outcome_cache: self.outcome_cache,
        };
        let core = Core::new(ledger, runtime, given);
        for descriptor in registered()? {
            core.settings(descriptor)?;
        }
        if let Some(policy) = self.sweep {
            core.sweep(policy);
        }
        if let Some(unknown) = self.recovers.iter().find(|operation| core.settings_of(operation).is_none()) {
            return Err(ConfigError(format!(
                "`recovers(\"{unknown}\")`: no effect of that name is linked into this program; a crate that nothing refers to \
                 is left out, so name one of its items, as in `use its_crate as _;`"
            )));
        }
        recovery::start(&core);
        Ok(Executor::new(core))
    }
}

fn fingerprint_keys(given: &[(String, Vec<u8>)]) -> Result<Vec<FingerprintKey>, ConfigError> {
    let mut keys: Vec<FingerprintKey> = Vec::new();
    for (id, secret) in given {
        let key = FingerprintKey::new(id.as_str(), secret)
            .map_err(|error| ConfigError(format!("`fingerprint_key`: {error}")))?;
        if keys.iter().any(|known| known.id() == key.id()) {
            return Err(ConfigError(format!(
                "`fingerprint_key` is given twice with the id `{id}`: another secret has another id"
            )));
        }
        keys.push(key);
    }
    Ok(keys)
}

/// All descriptors that are linked in, one for each operation name.
fn registered() -> Result<Vec<&'static Descriptor>, ConfigError> {
    let mut by_operation: HashMap<&str, &'static Descriptor> = HashMap::new();
    for Registered(descriptor) in inventory::iter::<Registered> {
        if let Some(other) = by_operation.insert(descriptor.operation, descriptor) {
            same_operation(other, descriptor)?;
        }
    }
    Ok(by_operation.into_values().collect())
}

/// Two functions with one operation name would share their effects.
pub(crate) fn same_operation(one: &Descriptor, other: &Descriptor) -> Result<(), ConfigError> {
    if one.location == other.location {
        return Ok(());
    }
    let mut places = [one.location, other.location];
    places.sort_unstable();
    Err(ConfigError(format!(
        "two functions have the operation name `{}`: {} and {}; they would share their effects. Give one of them another \
         name with `operation = \"…\"`",
        one.operation, places[0], places[1]
    )))
}

impl Settings {
    /// The settings under the profile that counts: an override, or the provider type's own.
    pub(crate) fn with_overrides(
        descriptor: &'static Descriptor,
        profiles: &HashMap<String, Profile>,
        defaults: &Defaults,
    ) -> Result<Self, ConfigError> {
        let own = descriptor.provider.map(|provider| (provider.name, provider.profile));
        let profile = own.map(|(name, profile)| profiles.get(name).cloned().unwrap_or_else(profile));
        if let Some(profile) = &profile {
            profile.check().map_err(|error| ConfigError(error.to_string()))?;
        }
        Self::resolve(descriptor, profile.as_ref(), defaults)
    }
}
