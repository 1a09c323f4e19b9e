//! What the attribute says of an effect, as constant data.

use std::time::Duration;

use crate::provider::Profile;

/// How an effect's identity is derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keying {
    /// Over tenant, operation, key-schema version and the key fields: the same from every entry point.
    BusinessIdentity,
    /// Over tenant, run, node, ordinal and action: the fallback for an action with no business key.
    ActivityRecipe,
}

impl Keying {
    /// The name that the ledger and the witness use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BusinessIdentity => "business-identity",
            Self::ActivityRecipe => "activity-recipe",
        }
    }
}

/// What an unknown outcome leads to. Stored with each attempt; the default is [`Hold`](Self::Hold).
///
/// The order is by strictness, the laxest first: attempts in doubt are judged by the strictest of their classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryClass {
    /// The author accepts repeats: performed again, at least once.
    Rerun,
    /// The provider deduplicates on our key for a documented window: sent again under the same key within it.
    Resend,
    /// The provider can be asked: the look-up runs before anything is sent again.
    Reconcile,
    /// The effect is SQL in the ledger's own database and commits together with its outcome: without the one there is not
    /// the other, and the next caller performs it. See [`transactional`](crate::docs::transactional).
    Transactional,
    /// Never sent again by itself: an operator resolves it.
    Hold,
}

impl RecoveryClass {
    /// The name that the attribute and the ledger use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rerun => "rerun",
            Self::Resend => "resend",
            Self::Reconcile => "reconcile",
            Self::Transactional => "transactional",
            Self::Hold => "hold",
        }
    }
}

/// The provider that an effect names: its pinned name and the function that gives its profile.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ProviderRef {
    /// [`Provider::NAME`](crate::Provider::NAME).
    pub name: &'static str,
    /// [`Provider::profile`](crate::Provider::profile).
    pub profile: fn() -> Profile,
}

impl ProviderRef {
    #[doc(hidden)]
    #[must_use]
    pub const fn of<P: crate::Provider>() -> Self {
        Self { name: P::NAME, profile: P::profile }
    }
}

/// The `retry(…)` option; what is not given is taken from the executor's policy.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct RetryOptions {
    /// How many attempts one call makes at the most, from 1.
    pub attempts_max: Option<u32>,
    /// The first backoff.
    pub base: Option<Duration>,
    /// The longest single backoff.
    pub delay_max: Option<Duration>,
    /// How long one call goes on starting attempts.
    pub elapsed_max: Option<Duration>,
}

/// Everything that `#[effect(…)]` says of a function, known at compile time.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Descriptor {
    /// The stable name of the business operation; the function's name unless pinned.
    pub operation: &'static str,
    /// How the identity is derived.
    pub keying: Keying,
    /// The key schema's version, from 1.
    pub version: u32,
    /// The provider type, where one is named.
    pub provider: Option<ProviderRef>,
    /// The recovery class, where the attribute declares one: it wins over the provider's.
    pub on_unknown: Option<RecoveryClass>,
    /// How long one attempt may take.
    pub attempt_timeout: Option<Duration>,
    /// How long a claim authorises its owner without a renewal.
    pub lease: Option<Duration>,
    /// How long a losing caller waits for the winner.
    pub wait: Option<Duration>,
    /// The retry options given.
    pub retry: RetryOptions,
    /// Whether an argument is marked `#[secret]`: then the executor needs a fingerprint key.
    pub secret: bool,
    /// Whether the body runs in the caller's task.
    pub attached: bool,
    /// Whether the arguments are stored with the first claim, so that the effect can be finished without its caller.
    pub durable: bool,
    /// `module::path (file:line)` of the function, for messages.
    pub location: &'static str,
}

impl Descriptor {
    #[doc(hidden)]
    #[must_use]
    pub const fn new(operation: &'static str, keying: Keying, location: &'static str) -> Self {
        Self {
            operation,
            keying,
            version: 1,
            provider: None,
            on_unknown: None,
            attempt_timeout: None,
            lease: None,
            wait: None,
            retry: RetryOptions { attempts_max: None, base: None, delay_max: None, elapsed_max: None },
            secret: false,
            attached: false,
            durable: false,
            location,
        }
    }
    #[doc(hidden)]
    #[must_use]
    pub const fn version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }
    #[doc(hidden)]
    #[must_use]
    pub const fn provider(mut self, provider: ProviderRef) -> Self {
        self.provider = Some(provider);
        self
    }
    #[doc(hidden)]
    #[must_use]
    pub const fn on_unknown(mut self, class: RecoveryClass) -> Self {
        self.on_unknown = Some(class);
        self
    }
    #[doc(hidden)]
    #[must_use]
    pub const fn attempt_timeout_ms(mut self, ms: u64) -> Self {
        self.attempt_timeout = Some(Duration::from_millis(ms));
        self
    }
    #[doc(hidden)]
    #[must_use]
    pub const fn lease_ms(mut self, ms: u64) -> Self {
        self.lease = Some(Duration::from_millis(ms));
        self
    }
    #[doc(hidden)]
    #[must_use]
    pub const fn wait_ms(mut self, ms: u64) -> Self {
        self.wait = Some(Duration::from_millis(ms));
        self
    }
    #[doc(hidden)]
    #[must_use]
    pub const fn retry_attempts(mut self, attempts_max: u32) -> Self {
        self.retry.attempts_max = Some(attempts_max);
        self
    }
    #[doc(hidden)]
    #[must_use]
    pub const fn retry_base_ms(mut self, ms: u64) -> Self {
        self.retry.base = Some(Duration::from_millis(ms));
        self
    }
    #[doc(hidden)]
    #[must_use]
    pub const fn retry_delay_max_ms(mut self, ms: u64) -> Self {
        self.retry.delay_max = Some(Duration::from_millis(ms));
        self
    }
    #[doc(hidden)]
    #[must_use]
    pub const fn retry_elapsed_max_ms(mut self, ms: u64) -> Self {
        self.retry.elapsed_max = Some(Duration::from_millis(ms));
        self
    }
}

impl Descriptor {
    #[doc(hidden)]
    #[must_use]
    pub const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }
    #[doc(hidden)]
    #[must_use]
    pub const fn attached(mut self) -> Self {
        self.attached = true;
        self
    }
    #[doc(hidden)]
    #[must_use]
    pub const fn durable(mut self) -> Self {
        self.durable = true;
        self
    }
}

/// A descriptor as the attribute submits it, so that the builder sees every operation that is linked in.
#[derive(Debug)]
pub struct Registered(pub &'static Descriptor);

inventory::collect!(Registered);
