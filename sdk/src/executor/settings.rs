//! What holds for one operation: the attribute's options, the provider's profile and the executor's defaults, resolved
//! and checked once.

use std::{sync::Arc, time::Duration};

use super::builder::Defaults;
use crate::{
    descriptor::{Descriptor, RecoveryClass},
    provider::{InFlightMeaning, KeyForm, Profile},
    retry::RetryPolicy,
};

/// The settings of one operation.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) descriptor: &'static Descriptor,
    /// Shared with every claim.
    pub(crate) operation: Arc<str>,
    pub(crate) provider: Option<Arc<str>>,
    pub(crate) class: RecoveryClass,
    pub(crate) key_form: KeyForm,
    pub(crate) attempt_timeout: Duration,
    pub(crate) lease: Duration,
    pub(crate) margin: Duration,
    pub(crate) wait: Duration,
    pub(crate) retry: RetryPolicy,
    /// For how long after a doubt began an attempt may be sent again.
    pub(crate) resend_window: Option<Duration>,
    /// How long a re-send waits after the last attempt in doubt can act, where the provider documents nothing.
    pub(crate) resend_quiet: Option<Duration>,
    pub(crate) settle_delay: Duration,
    pub(crate) retention: Duration,
    pub(crate) outcome_size_max: usize,
}

/// A set-up that the start-up check refuses. The text names the fields and what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub(crate) String);

/// The shortest retention of an effect's outcome, by the idempotency specification.
pub(crate) const RETENTION_MIN: Duration = Duration::from_secs(14 * 24 * 3600);

impl Settings {
    pub(crate) fn resolve(
        descriptor: &'static Descriptor,
        profile: Option<&Profile>,
        defaults: &Defaults,
    ) -> Result<Self, ConfigError> {
        let class = descriptor
            .on_unknown
            .or(profile.map(|profile| profile.on_unknown))
            .unwrap_or(RecoveryClass::Hold);
        let attempt_timeout = descriptor.attempt_timeout.unwrap_or(defaults.attempt_timeout);
        // A re-send must have answered before the window closes.
        let resend_margin = defaults.margin.max(attempt_timeout);
        let window = profile.and_then(Profile::window);
        let undocumented = profile.is_none_or(|profile| profile.in_flight == InFlightMeaning::Undocumented);
        let settings = Self {
            descriptor,
            operation: descriptor.operation.into(),
            provider: descriptor.provider.map(|provider| provider.name.into()),
            class,
            key_form: profile.map(|profile| profile.key_form).unwrap_or_default(),
            attempt_timeout,
            lease: descriptor.lease.unwrap_or(defaults.lease),
            margin: defaults.margin,
            wait: descriptor.wait.unwrap_or(defaults.wait),
            retry: defaults.retry.with(descriptor.retry),
            resend_window: window.map(|window| window.saturating_sub(resend_margin)),
            resend_quiet: undocumented.then(|| profile.map(Profile::settle_delay).unwrap_or_default()),
            settle_delay: profile.map(Profile::settle_delay).unwrap_or_default(),
            retention: defaults.retention,
            outcome_size_max: defaults.outcome_size_max,
        };
        settings.check(window)?;
        Ok(settings)
    }

    fn check(&self, window: Option<Duration>) -> Result<(), ConfigError> {
        let operation = self.descriptor.operation;
        let at = self.descriptor.location;
        let refuse = |rule: String| Err(ConfigError(format!("the effect `{operation}` at {at}: {rule}")));
        if self.retry.attempts_max == 0 {
            return refuse("`retry(attempts = …)` must be 1 or more".to_owned());
        }
        if self.attempt_timeout < Duration::from_millis(1) {
            return refuse(
                "`attempt_timeout` must be 1 ms or longer: ledgers count whole milliseconds".to_owned(),
            );
        }
        let reserve = self.attempt_timeout.saturating_add(self.margin);
        if self.lease <= reserve {
            return refuse(format!(
                "`lease` ({:?}) must be longer than `attempt_timeout` ({:?}) plus the executor's `margin` ({:?}), or no \
                 request could be sent: give a longer `lease`, or a shorter `attempt_timeout` or `margin`",
                self.lease, self.attempt_timeout, self.margin
            ));
        }
        if self.class == RecoveryClass::Resend && self.resend_window.is_none_or(|window| window.is_zero()) {
            return refuse(format!(
                "`on_unknown = resend` needs a provider with a documented window longer than `attempt_timeout`; {}. Name one \
                 with `provider = …`, override its profile, or choose `reconcile(path)` or `hold`",
                window.map_or_else(
                    || "none is documented".to_owned(),
                    |window| format!(
                        "the profile's is {window:?} and `attempt_timeout` is {:?}",
                        self.attempt_timeout
                    )
                ),
            ));
        }
        let horizon = self.retry.elapsed_max.max(window.unwrap_or_default());
        if self.retention < horizon {
            return refuse(format!(
                "the executor's `retention` ({:?}) must not be shorter than the retry horizon or the provider's window ({horizon:?})",
                self.retention
            ));
        }
        Ok(())
    }

    /// What a request may not eat into.
    pub(crate) fn reserve(&self) -> Duration {
        self.attempt_timeout.saturating_add(self.margin)
    }
}
