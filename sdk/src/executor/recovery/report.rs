//! What passes came to.

use std::collections::BTreeMap;

/// What one pass of the recovery, or all of them, came to: numbers of effects, but for the first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// How many passes it is of.
    pub passes: u64,
    /// Due effects that were looked at.
    pub due: u64,
    /// Those that this process claimed or labelled.
    pub taken: u64,
    /// Of them: the outcome is stored, a success.
    pub completed: u64,
    /// The outcome is stored, a refusal.
    pub refused: u64,
    /// Known not to have been performed.
    pub released: u64,
    /// Still in doubt, and visible as such.
    pub escaped: u64,
    /// Accepted by the provider and not finished.
    pub accepted: u64,
    /// Somebody else was first, or has it in work.
    pub lost: u64,
    /// Nothing can be done by this process: no function to ask with, no stored arguments, a window that is over.
    pub waiting: u64,
    /// The stored arguments do not decode; left as they are.
    pub unreadable: u64,
    /// The ledger did not answer, or a new owner's answer was not found.
    pub failed: u64,
    /// Operations that this binary has no function for, or under another provider, with the number of their effects; left as
    /// they are.
    pub no_handler: BTreeMap<String, u64>,
}

impl RecoveryReport {
    pub(super) fn add(&mut self, other: &Self) {
        let Self {
            passes,
            due,
            taken,
            completed,
            refused,
            released,
            escaped,
            accepted,
            lost,
            waiting,
            unreadable,
            failed,
            no_handler,
        } = other;
        self.passes += passes;
        self.due += due;
        self.taken += taken;
        self.completed += completed;
        self.refused += refused;
        self.released += released;
        self.escaped += escaped;
        self.accepted += accepted;
        self.lost += lost;
        self.waiting += waiting;
        self.unreadable += unreadable;
        self.failed += failed;
        for (operation, effects) in no_handler {
            *self.no_handler.entry(operation.clone()).or_default() += effects;
        }
    }
}
