//! One pass over a batch: look, judge, store. Whatever lost a race stays open for the next pass.

use std::collections::HashMap;

use sqlx::{Arguments, Row as _, postgres::PgRow};
use uuid::Uuid;

use super::{
    among,
    connect::Setback,
    decode, encode,
    round::{Held, Judged, Open, Round},
    session::Session,
    sql, sql_usual, store,
    table::{EffectRow, Table},
    time::{CLOCK, may_be_symbolic},
    usual,
};
use crate::{
    identity::RunId,
    ledger::{
        Change, ClaimRequest, Owner, ResolutionRequest, change, claim,
        record::{EffectRecord, LedgerTime},
        resolution,
        writer::{Command, Reply},
    },
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
    let unseen = judge_by_hint(&changes, &mut judged);
    if !claims.is_empty() {
        judge_claims(round, claims, &mut judged, session).await?;
    }
    if !unseen.is_empty() {
        judge_changes(round, unseen, &mut judged, session).await?;
    }
    if !resolutions.is_empty() {
        judge_resolutions(round, &resolutions, &mut judged, session).await?;
    }
    store::store(round, judged, session).await
}

type Claims<'b> = Vec<(usize, &'b ClaimRequest)>;

/// Inserts the claims of effects that are not there, and judges the others by their rows. Where most claims find a row, a look
/// comes first: a hit then writes nothing, and waits for nobody who writes.
async fn judge_claims<'b>(
    round: &mut Round<'b>,
    claims: Claims<'b>,
    judged: &mut Vec<Judged<'b>>,
    session: &mut Session,
) -> Result<(), Setback> {
    if round.looks_first {
        let absent = look_for(round, claims, judged, session).await?;
        if !absent.is_empty() {
            // Whoever is not inserted now lost a race, and is looked for in the next pass.
            usual::insert(round, absent, judged, session).await?;
        }
        return Ok(());
    }
    let there = usual::insert(round, claims, judged, session).await?;
    if !there.is_empty() {
        look_for(round, there, judged, session).await?;
    }
    Ok(())
}

/// Judges claims by the rows that they find; returns those that find none.
async fn look_for<'b>(
    round: &mut Round<'b>,
    claims: Claims<'b>,
    judged: &mut Vec<Judged<'b>>,
    session: &mut Session,
) -> Result<Claims<'b>, Setback> {
    let heads: Vec<_> = claims.iter().map(|(_, request)| encode::head(&request.id)).collect();
    let runs: Vec<_> =
        claims.iter().map(|(_, request)| request.place.run.as_ref().map(RunId::as_str)).collect();
    let answer = session
        .fetch(&sql_usual::LOOK, |arguments| {
            arguments.add(heads)?;
            arguments.add(runs)
        })
        .await?;
    let Looked { held } = look(&answer)?;
    round.claimed(0, held.len());
    let mut absent = Vec::new();
    for (at, request) in claims {
        match held.get(&encode::head(&request.id)) {
            None => absent.push((at, request)),
            Some(held) => match held.as_effect(&request.id) {
                Err(error) => round.answer(at, Err(error)),
                Ok(record) => judged.push(claimed(at, request, held, record)),
            },
        }
    }
    Ok(absent)
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

type Changes<'b> = Vec<(usize, &'b Owner, &'b Change)>;

/// Judges changes by what their owners last saw; returns those where that may not be.
fn judge_by_hint<'b>(changes: &[(Open, &'b Owner, &'b Change)], judged: &mut Vec<Judged<'b>>) -> Changes<'b> {
    let mut unseen = Vec::new();
    for (open, owner, change) in changes {
        match by_hint(*open, owner, change) {
            Some(next) => judged.push(next),
            None => unseen.push((open.at, *owner, *change)),
        }
    }
    unseen
}

/// Judges changes by a fresh read.
async fn judge_changes<'b>(
    round: &mut Round<'b>,
    unseen: Changes<'b>,
    judged: &mut Vec<Judged<'b>>,
    session: &mut Session,
) -> Result<(), Setback> {
    let heads: Vec<_> = unseen.iter().map(|(_, owner, _)| encode::head(&owner.id)).collect();
    let answer = session.fetch(&sql::READ, |arguments| arguments.add(heads)).await?;
    let Looked { held } = look(&answer)?;
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
    let Looked { held } = look(&answer)?;
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
        let (now, met): (LedgerTime, Option<bool>) = (row.try_get(0)?, row.try_get(2)?);
        let (head, tail) = (row.try_get(3)?, row.try_get(4)?);
        let record = decode::effect(EffectRow::read(row, 5)?);
        self.held.insert(head, Held { now, met: met.unwrap_or(false), tail, record });
        Ok(())
    }
}
