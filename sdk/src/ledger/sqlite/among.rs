//! A claim that has earlier identities: looked for under all of them, in one transaction of its own.

use sqlx::SqliteConnection;

use super::{
    columns::Statements,
    judging::{self, Found},
    writing::{self, Judged, Transaction},
};
use crate::{
    identity::EffectId,
    ledger::{
        Claim, ClaimRequest, LedgerError,
        identities::{Further, Named, Resolved, resolve},
        record::LedgerTime,
        writer::Reply,
    },
};

/// Judges and stores within the open transaction; whether anything was written.
pub(super) async fn claim(
    conn: &mut SqliteConnection,
    statements: &Statements,
    request: &ClaimRequest,
    now: LedgerTime,
) -> sqlx::Result<(Result<Reply, LedgerError>, bool)> {
    let found = match read(conn, statements, request).await? {
        Ok(found) => found,
        Err(error) => return Ok((Err(error), false)),
    };
    let named = |found: &(Option<Found>, Vec<u32>)| {
        let (row, versions) = found;
        row.as_ref().map(|row| Named { holder: row.record.clone(), versions: versions.clone() })
    };
    let further = found[1..].iter().map(named).collect();
    let (holder, aliases) = match resolve(request, named(&found[0]), further) {
        Resolved::Row { holder, aliases } => (holder, aliases),
        Resolved::Ambiguous => return Ok((Ok(Reply::Claim(Claim::SchemaAmbiguous)), false)),
    };
    let of = holder.as_ref().map_or(&request.id, |holder| &holder.id);
    let row = found.iter().filter_map(|(row, _)| row.as_ref()).find(|row| row.record.id == *of);
    let judged = judging::claimed(request, row, now);
    let writes = judged.writes() || !aliases.is_empty();
    store(conn, statements, of, &judged, &aliases).await?;
    Ok((judged.reply, writes))
}

/// What the call's own and its earlier identities name, in that order, with the versions of each holder's identities.
async fn read(
    conn: &mut SqliteConnection,
    statements: &Statements,
    request: &ClaimRequest,
) -> sqlx::Result<Result<Vec<(Option<Found>, Vec<u32>)>, LedgerError>> {
    let mut all = Vec::with_capacity(1 + request.identities.further.len());
    let earlier = request.identities.further.iter().map(|further| &further.id);
    for id in std::iter::once(&request.id).chain(earlier) {
        let row = match judging::find(conn, statements, id, request.place.run.as_ref()).await?.transpose() {
            Ok(row) => row,
            Err(error) => return Ok(Err(error)),
        };
        let versions = match &row {
            Some(row) => versions(conn, &row.record.id).await?,
            None => Vec::new(),
        };
        all.push((row, versions));
    }
    Ok(Ok(all))
}

async fn versions(conn: &mut SqliteConnection, holder: &EffectId) -> sqlx::Result<Vec<u32>> {
    let sql = "SELECT key_version FROM effectual_effects WHERE digest = ?1
        UNION SELECT key_version FROM effectual_effects WHERE alias_of = ?1";
    sqlx::query_scalar(sql).bind(&holder.digest()[..]).fetch_all(conn).await
}

async fn store(
    conn: &mut SqliteConnection,
    statements: &Statements,
    holder: &EffectId,
    judged: &Judged,
    aliases: &[Further],
) -> sqlx::Result<()> {
    let judged = std::slice::from_ref(judged);
    if !writing::store(conn, statements, judged, Transaction::Callers).await?.is_empty() {
        return Err(sqlx::Error::Protocol("a row changed under the write lock".to_owned()));
    }
    for alias in aliases {
        sqlx::query(
            "INSERT INTO effectual_effects (digest, tenant, alias_of, key_version) VALUES (?, ?, ?, ?)",
        )
        .bind(&alias.id.digest()[..])
        .bind(alias.id.tenant().as_str())
        .bind(&holder.digest()[..])
        .bind(alias.key_version)
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}
