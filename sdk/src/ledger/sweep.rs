//! Keeping and forgetting: what becomes of a completed effect past its retention.
//!
//! Its content goes: the answer's payload, the payloads of evidence, the stored input and the readable key. What stays is a
//! tombstone: identities, fingerprints, the provider key, attempts and dates. It goes on answering, with
//! [`Claim::Expired`](super::Claim::Expired), until it is removed itself, which by default never happens.
//!
//! The rules here are pure. A database applies them to a batch of rows in one statement, so that payloads that are only to be
//! dropped are not read; the conformance suite holds its conditions against these.

use super::record::{AbsentReason, EffectRecord, LedgerTime, OutcomeBody};

/// One batch of forgetting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sweep {
    /// Makes tombstones of completed effects that are past their retention, those that are past it the longest first.
    Outcomes {
        /// How many at the most, from 1.
        at_most: u32,
    },
    /// Removes tombstones with all that is known of their effects. A later call of such an effect performs it anew.
    Tombstones {
        /// How many at the most, from 1.
        at_most: u32,
        /// How long after the end of its outcome's retention a tombstone is kept, in milliseconds.
        kept_ms: i64,
    },
}

/// What a batch came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// How many effects it dealt with.
    pub effects: u32,
    /// Whether there may be more of the kind that are due now.
    pub more: bool,
}

/// What forgetting one effect came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Forgot {
    /// Its content is gone, and who did it is in the audit.
    Forgotten,
    /// It was a tombstone already. Nothing was written.
    Already,
    /// It has no outcome yet, so that its content is still needed. Nothing was written.
    Unsettled,
    /// There is no such effect.
    NotFound,
}

/// The most effects of one batch, whatever is asked for.
pub(crate) const AT_MOST: u32 = 10_000;

impl Sweep {
    /// How many effects at the most, within what one batch may take.
    pub(crate) fn at_most(self) -> u32 {
        let (Self::Outcomes { at_most } | Self::Tombstones { at_most, .. }) = self;
        at_most.clamp(1, AT_MOST)
    }

    /// Whether the batch is for this row at `now`. Pure.
    #[must_use]
    pub fn is_due(self, record: &EffectRecord, now: LedgerTime) -> bool {
        let Some(outcome) = &record.outcome else { return false };
        match self {
            Self::Outcomes { .. } => !outcome.is_forgotten() && outcome.retain_until <= now,
            Self::Tombstones { kept_ms, .. } => {
                outcome.is_forgotten() && outcome.retain_until <= now.saturating_sub(kept_ms.max(0))
            }
        }
    }
}

/// Judges the forgetting of one effect before its time. Pure.
#[must_use]
pub fn judge_forget(record: Option<&EffectRecord>) -> Forgot {
    match record.map(|record| &record.outcome) {
        None => Forgot::NotFound,
        Some(None) => Forgot::Unsettled,
        Some(Some(outcome)) if outcome.is_forgotten() => Forgot::Already,
        Some(Some(_)) => Forgot::Forgotten,
    }
}

/// The row without its content.
#[must_use]
pub fn tombstone(record: &EffectRecord) -> EffectRecord {
    let mut next = record.next();
    next.readable = None;
    if let Some(outcome) = &mut next.outcome {
        outcome.body = OutcomeBody::Absent(AbsentReason::Expired);
    }
    next
}
