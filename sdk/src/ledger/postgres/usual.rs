//! The usual way of an effect: first claims and settlements, as many of either as a batch has, in one commit.

use std::collections::HashMap;

use sqlx::{Row as _, postgres::PgRow};
use uuid::Uuid;

use super::{
    connect::Setback,
    encode,
    round::{Judged, Round, record_in},
    rows_usual::{self, ClaimRow, SettlementRow},
    session::Session,
    sql_usual::{
        CLAIM_AND_SETTLE, CLAIM_MANY, CLAIM_ONE, CLAIM_PLAIN, CLAIM_PLAIN_AND_SETTLE, SETTLE_MANY,
        SETTLE_ONE, of_claim, of_plain_claim, of_settlement,
    },
    store::chunk_of,
    table::{Role, Shape, Table},
    time::{CLOCK, resolve},
};
use crate::ledger::{ClaimRequest, claim, record::LedgerTime, transition::Transition, writer::Reply};

/// Claims effects that are not there, and settles what was judged to be a settlement so far with them. Returns the claims that
/// were not inserted, because a row is there.
pub(super) async fn insert<'b>(
    round: &mut Round<'b>,
    claims: Vec<(usize, &'b ClaimRequest)>,
    judged: &mut Vec<Judged<'b>>,
    session: &mut Session,
) -> Result<Vec<(usize, &'b ClaimRequest)>, Setback> {
    let firsts: Vec<_> = claims.iter().map(|(_, request)| claim::judge(None, request, CLOCK)).collect();
    let mut rows: Vec<_> =
        firsts.iter().filter_map(|first| first.write.as_ref()).map(rows_usual::claim).collect();
    let is_plain = !rows.iter().any(ClaimRow::is_rare);
    let settlements = chunk_of(judged, |judged| judged.settles);
    let shape = if settlements.is_empty() { Shape::of(&rows) } else { Shape::Many };
    let (statement, columns): (&'static str, fn(Role) -> bool) =
        match (shape, settlements.is_empty(), is_plain) {
            (Shape::One, ..) => (&CLAIM_ONE, of_claim),
            (Shape::Many, true, false) => (&CLAIM_MANY, of_claim),
            (Shape::Many, true, true) => (&CLAIM_PLAIN, of_plain_claim),
            (Shape::Many, false, false) => (&CLAIM_AND_SETTLE, of_claim),
            (Shape::Many, false, true) => (&CLAIM_PLAIN_AND_SETTLE, of_plain_claim),
        };
    let mut settled = rows_of(&settlements);
    let answer = session
        .fetch(statement, |arguments| {
            ClaimRow::add_to(&mut rows, shape, columns, arguments)?;
            if settled.is_empty() {
                return Ok(());
            }
            SettlementRow::add_to(&mut settled, Shape::Many, of_settlement, arguments)
        })
        .await?;
    drop(settled);
    drop(rows);
    let stored = Stored::read(&answer, settlements.len()).map_err(|error| Setback::of(&error))?;
    stored.settle(round, settlements);
    Ok(stored.claim(round, claims, firsts))
}

/// Stores settlements that no claim takes along.
pub(super) async fn settle(
    round: &mut Round<'_>,
    settlements: Vec<Judged<'_>>,
    session: &mut Session,
) -> Result<(), Setback> {
    let mut rows = rows_of(&settlements);
    let shape = Shape::of(&rows);
    let statement = if shape == Shape::One { &*SETTLE_ONE } else { &*SETTLE_MANY };
    let answer = session
        .fetch(statement, |arguments| SettlementRow::add_to(&mut rows, shape, of_settlement, arguments))
        .await?;
    drop(rows);
    let stored = Stored::read(&answer, settlements.len()).map_err(|error| Setback::of(&error))?;
    stored.settle(round, settlements);
    Ok(())
}

fn rows_of<'r>(settlements: &'r [Judged<'_>]) -> Vec<SettlementRow<'r>> {
    let row = |(slot, judged): (i64, &'r Judged<'_>)| {
        let write = judged.write.as_ref()?;
        Some(rows_usual::settlement(slot, &write.effect))
    };
    (0..).zip(settlements).filter_map(row).collect()
}

/// What a statement stored, and when.
struct Stored {
    /// By the tokens of the claims that were inserted.
    claimed: HashMap<Uuid, LedgerTime>,
    /// By slot; a row that was not the judged one any more has no time.
    settled: Vec<Option<LedgerTime>>,
}

impl Stored {
    fn read(answer: &[PgRow], settlements: usize) -> Result<Self, sqlx::Error> {
        let mut stored = Self { claimed: HashMap::new(), settled: vec![None; settlements] };
        for row in answer {
            let at: LedgerTime = row.try_get(0)?;
            if let Some(token) = row.try_get(1)? {
                stored.claimed.insert(token, at);
                continue;
            }
            let slot: i64 = row.try_get(2)?;
            if let Some(settled) = usize::try_from(slot).ok().and_then(|slot| stored.settled.get_mut(slot)) {
                *settled = Some(at);
            }
        }
        Ok(stored)
    }

    fn settle(&self, round: &mut Round<'_>, settlements: Vec<Judged<'_>>) {
        for (at, judged) in self.settled.iter().zip(settlements) {
            match at {
                None => round.missed(judged.at),
                Some(at) => answer_stored(round, judged, *at),
            }
        }
    }

    fn claim<'b>(
        &self,
        round: &mut Round<'b>,
        claims: Vec<(usize, &'b ClaimRequest)>,
        firsts: Vec<Transition<claim::Claim>>,
    ) -> Vec<(usize, &'b ClaimRequest)> {
        round.claimed(self.claimed.len(), 0);
        let mut there = Vec::new();
        for ((at, request), first) in claims.into_iter().zip(firsts) {
            let Some(now) = self.claimed.get(&encode::token(request.token)) else {
                there.push((at, request));
                continue;
            };
            // The answer's row is then nobody else's.
            drop(first.write);
            let mut reply = Reply::Claim(first.reply);
            record_in(&mut reply).into_iter().for_each(|record| resolve(record, *now));
            round.answer(at, Ok(reply));
        }
        there
    }
}

/// Answers what was stored at that time.
pub(super) fn answer_stored(round: &mut Round<'_>, mut judged: Judged<'_>, at: LedgerTime) {
    // The answer's row is then nobody else's.
    judged.write = None;
    record_in(&mut judged.reply).into_iter().for_each(|record| resolve(record, at));
    round.answer(judged.at, Ok(judged.reply));
}
