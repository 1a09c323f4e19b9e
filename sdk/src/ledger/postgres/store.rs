//! The second half of a pass: what was judged is stored, and answered once it is durable.

use std::collections::HashMap;

use sqlx::Row as _;

use super::{
    connect::Setback,
    encode,
    round::{Judged, Round},
    session::Session,
    sql,
    table::{AttemptRow, AuditRow, EffectRow, EvidenceRow, Shape, Table, TouchRow},
    usual,
};
use crate::ledger::{
    record::{LedgerTime, OutcomeBody},
    transition::Write,
};

/// How many bytes of payloads one statement carries at the most, beyond its first row's.
const PAYLOADS_MAX: usize = 16 << 20;

pub(super) async fn store(
    round: &mut Round<'_>,
    judged: Vec<Judged<'_>>,
    session: &mut Session,
) -> Result<(), Setback> {
    let (done, mut waiting): (Vec<_>, Vec<_>) = judged.into_iter().partition(Judged::is_stored);
    for judged in done {
        round.answer(judged.at, Ok(judged.reply));
    }
    waiting.sort_by_key(|judged| encode::head(&judged.id));
    let (writes, touches): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|judged| judged.write.is_some());
    if !touches.is_empty() {
        store_touches(round, touches, session).await?;
    }
    let (mut settlements, writes): (Vec<_>, Vec<_>) = writes.into_iter().partition(|judged| judged.settles);
    while !settlements.is_empty() {
        let chunk = chunk_of(&mut settlements, |_| true);
        usual::settle(round, chunk, session).await?;
    }
    let (plain, with_more): (Vec<_>, Vec<_>) = writes.into_iter().partition(is_plain);
    for (mut writes, more) in [(plain, false), (with_more, true)] {
        while !writes.is_empty() {
            let chunk = chunk_of(&mut writes, |_| true);
            store_chunk(round, chunk, more, session).await?;
        }
    }
    Ok(())
}

/// Whether the row is all that is written.
fn is_plain(judged: &Judged<'_>) -> bool {
    judged.touch.is_none()
        && judged
            .write
            .as_ref()
            .is_some_and(|write| write.closed.is_none() && write.evidence.is_none() && write.audit.is_none())
}

/// Takes out what is wanted, in order, and no more than one message should carry.
pub(super) fn chunk_of<'b>(
    judged: &mut Vec<Judged<'b>>,
    wanted: impl Fn(&Judged<'b>) -> bool,
) -> Vec<Judged<'b>> {
    let (mut chunk, mut left, mut size) = (Vec::new(), Vec::new(), 0);
    for judged in judged.drain(..) {
        let more = judged.write.as_ref().map_or(0, payload_size);
        if wanted(&judged) && (chunk.is_empty() || size + more <= PAYLOADS_MAX) {
            size += more;
            chunk.push(judged);
        } else {
            left.push(judged);
        }
    }
    *judged = left;
    chunk
}

fn payload_size(write: &Write) -> usize {
    let outcome = write.effect.outcome.as_ref().map(|outcome| &outcome.body);
    let kept = match outcome {
        Some(OutcomeBody::Payload(payload)) => payload.bytes.len(),
        _ => 0,
    };
    let evidence = write.evidence.as_ref().and_then(|evidence| evidence.payload.as_ref());
    kept + evidence.map_or(0, |payload| payload.bytes.len())
}

async fn store_touches(
    round: &mut Round<'_>,
    judged: Vec<Judged<'_>>,
    session: &mut Session,
) -> Result<(), Setback> {
    let mut rows: Vec<_> =
        judged.iter().filter_map(|judged| judged.touch.map(|by| encode::touch(&judged.id, 0, by))).collect();
    session
        .fetch(&sql::TOUCH, |arguments| TouchRow::add_to(&mut rows, Shape::Many, sql::of_more, arguments))
        .await?;
    for judged in judged {
        round.answer(judged.at, Ok(judged.reply));
    }
    Ok(())
}

async fn store_chunk(
    round: &mut Round<'_>,
    judged: Vec<Judged<'_>>,
    with_more: bool,
    session: &mut Session,
) -> Result<(), Setback> {
    let mut rows = Rows::of(&judged);
    let shape = if with_more { Shape::Many } else { Shape::of(&rows.effects) };
    let statement = match (with_more, shape) {
        (true, _) => &*sql::STORE_WITH_MORE,
        (false, Shape::Many) => &*sql::STORE_MANY,
        (false, Shape::One) => &*sql::STORE_ONE,
    };
    let answer = session
        .fetch(statement, |arguments| {
            EffectRow::add_to(&mut rows.effects, shape, sql::of_change, arguments)?;
            if with_more {
                AttemptRow::add_to(&mut rows.closed, Shape::Many, sql::of_more, arguments)?;
                TouchRow::add_to(&mut rows.touches, Shape::Many, sql::of_more, arguments)?;
                EvidenceRow::add_to(&mut rows.evidence, Shape::Many, sql::of_more, arguments)?;
                AuditRow::add_to(&mut rows.audit, Shape::Many, sql::of_more, arguments)?;
            }
            Ok(())
        })
        .await?;
    let stored: Result<HashMap<i64, LedgerTime>, sqlx::Error> =
        answer.iter().map(|row| Ok((row.try_get(1)?, row.try_get(0)?))).collect();
    let stored = stored.map_err(|error| Setback::of(&error))?;
    for (slot, judged) in (0..).zip(judged) {
        match stored.get(&slot) {
            None => round.missed(judged.at),
            Some(now) => usual::answer_stored(round, judged, *now),
        }
    }
    Ok(())
}

/// The parameters of a statement that stores rows.
#[derive(Default)]
struct Rows<'r> {
    effects: Vec<EffectRow<'r>>,
    closed: Vec<AttemptRow<'r>>,
    touches: Vec<TouchRow<'r>>,
    evidence: Vec<EvidenceRow<'r>>,
    audit: Vec<AuditRow<'r>>,
}

impl<'r> Rows<'r> {
    fn of(judged: &'r [Judged<'_>]) -> Self {
        let mut rows = Self::default();
        for (slot, judged) in (0..).zip(judged) {
            let Some(write) = &judged.write else { continue };
            let (state, fence) = judged.was;
            rows.effects.push(EffectRow {
                slot: Some(slot),
                was_state: Some(state.as_str().into()),
                was_fence: Some(fence),
                ..encode::effect(&write.effect)
            });
            rows.closed.extend(write.closed.iter().map(|closed| encode::attempt(&judged.id, slot, closed)));
            rows.touches.extend(judged.touch.map(|by| encode::touch(&judged.id, slot, by)));
            rows.evidence.extend(write.evidence.iter().map(|kept| encode::evidence(&judged.id, slot, kept)));
            rows.audit.extend(write.audit.iter().map(|kept| encode::audit(&judged.id, slot, kept)));
        }
        rows
    }
}
