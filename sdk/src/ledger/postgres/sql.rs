//! The statements. Each is one text for the whole process, so that every connection prepares it once.
//!
//! `$1` is always the offset of the clock (0 outside tests), and the relation `clock` the time of the statement, taken
//! once. Reading `clock` also pins the durable commit of what the statement writes: whatever the database, the role or
//! the pooler set, a claim that a power cut can lose is an effect performed twice.

use std::sync::LazyLock;

use super::{
    table::{AttemptRow, AuditRow, Column, EffectRow, EvidenceRow, Role, Shape, Table, TouchRow},
    time::{NOW, resolved_sql},
};
use crate::ledger::unsettled::sql::{NOT_BEFORE, RECOVERABLE, WAITING};

/// Reads rows: the time, null, null, the head as asked, the tail that is stored with it, and the columns of
/// [`EffectRow`]: of the row itself, or of the effect that it is an alias of. `$2` holds the heads.
pub(super) static READ: LazyLock<String> = LazyLock::new(read);
/// Writes rows by compare-and-set; returns the time and the slot of each row that was still the judged one.
pub(super) static STORE_ONE: LazyLock<String> = LazyLock::new(|| store(Shape::One, false));
/// [`STORE_ONE`] for any number of rows.
pub(super) static STORE_MANY: LazyLock<String> = LazyLock::new(|| store(Shape::Many, false));
/// [`STORE_MANY`], and with each row that was still the judged one its closed attempt, touch, evidence and audit.
pub(super) static STORE_WITH_MORE: LazyLock<String> = LazyLock::new(|| store(Shape::Many, true));
/// Makes identities aliases of an effect, where they are free; returns the heads of those that were.
pub(super) static ALIAS: LazyLock<String> = LazyLock::new(alias);
/// The key-schema versions of an effect's identities. `$2` is the effect's digest, `$3` its head.
pub(super) static VERSIONS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{clock} SELECT DISTINCT key_version FROM clock CROSS JOIN (
            SELECT key_version FROM effectual_effects WHERE digest_head = $3::uuid
            UNION ALL SELECT key_version FROM effectual_effects WHERE alias_of = $2::bytea
        ) known",
        clock = clock()
    )
});
/// A page of effects without an outcome, behind the first claim at `$2` of the digest that begins with `$3`: at the most
/// `$4` are looked at. One row an effect, and one row where there is none: the time, how many were looked at, time and
/// digest of the last of them, whether its arguments are stored, and the columns of [`EffectRow`].
pub(super) static UNSETTLED: LazyLock<String> = LazyLock::new(|| {
    let halves = [RECOVERABLE, WAITING].map(|which| format!("SELECT * FROM ({}) AS half", looked(which)));
    unsettled(&format!("SELECT * FROM ({}) AS either {OLDEST}", halves.join(" UNION ALL ")), "true")
});
/// [`UNSETTLED`], of those that a recovery moves on; those that are due are given.
pub(super) static UNSETTLED_DUE: LazyLock<String> =
    LazyLock::new(|| unsettled(&looked(RECOVERABLE), "looked.due_at <= clock.ms"));
/// The arguments that are stored with an effect: the time, the bytes and their codec. `$2` holds the heads.
pub(super) static INPUT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{clock} SELECT clock.ms, held.input, held.input_codec
        FROM effectual_effects x JOIN effectual_effects held ON held.digest_head = {HOLDER} CROSS JOIN clock
        WHERE x.digest_head = ANY ($2::uuid[])",
        clock = clock()
    )
});
/// Keeps touches of effects that are not written.
pub(super) static TOUCH: LazyLock<String> = LazyLock::new(touch);
/// The closed attempts of an effect, oldest first.
pub(super) static ATTEMPTS: LazyLock<String> =
    LazyLock::new(|| history("effectual_attempts", AttemptRow::COLUMNS, "attempt"));
/// The evidence of an effect, oldest first.
pub(super) static EVIDENCE: LazyLock<String> =
    LazyLock::new(|| history("effectual_evidence", EvidenceRow::COLUMNS, "seq"));

/// What operators did to an effect, oldest first.
pub(super) static AUDIT: LazyLock<String> =
    LazyLock::new(|| history("effectual_audit", AuditRow::COLUMNS, "seq"));
