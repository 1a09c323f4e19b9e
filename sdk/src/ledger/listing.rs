//! What a ledger lists of a run: the rows of the witness, in an order that never changes behind a reader.

use std::num::NonZeroUsize;

use super::record::{AttemptRecord, AttemptVerdict, EffectRecord, LedgerTime, Place, State};
use crate::{
    descriptor::Keying,
    identity::{EffectId, InvocationId, NodeId, RunId},
};

/// One row: an attempt that the run made, or the run's first touch of an effect that only other runs performed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// Which effect.
    pub effect: EffectId,
    /// The node of the run; `None` where the call was made outside any node.
    pub node: Option<NodeId>,
    /// The host's id of the node's execution.
    pub invocation: Option<InvocationId>,
    /// The attempt's number; of a touch, that of the effect's latest attempt.
    pub attempt: u32,
    /// How the identity was derived.
    pub keying: Keying,
    /// Where the effect stands, for its latest attempt and for a touch; how it ended, for an earlier attempt
    /// ([`AttemptVerdict::closed_state`]).
    pub state: State,
    /// When the attempt started, or when the run first met the effect.
    pub at: LedgerTime,
    /// The idempotency key presented to the provider.
    pub provider_key: String,
}

/// A row's place in the order of a run's list: time, attempt, effect. Nothing that happens later changes it, but that a
/// touch goes when the run makes an attempt of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunCursor {
    /// [`RunRow::at`].
    pub at: LedgerTime,
    /// [`RunRow::attempt`].
    pub attempt: u32,
    /// The digest of [`RunRow::effect`]; its tenant is the run's.
    pub digest: [u8; 32],
}

/// Which part of a run's list is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunPage {
    /// The last row that is known already; `None` for the first page.
    pub after: Option<RunCursor>,
    /// How many rows at the most.
    pub rows_max: NonZeroUsize,
}

impl RunRow {
    /// Where this row stands in the list.
    #[must_use]
    pub fn cursor(&self) -> RunCursor {
        RunCursor { at: self.at, attempt: self.attempt, digest: *self.effect.digest() }
    }
}

impl RunPage {
    /// The rows behind `after` as a database finds them: a cursor that is before every row where there is none.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn from(&self) -> RunCursor {
        self.after.unwrap_or(RunCursor { at: LedgerTime::MIN, attempt: 0, digest: [0; 32] })
    }

    /// The most rows, as a database takes it.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn limit(&self) -> i64 {
        i64::try_from(self.rows_max.get()).unwrap_or(i64::MAX)
    }
}

impl AttemptVerdict {
    /// The state of an attempt that was followed by another: *completed* where the provider gave its answer, *released*
    /// where it is known not to have performed, *escaped* where nobody knows.
    #[must_use]
    pub const fn closed_state(self) -> State {
        match self {
            Self::Performed | Self::Refused => State::Completed,
            Self::NotPerformed => State::Released,
            Self::Unknown => State::Escaped,
        }
    }
}

/// The first time that a run met an effect of others.
#[derive(Debug, Clone)]
pub(crate) struct Touch {
    pub(crate) place: Place,
    pub(crate) at: LedgerTime,
}

/// The rows that one effect adds to a run's list.
pub(crate) fn rows_of(
    effect: &EffectRecord,
    closed: &[AttemptRecord],
    run: &RunId,
    touch: Option<&Touch>,
) -> Vec<RunRow> {
    let row = |place: &Place, attempt, state, at| RunRow {
        effect: effect.id.clone(),
        node: place.node.clone(),
        invocation: place.invocation.clone(),
        attempt,
        keying: effect.keying,
        state,
        at,
        provider_key: effect.provider_key.to_string(),
    };
    let is_own = |place: &Place| place.run.as_ref() == Some(run);
    let closed = closed.iter().filter(|attempt| is_own(&attempt.place));
    let mut rows: Vec<_> = closed
        .map(|closed| {
            row(&closed.place, closed.attempt, closed.end.verdict.closed_state(), closed.started_at)
        })
        .collect();
    if is_own(&effect.place) {
        rows.push(row(&effect.place, effect.attempt, effect.state, effect.started_at));
    }
    if let (true, Some(touch)) = (rows.is_empty(), touch) {
        rows.push(row(&touch.place, effect.attempt, effect.state, touch.at));
    }
    rows
}

/// The part of a list that is asked for, in order.
pub(crate) fn page_of(mut rows: Vec<RunRow>, page: &RunPage) -> Vec<RunRow> {
    rows.retain(|row| page.after.is_none_or(|after| row.cursor() > after));
    rows.sort_by_key(RunRow::cursor);
    rows.truncate(page.rows_max.get());
    rows
}
