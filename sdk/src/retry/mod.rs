//! How often and how soon an effect is tried again. Every retry is an attempt in the ledger.

mod backoff;

use std::time::Duration;

pub(crate) use self::backoff::delay_after;
use crate::descriptor::RetryOptions;

/// How one call retries. Attempt numbers count on over calls; these bounds are of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// How many attempts one call makes at the most, from 1. Default 4.
    pub attempts_max: u32,
    /// The first backoff, before jitter. Default 200 ms.
    pub base: Duration,
    /// The longest single backoff, before jitter. Default 10 s.
    pub delay_max: Duration,
    /// For how long one call goes on starting attempts. Default 60 s.
    pub elapsed_max: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts_max: 4,
            base: Duration::from_millis(200),
            delay_max: Duration::from_secs(10),
            elapsed_max: Duration::from_secs(60),
        }
    }
}

impl RetryPolicy {
    /// With this many attempts for one call, from 1.
    #[must_use]
    pub fn attempts_max(mut self, attempts_max: u32) -> Self {
        self.attempts_max = attempts_max;
        self
    }

    /// With this first backoff.
    #[must_use]
    pub fn base(mut self, base: Duration) -> Self {
        self.base = base;
        self
    }

    /// With this longest single backoff.
    #[must_use]
    pub fn delay_max(mut self, delay_max: Duration) -> Self {
        self.delay_max = delay_max;
        self
    }

    /// With this bound on the time of one call's attempts.
    #[must_use]
    pub fn elapsed_max(mut self, elapsed_max: Duration) -> Self {
        self.elapsed_max = elapsed_max;
        self
    }

    /// This policy with what the attribute says instead.
    pub(crate) fn with(self, options: RetryOptions) -> Self {
        Self {
            attempts_max: options.attempts_max.unwrap_or(self.attempts_max),
            base: options.base.unwrap_or(self.base),
            delay_max: options.delay_max.unwrap_or(self.delay_max),
            elapsed_max: options.elapsed_max.unwrap_or(self.elapsed_max),
        }
    }
}