/// Makes tombstones of at most `$2` effects that are past their retention and whose payloads have at most `$3` bytes beyond the
/// first one's; returns the head of each, and a null for each that was too much.
pub(super) static FORGET_DUE: LazyLock<String> = LazyLock::new(forget_due);
/// Locks at most `$2` tombstones whose retention ended more than `$3` milliseconds ago; returns their heads and digests.
pub(super) static LOCK_TOMBSTONES: LazyLock<String> = LazyLock::new(lock_tombstones);
/// Locks the effect that the identity `$1` names: its head, the tail of the identity, tenant, state, reason of absence.
pub(super) static LOCK_ONE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT held.digest_head, x.digest_tail, held.tenant::text, held.state::text, held.absent_reason::text
        FROM effectual_effects x JOIN effectual_effects held ON held.digest_head = {HOLDER}
        WHERE x.digest_head = $1::uuid FOR NO KEY UPDATE OF held"
    )
});
/// Makes a tombstone of the effect `$2`, and writes down that `$3` did so because of `$4`; where it
/// stands is the same before and after.
pub(super) static FORGET_ONE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{clock}, forgotten AS (UPDATE effectual_effects SET {FORGET} WHERE digest_head = $2::uuid)
        INSERT INTO effectual_audit (digest_head, at, who, why, action, before, after)
        SELECT digest_head, clock.ms, $3::text, $4::text, 'forgotten', standing, standing FROM clock,
            (SELECT digest_head, json_build_object('state', state, 'attempt', attempt, 'fence', fence,
                'outcome', outcome_kind, 'accepted', accepted_handle IS NOT NULL, 'late_success', late_success)::text
                AS standing FROM effectual_effects WHERE digest_head = $2::uuid) AS stood",
        clock = clock(),
    )
});
/// Drops the payloads of the effects' evidence. `$1` holds the heads.
pub(super) const DROP_EVIDENCE: &str = "UPDATE effectual_evidence SET payload = NULL, payload_codec = NULL \
    WHERE digest_head = ANY ($1::uuid[]) AND payload IS NOT NULL";
/// Removes the further identities of the effects whose digests `$1` holds.
pub(super) const REMOVE_ALIASES: &str = "DELETE FROM effectual_effects WHERE alias_of = ANY ($1::bytea[])";
/// Removes the effects whose heads `$1` holds, what refers to them first.
pub(super) const REMOVE: [&str; 5] = [
    "DELETE FROM effectual_attempts WHERE digest_head = ANY ($1::uuid[])",
    "DELETE FROM effectual_touches WHERE digest_head = ANY ($1::uuid[])",
    "DELETE FROM effectual_evidence WHERE digest_head = ANY ($1::uuid[])",
    "DELETE FROM effectual_audit WHERE digest_head = ANY ($1::uuid[])",
    "DELETE FROM effectual_effects WHERE digest_head = ANY ($1::uuid[])",
];

/// What makes a tombstone of a row.
const FORGET: &str = "payload = NULL, payload_codec = NULL, absent_reason = 'expired', input = NULL, input_codec = NULL, \
    readable = NULL, revision = revision + 1";

/// The columns of a change, with what finds and compares the row.
pub(super) fn of_change(role: Role) -> bool {
    is_changed(role) || matches!(role, Role::Guard | Role::Key)
}

/// The columns of a row that is only ever inserted, with what ties it to the row it belongs to.
pub(super) fn of_more(role: Role) -> bool {
    is_inserted(role) || role == Role::Guard
}

fn is_changed(role: Role) -> bool {
    matches!(role, Role::Kept | Role::Later)
}

fn is_inserted(role: Role) -> bool {
    matches!(role, Role::Key | Role::Fixed)
}

/// The columns that are read with a row.
pub(super) fn in_row(role: Role) -> bool {
    role != Role::Guard
}

/// `value` of each column that is kept, separated by commas.
pub(super) fn list(
    columns: &[Column],
    keep: fn(Role) -> bool,
    value: impl FnMut(&Column) -> String,
) -> String {
    let kept: Vec<_> = columns.iter().filter(|column| keep(column.role)).map(value).collect();
    kept.join(", ")
}

pub(super) fn names(columns: &[Column], keep: fn(Role) -> bool) -> String {
    list(columns, keep, |column| column.name.to_owned())
}

/// The values of the relation `from`, with the clock in the place of symbolic times.
pub(super) fn values(columns: &[Column], keep: fn(Role) -> bool, from: &str) -> String {
    list(columns, keep, |column| value(column, from))
}

pub(super) fn value(column: &Column, from: &str) -> String {
    let value = format!("{from}.{}", column.name);
    if column.is_time { resolved_sql(&value) } else { value }
}

pub(super) fn clock() -> String {
    const DURABLE: &str = "set_config('synchronous_commit', CASE current_setting('synchronous_commit') \
         WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)";
    format!("WITH clock AS MATERIALIZED (SELECT {NOW} + $1::bigint AS ms, {DURABLE} AS durable)")
}

