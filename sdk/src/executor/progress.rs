//! How far a call has come, for those who have to clean up after one that went away.

use std::sync::atomic::{AtomicU8, Ordering};

/// Where a call stands; 0 until it holds a claim.
#[derive(Debug, Default)]
pub(crate) struct Progress(AtomicU8);

impl Progress {
    /// An attempt is open and its body was not polled.
    pub(crate) const OPEN: u8 = 1;
    /// The body was polled.
    pub(crate) const POLLED: u8 = 2;
    /// The attempt is closed and the claim is held.
    pub(crate) const CLOSED: u8 = 3;
    /// The claim was given back or settled.
    pub(crate) const OVER: u8 = 4;
    /// The call went away before its body was polled: it never will be.
    pub(crate) const ABANDONED: u8 = 5;

    pub(crate) fn set(&self, to: u8) {
        self.0.store(to, Ordering::SeqCst);
    }

    pub(crate) fn get(&self) -> u8 {
        self.0.load(Ordering::SeqCst)
    }

    /// Whether the body may start: not once the call has gone away.
    pub(crate) fn begin(&self) -> bool {
        let begins = self.0.compare_exchange(Self::OPEN, Self::POLLED, Ordering::SeqCst, Ordering::SeqCst);
        begins.is_ok() || !rule!(AbandonedNeverBegins)
    }

    /// Where the call stood when it went away. A body that has not started by now never does.
    pub(crate) fn abandon(&self) -> u8 {
        match self.0.compare_exchange(Self::OPEN, Self::ABANDONED, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(stood) | Err(stood) => stood,
        }
    }

    pub(crate) fn may_have_performed(&self) -> bool {
        matches!(self.get(), Self::POLLED | Self::CLOSED | Self::OVER)
    }
}

#[cfg(test)]
mod tests {
    use super::Progress;

    #[test]
    fn a_body_starts_or_its_call_goes_away_and_not_both() {
        let started = Progress::default();
        started.set(Progress::OPEN);
        assert!(started.begin() && !started.begin());
        assert_eq!(started.abandon(), Progress::POLLED);
        assert!(started.may_have_performed());

        let gone = Progress::default();
        gone.set(Progress::OPEN);
        assert_eq!(gone.abandon(), Progress::OPEN);
        assert!(!gone.begin() && !gone.may_have_performed());
    }
}
