//! The statements. The first parameter of each is the clock's offset.

use std::sync::LazyLock;

use crate::ledger::postgres::{sql::clock, time::NOW};

/// The statements over one table.
pub(super) struct Statements {
    pub(super) read: String,
    pub(super) insert: String,
    pub(super) update: String,
    pub(super) delete: String,
    pub(super) sweep: String,
}

/// Over the table where the search path leads.
pub(super) static PLAIN: LazyLock<Statements> = LazyLock::new(|| Statements::of("effectual_requests"));

/// What every write sets, in this order, with its type.
const SET: [(&str, &str); 15] = [
    ("fingerprint", "bytea"),
    ("principal", "bytea"),
    ("state", "text"),
    ("fence", "bigint"),
    ("token", "uuid"),
    ("ran_before", "boolean"),
    ("started_at", "bigint"),
    ("lease_until", "bigint"),
    ("ended_at", "bigint"),
    ("retain_until", "bigint"),
    ("status", "integer"),
    ("headers", "bytea"),
    ("body", "bytea"),
    ("absent_reason", "text"),
    ("revision", "bigint"),
];

/// What only an insert sets.
const FIXED: [(&str, &str); 3] = [("tenant", "text"), ("endpoint", "text"), ("digest", "bytea")];

/// What must still hold of the row that was judged, behind the parameters up to `last`.
fn seen(last: usize) -> String {
    let of = |at: usize| last + at;
    format!(
        "r.digest = ${}::bytea AND r.revision = ${}::bigint AND r.state = ${}::text AND r.fence = ${}::bigint \
         AND clock.durable <> ''",
        of(1),
        of(2),
        of(3),
        of(4)
    )
}

fn joined<'a>(
    columns: impl Iterator<Item = &'a (&'a str, &'a str)>,
    of: impl Fn(usize, &str, &str) -> String,
) -> String {
    // The offset is the first parameter.
    let parts: Vec<_> = columns.enumerate().map(|(at, (name, kind))| of(at + 2, name, kind)).collect();
    parts.join(", ")
}

impl Statements {
    pub(super) fn of(table: &str) -> Self {
        let clock = clock();
        let all = || SET.iter().chain(&FIXED);
        let names = joined(all(), |_, name, _| name.to_owned());
        let values = joined(all(), |at, _, kind| format!("${at}::{kind}"));
        let sets = joined(SET.iter(), |at, name, kind| format!("{name} = ${at}::{kind}"));
        let columns = joined(all(), |_, name, _| format!("r.{name}"));
        Self {
            read: format!(
                "SELECT {NOW} + $1::bigint, {columns} FROM (VALUES (0)) AS one LEFT JOIN {table} AS r \
                 ON r.digest = $2::bytea"
            ),
            insert: format!(
                "{clock} INSERT INTO {table} ({names}) SELECT {values} FROM clock WHERE clock.durable <> '' \
                 ON CONFLICT (digest) DO NOTHING RETURNING 1"
            ),
            update: format!(
                "{clock} UPDATE {table} AS r SET {sets} FROM clock WHERE {} RETURNING 1",
                seen(1 + SET.len())
            ),
            delete: format!("{clock} DELETE FROM {table} AS r USING clock WHERE {} RETURNING 1", seen(1)),
            sweep: format!(
                "{clock}, over AS (SELECT r.digest FROM {table} AS r, clock \
                 WHERE r.retain_until <= clock.ms AND coalesce(r.lease_until, 0) <= clock.ms AND clock.durable <> '' \
                 ORDER BY r.retain_until LIMIT $2::bigint FOR UPDATE OF r SKIP LOCKED), \
                 gone AS (DELETE FROM {table} AS r USING over WHERE r.digest = over.digest RETURNING 1) \
                 SELECT count(*) FROM gone"
            ),
        }
    }

    /// Over the table in a schema whose name needs no quotes.
    pub(super) fn within(schema: Option<&str>) -> Self {
        schema.map_or_else(
            || Self::of("effectual_requests"),
            |schema| Self::of(&format!("{schema}.effectual_requests")),
        )
    }
}
