//! Times that only the database knows when they are judged.
//!
//! What is stored in one round trip is judged before the database has said what time it is there. It is judged at
//! [`CLOCK`], a time that no real one comes near: what the judgement adds to it is kept, and the statement that stores
//! it puts the database's clock in its place, as does [`resolve`] in the answer.

use crate::ledger::{Change, EffectRecord, record::LedgerTime};

/// "Now", before the database has said when that is.
pub(super) const CLOCK: LedgerTime = 1 << 61;

/// Times from here on are [`CLOCK`] and what was added to it or taken from it.
const SYMBOLIC_FROM: LedgerTime = 1 << 60;

/// Never: what is later than any real time, in 36 million years, and what nothing is added to.
const NEVER: LedgerTime = LedgerTime::MAX;

/// The clock of the database, in milliseconds since the Unix epoch.
pub(super) const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// Whether a change of this row may be judged at [`CLOCK`].
///
/// Ending an attempt beside an older doubt keeps the later of two times, and a symbolic one cannot be compared.
pub(super) fn may_be_symbolic(seen: &EffectRecord, change: &Change) -> bool {
    seen.doubt.is_none() || !matches!(change, Change::End { .. } | Change::Settle { .. })
}

/// The SQL that puts the time of the relation `clock` into a value that may be symbolic.
pub(super) fn resolved_sql(value: &str) -> String {
    let resolved = format!("clock.ms + ({value} - {CLOCK})");
    let capped = format!("CASE WHEN {resolved} < {SYMBOLIC_FROM} THEN {resolved} ELSE {NEVER} END");
    // Null is neither, and stays null.
    format!("CASE WHEN {value} >= {SYMBOLIC_FROM} AND {value} < {NEVER} THEN {capped} ELSE {value} END")
}

/// Puts `now` into every symbolic time of a row, as the statement that stored it did.
pub(super) fn resolve(record: &mut EffectRecord, now: LedgerTime) {
    for time in times(record).filter(|time| (SYMBOLIC_FROM..NEVER).contains(*time)) {
        let resolved = now + (*time - CLOCK);
        *time = if resolved < SYMBOLIC_FROM { resolved } else { NEVER };
    }
}

/// Keeps the times of a row that was judged at a real time from being taken for symbolic ones.
pub(super) fn limit(record: &mut EffectRecord) {
    for time in times(record).filter(|time| **time >= SYMBOLIC_FROM) {
        *time = NEVER;
    }
}

fn times(record: &mut EffectRecord) -> impl Iterator<Item = &mut LedgerTime> {
    let always = [&mut record.created_at, &mut record.started_at, &mut record.lease_until];
    let at_times = [&mut record.first_send_at, &mut record.not_before].into_iter().flatten();
    let end = record.end.iter_mut().map(|end| &mut end.at);
    let doubt = record.doubt.iter_mut().flat_map(|doubt| [&mut doubt.since, &mut doubt.acts_until]);
    let accepted = record.accepted.iter_mut().map(|accepted| &mut accepted.poll_after);
    let outcome = record.outcome.iter_mut().flat_map(|kept| [&mut kept.settled_at, &mut kept.retain_until]);
    always.into_iter().chain(at_times).chain(end).chain(doubt).chain(accepted).chain(outcome)
}
