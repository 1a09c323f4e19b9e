//! The only place that reads a clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

#[cfg(test)]
use crate::environment::machine;

/// Milliseconds of the machine's wall clock since the Unix epoch.
pub(crate) fn wall_ms() -> i64 {
    #[cfg(test)]
    if let Some(machine) = machine() {
        return machine.wall_ms();
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn monotonic() -> Instant {
    #[cfg(test)]
    if let Some(machine) = machine() {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        return *START.get_or_init(Instant::now) + machine.monotonic();
    }
    Instant::now()
}

/// A moment on both of the machine's clocks.
///
/// The monotonic clock stops while the machine is suspended and the wall clock may be set back: what has passed is the
/// larger of the two.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    monotonic: Stopwatch,
    wall_ms: i64,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Self { monotonic: Stopwatch::start(), wall_ms: wall_ms() }
    }

    /// How much time has passed since, at the least: by the clock that stops with the machine.
    pub(crate) fn elapsed_monotonic(&self) -> Duration {
        self.monotonic.elapsed()
    }

    /// How much time has passed since, by the larger of the two clocks.
    pub(crate) fn elapsed(&self) -> Duration {
        let monotonic = self.monotonic.elapsed();
        let wall = u64::try_from(wall_ms().saturating_sub(self.wall_ms)).unwrap_or(0);
        if rule!(LargerClockCounts) { monotonic.max(Duration::from_millis(wall)) } else { monotonic }
    }
}

/// Counts from its start, by the clock that stops with the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(monotonic())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        monotonic().saturating_duration_since(self.0)
    }
}

/// A moment to come, on the larger of the two clocks: past as soon as one of them says so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Until {
    start: Moment,
    length: Duration,
}

impl Until {
    pub(crate) fn new(start: Moment, length: Duration) -> Self {
        Self { start, length }
    }

    pub(crate) fn remaining(&self) -> Duration {
        self.length.saturating_sub(self.start.elapsed())
    }

    pub(crate) fn is_past(&self) -> bool {
        self.remaining().is_zero()
    }
}

/// Waits on the runtime's timer.
pub(crate) async fn sleep(duration: Duration) {
    #[cfg(test)]
    if let Some(machine) = machine() {
        return machine.sleep(duration).await;
    }
    tokio::time::sleep(duration).await;
}

/// Whether the current runtime has a timer. Tokio says so only by a panic.
pub(crate) fn has_timer() -> bool {
    #[cfg(test)]
    if machine().is_some() {
        return true;
    }
    std::panic::catch_unwind(|| drop(tokio::time::sleep(Duration::ZERO))).is_ok()
}

/// What `work` gives, unless `limit` passes first: then it is dropped.
#[cfg(any(feature = "postgres", feature = "tower"))]
pub(crate) async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(limit, work).await.ok()
}

#[cfg(test)]
mod tests {
    use std::{
        any::Any,
        sync::{
            Arc,
            atomic::{AtomicI64, Ordering},
        },
    };

    use super::*;
    use crate::environment::simulated::{Machine, Work, enter};

    /// Suspended: its monotonic clock stands still, and its wall clock goes on.
    #[derive(Default)]
    struct Suspended {
        wall_ms: AtomicI64,
    }

    impl Machine for Suspended {
        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }

        fn wall_ms(&self) -> i64 {
            self.wall_ms.load(Ordering::SeqCst)
        }

        fn sleep(&self, _: Duration) -> Work {
            Box::pin(std::future::pending())
        }

        fn spawn(&self, _: Work) -> Box<dyn Fn() + Send + Sync> {
            Box::new(|| {})
        }

        fn random(&self) -> [u8; 16] {
            [0; 16]
        }

        fn panicked(&self, _: &(dyn Any + Send)) {}
    }

    #[test]
    fn what_a_suspended_machine_slept_counts_and_a_clock_that_is_set_back_does_not() {
        let machine = Arc::new(Suspended::default());
        enter(machine.clone(), || {
            let (then, length) = (Moment::now(), Duration::from_secs(30));
            let end = Until::new(then, length);
            assert!(!end.is_past());
            machine.wall_ms.store(31_000, Ordering::SeqCst);
            assert_eq!(then.elapsed(), Duration::from_secs(31));
            assert_eq!(then.elapsed_monotonic(), Duration::ZERO);
            assert!(end.is_past());
            machine.wall_ms.store(-31_000, Ordering::SeqCst);
            assert_eq!(then.elapsed(), Duration::ZERO);
        });
    }
}
