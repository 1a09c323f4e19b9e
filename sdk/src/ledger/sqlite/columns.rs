//! Which columns are written, in which order, and the statements for every size of batch.

use std::sync::Arc;

use sqlx::AssertSqlSafe;

/// Written with the first claim and never again. The order is that of [`bind_fixed`](super::row::bind_fixed).
const FIXED: &str = "digest, tenant, key_version, operation, keying, readable, provider, provider_key, fingerprints, \
    created_at";

/// Written with the first claim, and not read with the row. The order is that of
/// [`bind_input`](super::row::bind_input).
const GIVEN: &str = "input, input_codec";

/// Written with every change. The order is that of [`bind_current`](super::row::bind_current).
const CURRENT: &str = "first_send_at, state, fence, attempt, token, class, run, node, invocation, started_at, \
    lease_until, attempt_timeout_ms, ended_at, verdict, send_digest, key_taken, doubt_attempt, doubt_since, \
    doubt_class, doubt_acts_until, doubt_send_digest, accepted_handle, accepted_poll_after, not_before, outcome_kind, \
    payload, payload_codec, absent_reason, provider_replay, settled_at, retain_until, late_success, \
    double_suspected, revision";

/// What the compare of a compare-and-set looks at. The order is that of [`bind_seen`](super::row::bind_seen).
const SEEN: &str = "seen_digest, seen_revision, seen_state, seen_fence";

/// The compare of a compare-and-set, beside the identity.
const COMPARED: &str =
    " AND e.revision = v.seen_revision AND e.state = v.seen_state AND e.fence = v.seen_fence";

/// The columns of an attempt, in the row's order and in the history's.
pub(super) const ATTEMPT: &str = "attempt, fence, token, class, run, node, invocation, started_at, lease_until, \
    attempt_timeout_ms, ended_at, verdict, send_digest, key_taken";

/// Statements come in powers of two up to the writer's largest batch; what a batch leaves unbound is null, and a null
/// digest is nobody's.
const SIZES: usize = 9;

/// The most rows of one statement.
pub(super) const ROWS_MAX: usize = 1 << (SIZES - 1);

/// A statement for every size, written once so that the connection finds it prepared.
#[derive(Debug)]
pub(super) struct Sized([Arc<str>; SIZES]);

impl Sized {
    fn new(columns: usize, text: impl Fn(&str) -> String) -> Self {
        let row = format!("({})", vec!["?"; columns].join(", "));
        Self(std::array::from_fn(|power| text(&vec![row.as_str(); 1 << power].join(", ")).into()))
    }

    /// The smallest statement that takes `rows`, from 1 to [`ROWS_MAX`].
    pub(super) fn of(&self, rows: usize) -> AssertSqlSafe<Arc<str>> {
        let power = rows.max(1).next_power_of_two().trailing_zeros() as usize;
        AssertSqlSafe(Arc::clone(&self.0[power.min(SIZES - 1)]))
    }
}

/// The statements of the hot path.
#[derive(Debug)]
pub(super) struct Statements {
    /// (digest, run) → whether the run has met the effect, the digest as asked, and the row, which may be that of the
    /// effect that the digest is a further identity of.
    pub(super) read: Sized,
    /// Fixed and current columns → digest, where it was absent.
    pub(super) insert: Sized,
    /// Compared and current columns → digest, where the row was still the judged one.
    pub(super) update: Sized,
}

impl Statements {
    pub(super) fn new() -> Self {
        let (fixed, given, current, seen) = (count(FIXED), count(GIVEN), count(CURRENT), count(SEEN));
        let row = effect_columns("e.");
        let set: Vec<_> = names(CURRENT).map(|name| format!("{name} = v.{name}")).collect();
        let set = set.join(", ");
        let compared = if rule!(StoreCompares) { COMPARED } else { "" };
        Self {
            read: Sized::new(2, |values| {
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
            insert: Sized::new(fixed + given + current, |values| {
                format!(
                    "INSERT INTO effectual_effects ({FIXED}, {GIVEN}, {CURRENT})
                     SELECT * FROM (VALUES {values}) WHERE column1 IS NOT NULL
                     ON CONFLICT (digest) DO NOTHING RETURNING digest"
                )
            }),
            // The `+` keeps the planner from turning a large batch round: from reading the whole table for it.
            update: Sized::new(seen + current, |values| {
                format!(
                    "WITH v ({SEEN}, {CURRENT}) AS (VALUES {values})
                     UPDATE effectual_effects AS e SET {set} FROM v
                     WHERE e.digest = +v.seen_digest{compared}
                     RETURNING digest"
                )
            }),
        }
    }
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
    use sqlx::{Connection, Row, SqliteConnection};

    use super::*;

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
        let statements = Statements::new();
        for rows in [1, 64, ROWS_MAX] {
            for sql in [statements.read.of(rows), statements.update.of(rows)] {
                let plan = plan(sql).await;
                assert!(plan.iter().any(|step| step.starts_with("SEARCH e USING")), "{plan:?}");
                assert!(!plan.iter().any(|step| step.starts_with("SCAN e")), "{plan:?}");
            }
        }
    }

    #[test]
    fn a_statement_takes_what_it_is_asked_for_and_little_more() {
        let sized = Sized::new(1, str::to_owned);
        let places = |rows| sized.of(rows).0.matches('?').count();
        assert_eq!([1, 2, 3, 64, 65, ROWS_MAX].map(places), [1, 2, 4, 64, 128, ROWS_MAX]);
    }
}
