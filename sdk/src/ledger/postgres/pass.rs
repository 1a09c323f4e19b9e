//! One pass over a batch: look, judge, store. Whatever lost a race stays open for the next pass.

use std::collections::{HashMap, HashSet};

use sqlx::{Arguments, Row as _, postgres::PgRow};
use uuid::Uuid;

use super::{
    among,
    connect::Setback,
    decode, encode,
    round::{Held, Judged, Open, Round, record_in},
    session::Session,
    sql, store,
    table::{EffectRow, Shape, Table},
    time::{CLOCK, may_be_symbolic, resolve},
};
use crate::ledger::{
    Change, ClaimRequest, Owner, ResolutionRequest, change, claim,
    record::{EffectRecord, LedgerTime},
    resolution,
    writer::{Command, Reply},
};

/// Deals with what is open. An error leaves all of it open that is not known to be stored.
pub(super) async fn pass(round: &mut Round<'_>, session: &mut Session) -> Result<(), Setback> {
    let (mut claims, mut changes, mut resolutions) = (Vec::new(), Vec::new(), Vec::new());
    for (open, command) in round.turn() {
        match command {
            Command::Claim(request) => claims.push((open.at, &**request)),
            Command::Change(owner, change) => changes.push((open, &**owner, &**change)),
            Command::Resolve(request) => resolutions.push((open.at, &**request)),
        }
    }
    let mut judged = Vec::new();
    let (among, claims): (Vec<_>, Vec<_>) =
        claims.into_iter().partition(|(_, request)| !request.identities.is_empty());
    for (at, request) in among {
        among::judge(round, at, request, &mut judged, session).await?;
    }
    if !claims.is_empty() {
        judge_claims(round, &claims, &mut judged, session).await?;
    }
    if !changes.is_empty() {
        judge_changes(round, &changes, &mut judged, session).await?;
    }
    if !resolutions.is_empty() {
        judge_resolutions(round, &resolutions, &mut judged, session).await?;
    }
    store::store(round, judged, session).await
}

/// Claims what is not there in one round trip, and judges the rest by the rows that came back.
async fn judge_claims<'b>(
    round: &mut Round<'b>,
    claims: &[(usize, &'b ClaimRequest)],
    judged: &mut Vec<Judged<'b>>,
    session: &mut Session,
) -> Result<(), Setback> {
    let firsts: Vec<_> = claims.iter().map(|(_, request)| claim::judge(None, request, CLOCK)).collect();
    let writes = firsts.iter().filter_map(|first| first.write.as_ref());
    let mut rows: Vec<_> = writes.map(encode::first).collect();
    let shape = Shape::of(&rows);
    let statement = if shape == Shape::One { &*sql::CLAIM_ONE } else { &*sql::CLAIM_MANY };
    let answer = session
        .fetch(statement, |arguments| EffectRow::add_to(&mut rows, shape, sql::of_claim, arguments))
        .await?;
    let Looked { now, inserted, held } = look(&answer)?;
    for ((at, request), first) in claims.iter().zip(firsts) {
        if inserted.contains(&encode::token(request.token)) {
            let mut reply = Reply::Claim(first.reply);
            record_in(&mut reply).into_iter().for_each(|record| resolve(record, now));
            round.answer(*at, Ok(reply));
        } else if let Some(held) = held.get(&encode::head(&request.id)) {
            match held.as_effect(&request.id) {
                Err(error) => round.answer(*at, Err(error)),
                Ok(record) => {
                    judged.push(claimed(*at, request, held, record));
                }
            }
        }
    }
    Ok(())
}

/// The judgement of a claim on the row that was read for it.
pub(super) fn claimed<'b>(
    at: usize,
    request: &'b ClaimRequest,
    held: &Held,
    record: &EffectRecord,
) -> Judged<'b> {
    let transition = claim::judge(Some(record), request, held.now);
    let is_new = !held.met && record.place.run != request.place.run;
    let touches = transition.touch && is_new && request.place.run.is_some();
    let mut next = Judged::new(at, record, transition, Reply::Claim).at_real_time();
    next.touch = touches.then_some(&request.place);
    next
}

