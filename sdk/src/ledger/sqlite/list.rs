//! What a run did and met, a page at a time.

use sqlx::{SqliteConnection, sqlite::SqliteRow};

use super::row::{Columns, needed, unreadable};
use crate::{
    descriptor::Keying,
    identity::{EffectId, InvocationId, NodeId, RunId, Tenant},
    ledger::{
        LedgerError, RunPage, RunRow,
        record::{AttemptVerdict, State},
    },
};

/// Three branches, each by its index on the run: the run's current attempts, its closed ones, and its touches of effects
/// of which it made no attempt. A closed attempt has a verdict in the place of a state.
const OF_RUN: &str = "
    SELECT digest, tenant, node, invocation, attempt, keying, state, verdict, at, provider_key FROM (
        SELECT e.digest, e.tenant, e.node, e.invocation, e.attempt, e.keying, e.state, NULL AS verdict,
            e.started_at AS at, e.provider_key
        FROM effectual_effects AS e WHERE e.run = ?1
        UNION ALL
        SELECT e.digest, e.tenant, a.node, a.invocation, a.attempt, e.keying, NULL, a.verdict, a.started_at,
            e.provider_key
        FROM effectual_attempts AS a CROSS JOIN effectual_effects AS e ON e.digest = a.digest WHERE a.run = ?1
        UNION ALL
        SELECT e.digest, e.tenant, t.node, t.invocation, e.attempt, e.keying, e.state, NULL, t.at, e.provider_key
        FROM effectual_touches AS t CROSS JOIN effectual_effects AS e ON e.digest = t.digest
        WHERE t.run = ?1 AND e.run IS NOT ?1
            AND NOT EXISTS (SELECT 1 FROM effectual_attempts AS a WHERE a.digest = t.digest AND a.run = ?1)
    )
    WHERE (at, attempt, digest) > (?2, ?3, ?4) ORDER BY at, attempt, digest LIMIT ?5";

pub(super) async fn of_run(
    conn: &mut SqliteConnection,
    run: &RunId,
    page: &RunPage,
) -> sqlx::Result<Result<Vec<RunRow>, LedgerError>> {
    let from = page.from();
    let rows = sqlx::query(OF_RUN)
        .bind(run.as_str())
        .bind(from.at)
        .bind(from.attempt)
        .bind(&from.digest[..])
        .bind(page.limit())
        .fetch_all(conn)
        .await?;
    Ok(rows.iter().map(|row| listed(row, run)).collect())
}

fn listed(row: &SqliteRow, run: &RunId) -> Result<RunRow, LedgerError> {
    let mut columns = Columns::new(row);
    let digest = needed(columns.bytes()?)?;
    if columns.parsed("tenant", |text| Tenant::parse(text).ok())?.as_ref() != Some(run.tenant()) {
        return Err(unreadable("its tenant is another than its run's"));
    }
    let node = columns.parsed("node", |text| NodeId::parse(text).ok())?;
    let invocation = columns.parsed("invocation", |text| InvocationId::parse(text).ok())?;
    let attempt = columns.get()?;
    let keying = needed(columns.parsed("keying", Keying::parse)?)?;
    let state = columns.parsed("state", State::parse)?;
    let verdict = columns.parsed("verdict", AttemptVerdict::parse)?;
    Ok(RunRow {
        effect: EffectId::new(run.tenant().clone(), digest),
        node,
        invocation,
        attempt,
        keying,
        state: needed(state.or(verdict.map(AttemptVerdict::closed_state)))?,
        at: columns.get()?,
        provider_key: columns.get()?,
    })
}

#[cfg(test)]
mod tests {
    use sqlx::{Connection, Row};

    use super::*;

    #[tokio::test]
    async fn a_list_reads_only_its_run() {
        let mut conn = SqliteConnection::connect("sqlite::memory:").await.expect("a database");
        let schema = include_str!("../../../migrations/sqlite/0001_effects.sql");
        sqlx::raw_sql(schema).execute(&mut conn).await.expect("the schema");
        let explain = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {OF_RUN}"));
        let steps = sqlx::query(explain).fetch_all(&mut conn).await.expect("a plan");
        let plan: Vec<String> = steps.iter().map(|step| step.get("detail")).collect();
        for index in ["effectual_effects_by_run", "effectual_attempts_by_run"] {
            assert!(plan.iter().any(|step| step.contains(index) && step.contains("(run=?)")), "{plan:?}");
        }
        assert!(plan.iter().any(|step| step.starts_with("SEARCH t USING")), "{plan:?}");
        for table in ["SCAN e", "SCAN a", "SCAN t"] {
            assert!(!plan.iter().any(|step| step.starts_with(table)), "{plan:?}");
        }
    }
}
