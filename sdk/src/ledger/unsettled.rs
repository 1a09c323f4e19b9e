//! Effects without an outcome, page by page: what a recovery takes up, and what an operator looks through.

use super::record::{EffectRecord, LedgerTime, State};
use crate::{descriptor::RecoveryClass, identity::EffectId};

/// Which effects to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsettledQuery {
    /// Only effects that are [due](EffectRecord::recovery_due_at) for a recovery by the ledger's clock; else all that have
    /// no outcome, claims in work among them.
    pub due_only: bool,
    /// Behind which effect to go on; `None` for the oldest.
    pub after: Option<UnsettledCursor>,
    /// How many effects to look at, from 1. Those that are not due count too, so that a page costs the same however few
    /// are.
    pub limit: u32,
}

/// Where a page ended. Effects are in the order of their first claims, those of one millisecond by their digests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnsettledCursor {
    /// When the last effect that was looked at was first claimed.
    pub created_at: LedgerTime,
    /// The digest in its identity.
    pub digest: [u8; 32],
}

impl UnsettledCursor {
    /// The place of this effect.
    #[must_use]
    pub fn of(record: &EffectRecord) -> Self {
        Self { created_at: record.created_at, digest: *record.id.digest() }
    }

    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) const START: Self = Self { created_at: LedgerTime::MIN, digest: [0; 32] };
}

/// One effect without an outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsettled {
    /// The row.
    pub effect: EffectRecord,
    /// Whether its arguments are stored: see [`Ledger::input`](super::Ledger::input).
    pub has_input: bool,
}

/// A page of effects without an outcome, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsettledPage {
    /// What was asked for. It may be empty although there is more.
    pub effects: Vec<Unsettled>,
    /// Where the next page begins; `None` when all have been looked at.
    pub next: Option<UnsettledCursor>,
    /// The ledger's clock.
    pub now: LedgerTime,
}

impl EffectRecord {
    /// From when on somebody without its caller may move the effect on; `None` where only a caller or an operator can: a
    /// doubt under `hold`, and a released effect whose arguments are not stored.
    #[must_use]
    pub fn recovery_due_at(&self, has_input: bool) -> Option<LedgerTime> {
        let recoverable = match self.state {
            State::Completed => false,
            State::Claimed => true,
            State::Escaped => {
                self.accepted.is_some()
                    || self.doubt.as_ref().is_none_or(|doubt| doubt.class != RecoveryClass::Hold)
            }
            State::Released => self.accepted.is_some() || has_input,
        };
        let not_before = match &self.accepted {
            Some(accepted) => accepted.poll_after,
            None => self.not_before.unwrap_or(self.lease_until),
        };
        recoverable.then(|| self.lease_until.max(not_before))
    }
}

impl Unsettled {
    /// Which effect it is.
    #[must_use]
    pub fn id(&self) -> &EffectId {
        &self.effect.id
    }
}

/// The predicates of the two indexes, and when a row of the first is due: one spelling for both databases.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) mod sql {
    pub(crate) const RECOVERABLE: &str = "CASE state WHEN 'claimed' THEN true \
        WHEN 'escaped' THEN accepted_handle IS NOT NULL OR doubt_class <> 'hold' \
        WHEN 'released' THEN accepted_handle IS NOT NULL OR input IS NOT NULL ELSE false END";
    pub(crate) const WAITING: &str = "CASE state WHEN 'escaped' THEN accepted_handle IS NULL AND doubt_class = 'hold' \
        WHEN 'released' THEN accepted_handle IS NULL AND input IS NULL ELSE false END";
    pub(crate) const NOT_BEFORE: &str = "CASE WHEN accepted_handle IS NULL THEN coalesce(not_before, lease_until) \
        ELSE accepted_poll_after END";
}