/// Judges changes by what their owners last saw, where that may be; by a fresh read otherwise.
async fn judge_changes<'b>(
    round: &mut Round<'b>,
    changes: &[(Open, &'b Owner, &'b Change)],
    judged: &mut Vec<Judged<'b>>,
    session: &mut Session,
) -> Result<(), Setback> {
    let mut unseen = Vec::new();
    for (open, owner, change) in changes {
        match by_hint(*open, owner, change) {
            Some(next) => judged.push(next),
            None => unseen.push((open.at, *owner, *change)),
        }
    }
    if unseen.is_empty() {
        return Ok(());
    }
    let heads: Vec<_> = unseen.iter().map(|(_, owner, _)| encode::head(&owner.id)).collect();
    let answer = session.fetch(&sql::READ, |arguments| arguments.add(heads)).await?;
    let Looked { held, .. } = look(&answer)?;
    for (at, owner, change) in unseen {
        let Some(held) = held.get(&encode::head(&owner.id)) else {
            round.answer(at, Ok(Reply::Change(change::judge(None, owner, change, CLOCK).reply)));
            continue;
        };
        match held.as_effect(&owner.id) {
            Err(error) => round.answer(at, Err(error)),
            Ok(record) => {
                let transition = change::judge(Some(record), owner, change, held.now);
                judged.push(Judged::new(at, record, transition, Reply::Change).at_real_time());
            }
        }
    }
    Ok(())
}

/// Judges what operators ask for by a fresh read.
async fn judge_resolutions<'b>(
    round: &mut Round<'b>,
    resolutions: &[(usize, &'b ResolutionRequest)],
    judged: &mut Vec<Judged<'b>>,
    session: &mut Session,
) -> Result<(), Setback> {
    let heads: Vec<_> = resolutions.iter().map(|(_, request)| encode::head(&request.id)).collect();
    let answer = session.fetch(&sql::READ, |arguments| arguments.add(heads)).await?;
    let Looked { held, .. } = look(&answer)?;
    for (at, request) in resolutions {
        let Some(held) = held.get(&encode::head(&request.id)) else {
            round.answer(*at, Ok(Reply::Resolve(resolution::judge(None, request, CLOCK).reply)));
            continue;
        };
        match held.as_effect(&request.id) {
            Err(error) => round.answer(*at, Err(error)),
            Ok(record) => {
                let transition = resolution::judge(Some(record), request, held.now);
                judged.push(Judged::new(*at, record, transition, Reply::Resolve).at_real_time());
            }
        }
    }
    Ok(())
}

/// A change judged without a read. An answer that writes nothing is not taken from a hint: only the compare that goes
/// with a write shows that the hint was true.
fn by_hint<'b>(open: Open, owner: &'b Owner, change: &'b Change) -> Option<Judged<'b>> {
    let seen = owner.seen.as_deref().filter(|seen| open.by_hint && seen.id == owner.id)?;
    if !may_be_symbolic(seen, change) {
        return None;
    }
    let transition = change::judge(Some(seen), owner, change, CLOCK);
    transition.write.as_ref()?;
    Some(Judged::new(open.at, seen, transition, Reply::Change))
}

/// What a look at the rows of a batch found.
#[derive(Default)]
pub(super) struct Looked {
    now: LedgerTime,
    /// The tokens of the claims that the statement inserted.
    inserted: HashSet<Uuid>,
    /// The rows that were there, by the heads of their digests.
    pub(super) held: HashMap<Uuid, Held>,
}

pub(super) fn look(rows: &[PgRow]) -> Result<Looked, Setback> {
    let mut looked = Looked::default();
    for row in rows {
        looked.look_at(row).map_err(|error| Setback::of(&error))?;
    }
    Ok(looked)
}

impl Looked {
    fn look_at(&mut self, row: &PgRow) -> Result<(), sqlx::Error> {
        self.now = row.try_get(0)?;
        if let Some(token) = row.try_get(1)? {
            self.inserted.insert(token);
            return Ok(());
        }
        let met: Option<bool> = row.try_get(2)?;
        let (head, tail) = (row.try_get(3)?, row.try_get(4)?);
        let record = decode::effect(EffectRow::read(row, 5)?);
        self.held.insert(head, Held { now: self.now, met: met.unwrap_or(false), tail, record });
        Ok(())
    }
}
