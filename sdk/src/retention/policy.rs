//! When a process sweeps, and how much at a time.

use std::time::Duration;

/// The shortest retention of tombstones, which is also that of outcomes.
const TOMBSTONES_MIN: Duration = Duration::from_secs(14 * 24 * 3600);

/// How a process forgets what is past its retention. The default keeps tombstones for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionPolicy {
    every: Duration,
    batch: u32,
    pause: Duration,
    tombstones: Option<Duration>,
}

impl Default for RetentionPolicy {
    fn default() -> Self {
        Self {
            every: Duration::from_secs(3600),
            batch: 500,
            pause: Duration::from_millis(100),
            tombstones: None,
        }
    }
}

impl RetentionPolicy {
    /// How often this process looks for what is due, about: each pause is between half of it and one and a half times it, so that
    /// processes that were started together do not sweep together. Default 1 hour; at least 1 second.
    #[must_use]
    pub fn every(mut self, every: Duration) -> Self {
        self.every = every;
        self
    }

    /// How many effects one batch takes at the most, from 1 to 10,000. Default 500. A ledger may take fewer, so that claims do not
    /// wait for it.
    #[must_use]
    pub fn batch(mut self, effects_max: u32) -> Self {
        self.batch = effects_max;
        self
    }

    /// The pause between two batches of one pass. Default 100 ms.
    #[must_use]
    pub fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Removes tombstones this long after the retention of their outcomes has ended; at least 14 days. By default they are kept
    /// for ever.
    ///
    /// A call of an effect whose tombstone is gone **performs it anew**: nothing is left that says it ever was. Only where no call
    /// can come any more.
    #[must_use]
    pub fn remove_tombstones_after(mut self, kept: Duration) -> Self {
        self.tombstones = Some(kept);
        self
    }

    /// What is wrong with it, naming the method.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.every < Duration::from_secs(1) {
            return Err(format!("`RetentionPolicy::every` ({:?}) must be 1 second or longer", self.every));
        }
        if !(1..=crate::ledger::sweep::AT_MOST).contains(&self.batch) {
            return Err(format!(
                "`RetentionPolicy::batch` ({}) must be between 1 and {}",
                self.batch,
                crate::ledger::sweep::AT_MOST
            ));
        }
        match self.tombstones {
            Some(kept) if kept < TOMBSTONES_MIN => Err(format!(
                "`RetentionPolicy::remove_tombstones_after` ({kept:?}) must be at least 14 days ({TOMBSTONES_MIN:?}): a call of \
                 an effect whose tombstone is gone performs it again"
            )),
            _ => Ok(()),
        }
    }

    pub(super) fn batch_size(&self) -> u32 {
        self.batch
    }

    pub(super) fn between_batches(&self) -> Duration {
        self.pause
    }

    pub(super) fn tombstones_kept(&self) -> Option<Duration> {
        self.tombstones
    }

    /// The pause before the next pass; `share` is a number from 0 to below 1. The first pass comes within one `every`.
    pub(super) fn until_next(&self, is_first: bool, share: f64) -> Duration {
        let earliest = if is_first { 0.0 } else { 0.5 };
        self.every.mul_f64(earliest + share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_are_spread() {
        let policy = RetentionPolicy::default().every(Duration::from_secs(100));
        let seconds = |is_first, share| policy.until_next(is_first, share).as_secs();
        assert_eq!([seconds(true, 0.0), seconds(true, 0.5), seconds(true, 0.999)], [0, 50, 99]);
        assert_eq!([seconds(false, 0.0), seconds(false, 0.999)], [50, 149]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let day = Duration::from_secs(24 * 3600);
        let wrong = [
            (RetentionPolicy::default().every(Duration::ZERO), "`RetentionPolicy::every`"),
            (RetentionPolicy::default().batch(0), "`RetentionPolicy::batch`"),
            (RetentionPolicy::default().batch(10_001), "10000"),
            (RetentionPolicy::default().remove_tombstones_after(day * 13), "14 days"),
        ];
        for (policy, names) in wrong {
            let error = policy.check().expect_err("it makes no sense");
            assert!(error.contains(names), "{error}");
        }
        assert_eq!(RetentionPolicy::default().remove_tombstones_after(day * 14).check(), Ok(()));
    }
}
