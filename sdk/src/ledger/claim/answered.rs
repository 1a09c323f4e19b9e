//! What a row answers by itself, whoever asks for its effect: something else was asked, or the outcome is there. Every path
//! that answers from a row does so by this, whether the row was just read or is remembered.

use crate::{
    identity::{ArgumentDigest, mismatches},
    ledger::record::{AbsentReason, EffectRecord, LedgerTime, OutcomeBody, StoredOutcome},
};

/// The answer of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answered {
    /// These arguments differ from the recorded ones.
    Mismatch {
        /// Their names.
        arguments: Vec<String>,
    },
    /// The outcome is past its retention.
    Expired,
    /// The row has the outcome.
    Settled,
}

/// Judges whether the row answers what is asked; `None` where it takes a claim to go on. Pure: `now` is the ledger's clock.
pub(crate) fn judge(record: &EffectRecord, asked: &[ArgumentDigest], now: LedgerTime) -> Option<Answered> {
    let arguments = mismatches(&record.fingerprints, asked);
    if rule!(MismatchBeforeState) && !arguments.is_empty() {
        return Some(Answered::Mismatch { arguments });
    }
    let outcome = record.outcome.as_ref().filter(|_| rule!(CompletedIsNotClaimed))?;
    Some(if outcome.is_expired(now) { Answered::Expired } else { Answered::Settled })
}

impl StoredOutcome {
    /// Whether the outcome is past its retention, swept or not.
    #[must_use]
    pub fn is_expired(&self, now: LedgerTime) -> bool {
        self.retain_until <= now || self.is_forgotten()
    }

    /// Whether its content is gone: what is left of the effect is a tombstone.
    #[must_use]
    pub fn is_forgotten(&self) -> bool {
        self.body == OutcomeBody::Absent(AbsentReason::Expired)
    }
}
