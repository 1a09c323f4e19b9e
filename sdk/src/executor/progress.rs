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

    pub(crate) fn set(&self, to: u8) {
        self.0.store(to, Ordering::SeqCst);
    }

    pub(crate) fn get(&self) -> u8 {
        self.0.load(Ordering::SeqCst)
    }

    /// Whether the body may start: not once the call has gone away.
    pub(crate) fn begin(&self) -> bool {
        self.0.compare_exchange(Self::OPEN, Self::POLLED, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    pub(crate) fn may_have_performed(&self) -> bool {
        matches!(self.get(), Self::POLLED | Self::CLOSED | Self::OVER)
    }
}
