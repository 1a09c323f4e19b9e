//! Exponential backoff with jitter, from the `backoff` crate, which is named in this file and nowhere else: it is no
//! longer maintained, and replacing it must stay a small change.

use std::time::Duration;

use backoff::{ExponentialBackoffBuilder, backoff::Backoff as _};

use super::RetryPolicy;
use crate::environment;

/// How far the jitter goes to either side, as a share of the delay.
const JITTER: f64 = 0.5;

/// The delay after the `failed`th attempt of a call, from 1: the base doubled each time up to the longest, with jitter.
pub(crate) fn delay_after(policy: &RetryPolicy, failed: u32) -> Duration {
    let doubled = policy.base.saturating_mul(2_u32.saturating_pow(failed.saturating_sub(1)));
    let mut backoff = ExponentialBackoffBuilder::new()
        .with_initial_interval(doubled.min(policy.delay_max))
        .with_max_interval(policy.delay_max)
        .with_randomization_factor(0.0)
        .with_max_elapsed_time(None)
        .build();
    let delay = backoff.next_backoff().unwrap_or(policy.delay_max);
    // Whole microseconds: the crate's own randomness can add a nanosecond.
    Duration::from_micros(u64::try_from(delay.as_micros()).unwrap_or(u64::MAX))
        .mul_f64(1.0 - JITTER + 2.0 * JITTER * environment::share())
}

#[cfg(test)]
mod tests {
    use super::{Duration, RetryPolicy, delay_after};

    #[test]
    fn grows_to_the_longest_and_keeps_within_the_jitter() {
        let policy =
            RetryPolicy::default().base(Duration::from_millis(100)).delay_max(Duration::from_secs(1));
        for (failed, middle) in [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1000), (40, 1000)] {
            for _ in 0..50 {
                let delay = delay_after(&policy, failed);
                assert!(delay >= Duration::from_millis(middle / 2), "{failed}: {delay:?}");
                assert!(delay <= Duration::from_millis(middle * 3 / 2), "{failed}: {delay:?}");
            }
        }
    }

    #[test]
    fn no_base_means_no_delay() {
        let policy = RetryPolicy::default().base(Duration::ZERO);
        assert_eq!(delay_after(&policy, 3), Duration::ZERO);
    }
}
