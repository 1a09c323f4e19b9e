//! What operators did, and why: one entry for each resolution and each re-opening, written with what it changed.

use serde::{Deserialize, Serialize};

use super::{
    record::{EffectRecord, Fence, LedgerTime, OutcomeKind, State},
    resolution::By,
};
use crate::descriptor::RecoveryClass;

/// What an operator did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OperatorAction {
    /// Resolved it as performed, with a value.
    Done,
    /// Resolved it as refused, with a reason.
    Refused,
    /// The same against evidence that it was performed.
    RefusedDespiteEvidence,
    /// Resolved it as never performed.
    NeverHappened,
    /// The same against evidence that it was performed.
    NeverHappenedDespiteEvidence,
    /// Opened a stored refusal again.
    Reopened,
    /// Dropped the content of its outcome before its time.
    Forgotten,
}

/// Where an effect stood before or after an operator's action. No value, argument, handle or key is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Its state.
    pub state: State,
    /// The number of its current attempt.
    pub attempt: u32,
    /// The fence of the latest claim or resolution.
    pub fence: Fence,
    /// The kind of its outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<OutcomeKind>,
    /// The earliest attempt in doubt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubted_attempt: Option<u32>,
    /// The class of the doubt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt_class: Option<RecoveryClass>,
    /// Whether the provider had accepted it and worked on it.
    #[serde(default)]
    pub accepted: bool,
    /// Whether an attempt behind a raised fence had brought evidence of success.
    #[serde(default)]
    pub late_success: bool,
}

/// One action of an operator, as the ledger keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// When, on the ledger's clock.
    pub at: LedgerTime,
    /// Who, as they named themselves.
    pub who: String,
    /// Why, in their words.
    pub why: String,
    /// What they did.
    pub action: OperatorAction,
    /// Where the effect stood before.
    pub before: Standing,
    /// Where it stood after.
    pub after: Standing,
}

impl AuditEntry {
    /// Where it stands is the same before and after: its content is no part of that.
    pub(super) fn forgotten(record: &EffectRecord, by: &By, at: LedgerTime) -> Self {
        let (who, why) = (by.who().to_owned(), by.why().to_owned());
        let action = OperatorAction::Forgotten;
        Self { at, who, why, action, before: Standing::of(record), after: Standing::of(record) }
    }
}

impl Standing {
    pub(super) fn of(record: &EffectRecord) -> Self {
        Self {
            state: record.state,
            attempt: record.attempt,
            fence: record.fence,
            outcome: record.outcome.as_ref().map(|outcome| outcome.kind),
            doubted_attempt: record.doubt.as_ref().map(|doubt| doubt.attempt),
            doubt_class: record.doubt.as_ref().map(|doubt| doubt.class),
            accepted: record.accepted.is_some(),
            late_success: record.late_success,
        }
    }

    /// As a database keeps it.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(super) fn to_text(&self) -> String {
        // Names and numbers are text whatever they hold.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads [`to_text`](Self::to_text) back; `None` for what this library cannot read.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(super) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}
