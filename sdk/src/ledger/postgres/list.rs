//! What a run did and met, a page at a time.

use sqlx::{Row as _, postgres::PgRow};
use uuid::Uuid;

use super::{
    connect::{Link, Setback},
    reader::patiently,
    session::{Session, View},
    text::unescaped,
};
use crate::{
    descriptor::Keying,
    identity::{EffectId, InvocationId, NodeId, RunId},
    ledger::{
        LedgerError, LedgerErrorKind, RunPage, RunRow,
        record::{AttemptVerdict, State},
    },
};

/// What a run did and met: three branches, each by its index on the run. `$1` is the run, `$2` to `$5` the row before the
/// first, `$6` how many. A closed attempt has a verdict in the place of a state.
const OF_RUN: &str = "
    SELECT listed.* FROM (
        SELECT e.digest_head, e.digest_tail, e.tenant, e.node, e.invocation, e.attempt::bigint AS attempt, e.keying,
            e.state::text AS state, NULL::text AS verdict, e.started_at AS at, e.provider_key
        FROM effectual_effects e WHERE e.run = $1::text
        UNION ALL
        SELECT e.digest_head, e.digest_tail, e.tenant, a.node, a.invocation, a.attempt::bigint, e.keying, NULL,
            a.verdict::text, a.started_at, e.provider_key
        FROM effectual_attempts a JOIN effectual_effects e ON e.digest_head = a.digest_head WHERE a.run = $1::text
        UNION ALL
        SELECT e.digest_head, e.digest_tail, e.tenant, t.node, t.invocation, e.attempt::bigint, e.keying,
            e.state::text, NULL, t.at, e.provider_key
        FROM effectual_touches t JOIN effectual_effects e ON e.digest_head = t.digest_head
        WHERE t.run = $1::text AND e.run IS DISTINCT FROM $1::text AND NOT EXISTS (
            SELECT FROM effectual_attempts a WHERE a.digest_head = t.digest_head AND a.run = $1::text)
    ) listed
    WHERE (at, attempt, digest_head, digest_tail) > ($2::bigint, $3::bigint, $4::uuid, $5::bytea)
    ORDER BY at, attempt, digest_head, digest_tail LIMIT $6::bigint";

pub(super) async fn read_page(
    link: &mut Link,
    run: &RunId,
    page: RunPage,
) -> Result<Vec<RunRow>, LedgerError> {
    let rows = patiently(link, |session| Box::pin(rows(session, run.clone(), page))).await?;
    listed_all(&rows, run)
}

async fn rows(session: &mut Session, run: RunId, page: RunPage) -> Result<Vec<PgRow>, Setback> {
    let failed = |error: sqlx::Error| Setback::of(&error);
    let is_named = session.keeps_statements();
    let from = page.from();
    let (head, tail) = from.digest.split_at(16);
    let mut transaction = session.begin(View::Snapshot).await?;
    let asked = sqlx::query(OF_RUN)
        .bind(run.as_str())
        .bind(from.at)
        .bind(i64::from(from.attempt))
        .bind(Uuid::from_slice(head).unwrap_or_default())
        .bind(tail)
        .bind(page.limit())
        .persistent(is_named);
    let rows = asked.fetch_all(&mut *transaction).await.map_err(failed)?;
    transaction.commit().await.map_err(failed)?;
    Ok(rows)
}

fn listed_all(rows: &[PgRow], run: &RunId) -> Result<Vec<RunRow>, LedgerError> {
    rows.iter()
        .map(|row| {
            listed(row, run).ok_or_else(|| {
                let context = format!("run {run}: a row of its list cannot be read");
                LedgerError::new(LedgerErrorKind::Corrupt, context)
            })
        })
        .collect()
}

/// `None` for what the schema does not allow to be stored.
fn listed(row: &PgRow, run: &RunId) -> Option<RunRow> {
    let mut digest = [0; 32];
    digest[..16].copy_from_slice(row.try_get::<Uuid, _>("digest_head").ok()?.as_bytes());
    digest[16..]
        .copy_from_slice(row.try_get::<&[u8], _>("digest_tail").ok().filter(|tail| tail.len() == 16)?);
    let text = |column| row.try_get::<Option<&str>, _>(column).ok();
    if text("tenant")? != Some(run.tenant().as_str()) {
        return None;
    }
    let closed = || AttemptVerdict::parse(text("verdict")??).map(AttemptVerdict::closed_state);
    Some(RunRow {
        effect: EffectId::new(run.tenant().clone(), digest),
        node: parsed(text("node")?, |text| NodeId::parse(text).ok())?,
        invocation: parsed(text("invocation")?, |text| InvocationId::parse(text).ok())?,
        attempt: u32::try_from(row.try_get::<i64, _>("attempt").ok()?).ok()?,
        keying: Keying::parse(text("keying")??)?,
        state: text("state")?.map_or_else(closed, State::parse)?,
        at: row.try_get("at").ok()?,
        provider_key: unescaped(text("provider_key")??)?,
    })
}

/// `None` where there is a text and it cannot be read.
fn parsed<T>(text: Option<&str>, parse: fn(&str) -> Option<T>) -> Option<Option<T>> {
    match text {
        None => Some(None),
        Some(text) => parse(text).map(Some),
    }
}