/// The parameters after `last` as the relation `name`, in the order in which they are handed over. Arrays are taken apart in
/// the select list: in `FROM`, each function's rows would be stored aside before the first is read.
pub(super) fn source(
    name: &str,
    columns: &[Column],
    keep: fn(Role) -> bool,
    shape: Shape,
    last: &mut usize,
) -> String {
    let parameters = list(columns, keep, |column| {
        *last += 1;
        match shape {
            Shape::One => format!("${last}::{} AS {}", column.sql, column.name),
            Shape::Many => format!("unnest(${last}::{}[]) AS {}", column.sql, column.name),
        }
    });
    format!("(SELECT {parameters}) AS {name}")
}

/// `, name AS (…)`: [`source`], formed once.
fn given(name: &str, columns: &[Column], keep: fn(Role) -> bool, shape: Shape, last: &mut usize) -> String {
    let source = source(name, columns, keep, shape, last);
    format!(", {name} AS MATERIALIZED (SELECT * FROM {source})")
}

/// The head of the effect that a row `x` is, or is an alias of.
pub(super) const HOLDER: &str = "CASE WHEN x.alias_of IS NULL THEN x.digest_head \
    ELSE encode(substring(x.alias_of FOR 16), 'hex')::uuid END";

/// `, name AS (…)`: aliases of the effect whose digest is the parameter after `last`.
pub(super) fn aliases(last: &mut usize, unless: &str) -> String {
    let [of, heads, tails, tenants, versions] = [1, 2, 3, 4, 5].map(|more| *last + more);
    *last += 5;
    format!(
        ", aliased AS (
            INSERT INTO effectual_effects (digest_head, digest_tail, tenant, alias_of, key_version)
            SELECT given.head, given.tail, given.tenant, ${of}::bytea, given.version
            FROM (SELECT unnest(${heads}::uuid[]) AS head, unnest(${tails}::bytea[]) AS tail,
                unnest(${tenants}::text[]) AS tenant, unnest(${versions}::bigint[]) AS version) AS given
            {unless} RETURNING digest_head
        )"
    )
}

fn alias() -> String {
    let aliases = aliases(&mut 1, "CROSS JOIN holder ON CONFLICT (digest_head) DO NOTHING");
    // Locked, so that it is not removed while it gets an alias; nothing is written where it is gone.
    format!(
        "{clock}, holder AS MATERIALIZED (
            SELECT digest_head FROM effectual_effects
            WHERE digest_head = encode(substring($2::bytea FOR 16), 'hex')::uuid FOR KEY SHARE
        ){aliases} SELECT clock.ms, aliased.digest_head FROM aliased CROSS JOIN clock",
        clock = clock()
    )
}

fn read() -> String {
    let columns = list(EffectRow::COLUMNS, in_row, |column| format!("held.{}", column.name));
    format!(
        "{clock} SELECT clock.ms, NULL::uuid, NULL::boolean, x.digest_head, x.digest_tail, {columns}
        FROM effectual_effects x JOIN effectual_effects held ON held.digest_head = {HOLDER} CROSS JOIN clock
        WHERE x.digest_head = ANY ($2::uuid[])",
        clock = clock(),
    )
}

const OLDEST: &str = "ORDER BY created_at, digest_head LIMIT $4::bigint";

/// One index from where the page begins, in its order.
fn looked(which: &str) -> String {
    let columns = names(EffectRow::COLUMNS, in_row);
    format!(
        "SELECT greatest(lease_until, {NOT_BEFORE}) AS due_at, input IS NOT NULL AS has_input, {columns}
        FROM effectual_effects WHERE {which} AND (created_at, digest_head) > ($2::bigint, $3::uuid) {OLDEST}"
    )
}

fn unsettled(looked: &str, is_asked_for: &str) -> String {
    let columns = list(EffectRow::COLUMNS, in_row, |column| format!("looked.{}", column.name));
    format!(
        "{clock}, looked AS MATERIALIZED ({looked}), last AS (
            SELECT created_at, digest_head, digest_tail FROM looked ORDER BY created_at DESC, digest_head DESC LIMIT 1
        )
        SELECT clock.ms, (SELECT count(*) FROM looked), last.created_at, last.digest_head, last.digest_tail,
            looked.has_input, {columns}
        FROM clock LEFT JOIN last ON true LEFT JOIN looked ON {is_asked_for}
        ORDER BY looked.created_at, looked.digest_head",
        clock = clock(),
    )
}

