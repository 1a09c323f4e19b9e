//! Which columns are written, in which order, and the statements for every size of batch.

use super::sized::Sized;

/// Written with the first claim and never again. The order is that of [`bind_fixed`](super::row::bind_fixed).
const FIXED: &str = "digest, tenant, key_version, operation, keying, readable, provider, provider_key, fingerprints, \
    created_at";

/// Written with the first claim, behind the fixed ones; what a new row has beside them is the same in all, or null. The
/// order is that of [`bind_claim`](super::shape::bind_claim).
const CLAIMED: &str =
    "token, class, run, node, invocation, lease_until, attempt_timeout_ms, input, input_codec";

/// Written with every change. The order is that of [`bind_current`](super::row::bind_current).
const CURRENT: &str = "first_send_at, state, fence, attempt, token, class, run, node, invocation, started_at, \
    lease_until, attempt_timeout_ms, ended_at, verdict, send_digest, key_taken, doubt_attempt, doubt_since, \
    doubt_class, doubt_acts_until, doubt_send_digest, accepted_handle, accepted_poll_after, not_before, outcome_kind, \
    payload, payload_codec, absent_reason, provider_replay, settled_at, retain_until, late_success, \
    double_suspected, revision";

/// What settling a claim changes, beside its state. The order is that of [`bind_settle`](super::shape::bind_settle).
const SETTLED: &str = "lease_until, first_send_at, ended_at, verdict, send_digest, key_taken, outcome_kind, \
    payload, payload_codec, absent_reason, provider_replay, settled_at, retain_until, revision";

/// What a renewal changes. The order is that of [`bind_renewal`](super::shape::bind_renewal).
const RENEWED: &str = "lease_until, revision";

/// What the compare of a compare-and-set looks at, beside the state. The order is that of
/// [`bind_seen`](super::row::bind_seen).
const SEEN: &str = "seen_digest, seen_revision, seen_fence";

/// The same, with a state that is not always the same.
const SEEN_STATE: &str = "seen_digest, seen_revision, seen_fence, seen_state";

/// The compare of a compare-and-set, beside the identity and the state.
const COMPARED: &str = " AND e.revision = v.seen_revision AND e.fence = v.seen_fence AND e.state = ";

/// The columns of an attempt, in the row's order and in the history's.
pub(super) const ATTEMPT: &str = "attempt, fence, token, class, run, node, invocation, started_at, lease_until, \
    attempt_timeout_ms, ended_at, verdict, send_digest, key_taken";

/// The statements of the hot path.
#[derive(Debug)]
pub(super) struct Statements {
    /// (digest, run) → whether the run has met the effect, the digest as asked, and the row, which may be that of the
    /// effect that the digest is a further identity of.
    pub(super) read: Sized,
    /// The columns of a first claim, stored where the digest was absent.
    pub(super) claim: Sized,
    /// Compared and changed columns, stored where the row was still the judged one: of the settle of a claim, of its
    /// renewal, of any change.
    pub(super) settle: Sized,
    pub(super) renew: Sized,
    pub(super) update: Sized,
}

impl Statements {
    pub(super) fn new() -> Self {
        let row = effect_columns("e.");
        let columns = count(FIXED) + count(CLAIMED);
        let values: Vec<_> = (1..=columns).map(|column| format!("column{column}")).collect();
        // When it starts is when it was made.
        let (values, created_at) = (values.join(", "), format!("column{}", count(FIXED)));
        Self {
            read: Sized::new(2, move |values| {
                format!(
                    "WITH asked (digest, run) AS (VALUES {values})
                     SELECT CASE WHEN asked.run IS NULL OR asked.run IS e.run THEN 1 ELSE
                         EXISTS (SELECT 1 FROM effectual_touches t WHERE t.run = asked.run AND t.digest = e.digest)
                         OR EXISTS (SELECT 1 FROM effectual_attempts a
                             WHERE a.digest = e.digest AND a.run = asked.run) END, asked.digest AS asked, {row}
                     FROM asked CROSS JOIN effectual_effects AS x ON x.digest = asked.digest
                     CROSS JOIN effectual_effects AS e ON e.digest = coalesce(x.alias_of, x.digest)"
                )
            }),
            claim: Sized::new(columns, move |rows| {
                format!(
                    "INSERT INTO effectual_effects ({FIXED}, {CLAIMED}, state, fence, attempt, started_at)
                     SELECT {values}, 'claimed', 1, 1, {created_at} FROM (VALUES {rows}) WHERE column1 IS NOT NULL
                     ON CONFLICT (digest) DO NOTHING"
                )
            }),
            settle: update(SEEN, "'claimed'", "state = 'completed', ", SETTLED),
            renew: update(SEEN, "'claimed'", "", RENEWED),
            update: update(SEEN_STATE, "v.seen_state", "", CURRENT),
        }
    }
}

/// Changes `columns`, and what is the `same` for all, in rows that are still the judged ones: those `seen`, in `state`.
fn update(seen: &'static str, state: &str, same: &str, columns: &'static str) -> Sized {
    let set: Vec<_> = names(columns).map(|name| format!("{name} = v.{name}")).collect();
    let set = format!("{same}{}", set.join(", "));
    let compared = if rule!(StoreCompares) { format!("{COMPARED}{state}") } else { String::new() };
    // The `+` keeps the planner from turning a large batch round: from reading the whole table for it.
    Sized::new(count(seen) + count(columns), move |values| {
        format!(
            "WITH v ({seen}, {columns}) AS (VALUES {values})
             UPDATE effectual_effects AS e SET {set} FROM v WHERE e.digest = +v.seen_digest{compared}"
        )
    })
}

/// The columns of [`effect`](super::row::effect), each behind `prefix`.
pub(super) fn effect_columns(prefix: &str) -> String {
    let columns: Vec<_> = std::iter::once("alias_of")
        .chain(names(FIXED))
        .chain(names(CURRENT))
        .map(|name| format!("{prefix}{name}"))
        .collect();
    columns.join(", ")
}

fn names(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.split(',').map(str::trim)
}

fn count(list: &'static str) -> usize {
    names(list).count()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sqlx::{AssertSqlSafe, Connection, Row, SqliteConnection};

    use super::*;
    use crate::ledger::sqlite::sized::{Part, ROWS_MAX};

    /// The plan of a statement, on an empty database with the schema.
    async fn plan(sql: AssertSqlSafe<Arc<str>>) -> Vec<String> {
        let mut conn = SqliteConnection::connect("sqlite::memory:").await.expect("a database");
        for migration in crate::ledger::sqlite::migrate::MIGRATIONS {
            sqlx::raw_sql(migration).execute(&mut conn).await.expect("the schema");
        }
        let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", sql.0));
        let steps = sqlx::query(explain).fetch_all(&mut conn).await.expect("a plan");
        steps.iter().map(|step| step.get("detail")).collect()
    }

    #[tokio::test]
    async fn no_statement_reads_a_whole_table() {
        let Statements { read, claim: _, settle, renew, update } = Statements::new();
        for rows in [1, 64, ROWS_MAX] {
            for sized in [&read, &settle, &renew, &update] {
                let plan = plan(sized.of(rows, Part::default())).await;
                assert!(plan.iter().any(|step| step.starts_with("SEARCH e USING")), "{plan:?}");
                assert!(!plan.iter().any(|step| step.starts_with("SCAN e")), "{plan:?}");
            }
        }
    }
}
