//! Effects without an outcome, page by page, and the arguments that are stored with an effect.

use sqlx::{AssertSqlSafe, Row as _, SqliteConnection};
use std::sync::Arc;

use super::{
    columns::effect_columns,
    row::{self, Columns},
};
use crate::{
    identity::EffectId,
    ledger::{
        LedgerError, Payload, Unsettled, UnsettledCursor, UnsettledPage, UnsettledQuery,
        record::LedgerTime,
        unsettled::sql::{NOT_BEFORE, RECOVERABLE, WAITING},
    },
};

/// The texts of the pages. Each row: when it is due, whether it has its arguments, the digest, and the row.
pub(super) struct Statements {
    recoverable: Arc<str>,
    all: Arc<str>,
}

impl Statements {
    pub(super) fn new() -> Self {
        Self {
            recoverable: format!("{} ORDER BY created_at, digest LIMIT ?3", looked(RECOVERABLE)).into(),
            // Each half is in order by its index; of both together the oldest are taken.
            all: format!(
                "SELECT * FROM (SELECT * FROM ({} ORDER BY created_at, digest LIMIT ?3)
                     UNION ALL SELECT * FROM ({} ORDER BY created_at, digest LIMIT ?3))
                 ORDER BY created_at, digest LIMIT ?3",
                looked(RECOVERABLE),
                looked(WAITING)
            )
            .into(),
        }
    }
}

fn looked(which: &str) -> String {
    let columns = effect_columns("");
    format!(
        "SELECT max(lease_until, {NOT_BEFORE}) AS due_at, input IS NOT NULL AS has_input, {columns}
         FROM effectual_effects WHERE {which} AND (created_at, digest) > (?1, ?2)"
    )
}

pub(super) async fn page(
    conn: &mut SqliteConnection,
    statements: &Statements,
    query: &UnsettledQuery,
    now: LedgerTime,
) -> sqlx::Result<Result<UnsettledPage, LedgerError>> {
    let statement = if query.due_only { &statements.recoverable } else { &statements.all };
    let after = query.after.unwrap_or(UnsettledCursor::START);
    let limit = query.limit.max(1);
    // One more says whether there is more.
    let rows = sqlx::query(AssertSqlSafe(Arc::clone(statement)))
        .bind(after.created_at)
        .bind(&after.digest[..])
        .bind(i64::from(limit) + 1)
        .fetch_all(conn)
        .await?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = rows.len() > limit;
    let mut page = UnsettledPage { effects: Vec::new(), next: None, now };
    for (number, row) in (1..).zip(rows.iter().take(limit)) {
        let (due_at, has_input): (LedgerTime, bool) = (row.try_get(0)?, row.try_get(1)?);
        let is_last = more && number == limit;
        if query.due_only && due_at > now && !is_last {
            continue;
        }
        let effect = match row::effect(&mut Columns::behind(row, 2)) {
            Ok(effect) => effect,
            Err(error) => return Ok(Err(error)),
        };
        if is_last {
            page.next = Some(UnsettledCursor::of(&effect));
        }
        if !query.due_only || due_at <= now {
            page.effects.push(Unsettled { effect, has_input });
        }
    }
    Ok(Ok(page))
}

/// The arguments of the effect that an identity names.
pub(super) async fn input(
    conn: &mut SqliteConnection,
    id: &EffectId,
) -> sqlx::Result<Result<Option<Payload>, LedgerError>> {
    let row = sqlx::query(
        "SELECT input, input_codec FROM effectual_effects
         WHERE digest = (SELECT coalesce(alias_of, digest) FROM effectual_effects WHERE digest = ?)",
    )
    .bind(&id.digest()[..])
    .fetch_optional(conn)
    .await?;
    Ok(row.map_or(Ok(None), |row| row::payload(&mut Columns::new(&row))))
}

#[cfg(test)]
mod tests {
    use sqlx::Connection;

    use super::*;

    #[tokio::test]
    async fn a_page_is_found_by_an_index_and_needs_no_sorting_of_the_table() {
        let mut conn = SqliteConnection::connect("sqlite::memory:").await.expect("a database");
        for schema in crate::ledger::sqlite::migrate::MIGRATIONS {
            sqlx::raw_sql(schema).execute(&mut conn).await.expect("the schema");
        }
        let statements = Statements::new();
        for (statement, indexes) in [
            (&statements.recoverable, &["effectual_effects_recoverable"][..]),
            (&statements.all, &["effectual_effects_recoverable", "effectual_effects_waiting"]),
        ] {
            let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"));
            let steps = sqlx::query(explain).fetch_all(&mut conn).await.expect("a plan");
            let steps: Vec<String> = steps.iter().map(|step| step.get("detail")).collect();
            for index in indexes {
                let search = format!("SEARCH effectual_effects USING INDEX {index}");
                assert!(steps.iter().any(|step| step.starts_with(&search)), "{steps:?}");
            }
            assert!(!steps.iter().any(|step| step.starts_with("SCAN effectual_effects")), "{steps:?}");
        }
    }
}