fn store(shape: Shape, with_more: bool) -> String {
    let mut last = 1;
    let asked = given("asked", EffectRow::COLUMNS, of_change, shape, &mut last);
    let set = list(EffectRow::COLUMNS, is_changed, |column| {
        format!("{} = {}", column.name, value(column, "asked"))
    });
    let more = if with_more { self::more(&mut last) } else { String::new() };
    format!(
        "{clock}{asked}, stored AS (
            UPDATE effectual_effects held SET {set} FROM asked CROSS JOIN clock
            WHERE held.digest_head = asked.digest_head AND held.digest_tail = asked.digest_tail
                AND held.revision = asked.revision - 1 AND held.state = asked.was_state
                AND held.fence = asked.was_fence AND held.alias_of IS NULL
            RETURNING asked.slot
        ){more}
        SELECT clock.ms, stored.slot FROM stored CROSS JOIN clock",
        clock = clock(),
    )
}

/// What is kept beside the rows that were stored. The values are those that were judged, so that they are right
/// whenever the row was still the judged one: nothing is copied from a snapshot that may be older.
fn more(last: &mut usize) -> String {
    let mut kept = |name: &str, table: &str, columns: &[Column], unless: &str| {
        let given = given(name, columns, of_more, Shape::Many, last);
        let (names, values) = (names(columns, is_inserted), values(columns, is_inserted, name));
        format!(
            "{given}, {name}_kept AS (
                INSERT INTO {table} ({names})
                SELECT {values} FROM {name} JOIN stored ON stored.slot = {name}.slot CROSS JOIN clock {unless}
            )"
        )
    };
    // A change that is repeated because its acknowledgement was lost brings its evidence again.
    let known =
        "WHERE NOT EXISTS (SELECT FROM effectual_evidence k WHERE k.digest_head = evidence.digest_head
        AND k.attempt = evidence.attempt AND k.fence = evidence.fence AND k.verdict = evidence.verdict)";
    [
        kept("closed", "effectual_attempts", AttemptRow::COLUMNS, ""),
        kept("touched", "effectual_touches", TouchRow::COLUMNS, "ON CONFLICT (run, digest_head) DO NOTHING"),
        kept("evidence", "effectual_evidence", EvidenceRow::COLUMNS, known),
        kept("audited", "effectual_audit", AuditRow::COLUMNS, ""),
    ]
    .concat()
}

fn forget_due() -> String {
    format!(
        "{clock}, due AS MATERIALIZED (
            SELECT digest_head, retain_until, coalesce(octet_length(payload), 0) AS size FROM effectual_effects
            WHERE outcome_kind IS NOT NULL AND absent_reason IS DISTINCT FROM 'expired'
                AND retain_until <= (SELECT ms FROM clock)
            ORDER BY retain_until LIMIT $2::bigint FOR NO KEY UPDATE SKIP LOCKED
        ), picked AS MATERIALIZED (
            SELECT digest_head, sum(size) OVER (ORDER BY retain_until, digest_head) - size <= $3::bigint AS fits FROM due
        ), forgotten AS (
            UPDATE effectual_effects held SET {FORGET} FROM picked
            WHERE held.digest_head = picked.digest_head AND picked.fits AND held.state = 'completed'
            RETURNING held.digest_head
        )
        SELECT digest_head, NULL::bytea FROM forgotten UNION ALL SELECT NULL, NULL FROM picked WHERE NOT fits",
        clock = clock(),
    )
}

fn lock_tombstones() -> String {
    format!(
        "{clock} SELECT digest_head, uuid_send(digest_head) || digest_tail FROM effectual_effects
        WHERE absent_reason = 'expired' AND retain_until <= (SELECT ms FROM clock) - $3::bigint
        ORDER BY retain_until LIMIT $2::bigint FOR UPDATE SKIP LOCKED",
        clock = clock(),
    )
}

fn touch() -> String {
    let touched = given("touched", TouchRow::COLUMNS, of_more, Shape::Many, &mut 1);
    let names = names(TouchRow::COLUMNS, is_inserted);
    let values = values(TouchRow::COLUMNS, is_inserted, "touched");
    format!(
        "{clock}{touched} INSERT INTO effectual_touches ({names})
        SELECT {values} FROM touched CROSS JOIN clock ON CONFLICT (run, digest_head) DO NOTHING",
        clock = clock(),
    )
}

fn history(table: &str, columns: &[Column], order: &str) -> String {
    let columns = names(columns, in_row);
    format!("SELECT {columns} FROM {table} WHERE digest_head = $1::uuid ORDER BY {order}")
}
