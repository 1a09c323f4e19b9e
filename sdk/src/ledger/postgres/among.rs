//! A claim that has earlier identities: looked for under all of them.
//!
//! The effect's row and its aliases are inserted by one statement, which fails as a whole where one of them is taken: then
//! the next pass finds what is there.

use sqlx::{Arguments, Row as _, error::BoxDynError, postgres::PgArguments};

use super::{
    connect::Setback,
    encode,
    error::Trouble,
    pass::{claimed, look},
    round::{Judged, Round, record_in},
    rows_usual::{self, ClaimRow},
    session::Session,
    sql, sql_usual,
    table::{Shape, Table},
    text::escaped,
    time::{CLOCK, resolve},
};
use crate::{
    identity::EffectId,
    ledger::{
        Claim, ClaimRequest, LedgerError, claim,
        identities::{Further, Named, Resolved, resolve as resolve_identities},
        writer::Reply,
    },
};

/// Answers or judges the claim, or leaves it open for the next pass.
pub(super) async fn judge<'b>(
    round: &mut Round<'b>,
    at: usize,
    request: &'b ClaimRequest,
    judged: &mut Vec<Judged<'b>>,
    session: &mut Session,
) -> Result<(), Setback> {
    let earlier = request.identities.further.iter().map(|further| &further.id);
    let ids: Vec<_> = std::iter::once(&request.id).chain(earlier).collect();
    let heads: Vec<_> = ids.iter().map(|id| encode::head(id)).collect();
    let answer = session.fetch(&sql::READ, |arguments| arguments.add(heads)).await?;
    let found = look(&answer)?.held;
    let mut named = Vec::with_capacity(ids.len());
    for id in ids {
        let holder = match found.get(&encode::head(id)).map(|held| held.as_effect(id)).transpose() {
            Ok(holder) => holder,
            Err(error) => {
                round.answer(at, Err(error));
                return Ok(());
            }
        };
        named.push(match holder {
            Some(holder) => {
                Some(Named { holder: holder.clone(), versions: versions(session, &holder.id).await? })
            }
            None => None,
        });
    }
    let further = named.split_off(1);
    match resolve_identities(request, named.pop().flatten(), further) {
        Resolved::Ambiguous => round.answer(at, Ok(Reply::Claim(Claim::SchemaAmbiguous))),
        Resolved::Row { holder: None, aliases } => {
            if let Some(answer) = first_claim(request, &aliases, session).await? {
                round.answer(at, answer);
            }
        }
        // The next pass finds the effect under our own identity.
        Resolved::Row { holder: Some(holder), aliases } if !aliases.is_empty() => {
            let add = |arguments: &mut PgArguments| add_aliases(arguments, &holder.id, &aliases);
            session.fetch(&sql::ALIAS, add).await?;
        }
        Resolved::Row { holder: Some(holder), .. } => {
            if let Some(held) = found.get(&encode::head(&request.id)) {
                judged.push(claimed(at, request, held, &holder));
            }
        }
    }
    Ok(())
}

async fn versions(session: &mut Session, holder: &EffectId) -> Result<Vec<u32>, Setback> {
    let answer = session
        .fetch(&sql::VERSIONS, |arguments| {
            arguments.add(&holder.digest()[..])?;
            arguments.add(encode::head(holder))
        })
        .await?;
    let version = |row: &sqlx::postgres::PgRow| row.try_get::<i64, _>(0);
    let versions: Result<Vec<_>, _> = answer.iter().map(version).collect();
    let versions = versions.map_err(|error| Setback::of(&error))?;
    Ok(versions.into_iter().filter_map(|version| u32::try_from(version).ok()).collect())
}

/// Claims an effect that none of the identities names; `None` if one of them was taken in the meantime.
async fn first_claim(
    request: &ClaimRequest,
    aliases: &[Further],
    session: &mut Session,
) -> Result<Option<Result<Reply, LedgerError>>, Setback> {
    let first = claim::judge(None, request, CLOCK);
    let mut rows: Vec<_> = first.write.iter().map(rows_usual::claim).collect();
    let answer = session
        .fetch(&sql_usual::CLAIM_AMONG, |arguments| {
            ClaimRow::add_to(&mut rows, Shape::One, sql_usual::of_claim, arguments)?;
            add_aliases(arguments, &request.id, aliases)
        })
        .await;
    let answer = match answer {
        Err(setback) if setback.trouble == Trouble::Taken => return Ok(None),
        answer => answer?,
    };
    let Some(row) = answer.first() else { return Ok(None) };
    let now = row.try_get(0).map_err(|error| Setback::of(&error))?;
    let mut reply = Reply::Claim(first.reply);
    record_in(&mut reply).into_iter().for_each(|record| resolve(record, now));
    Ok(Some(Ok(reply)))
}

fn add_aliases(arguments: &mut PgArguments, of: &EffectId, aliases: &[Further]) -> Result<(), BoxDynError> {
    let ids = || aliases.iter().map(|alias| &alias.id);
    arguments.add(&of.digest()[..])?;
    arguments.add(ids().map(encode::head).collect::<Vec<_>>())?;
    arguments.add(ids().map(|id| encode::halves(id).1.to_vec()).collect::<Vec<_>>())?;
    arguments.add(ids().map(|id| escaped(id.tenant().as_str()).into_owned()).collect::<Vec<_>>())?;
    arguments.add(aliases.iter().map(|alias| i64::from(alias.key_version)).collect::<Vec<_>>())
}
