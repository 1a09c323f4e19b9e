//! The statements of the usual way of an effect: its first claim, its settlement, both for a batch at once, and the look of a
//! claim at what is there. As few columns and as simple a plan as they can have: most of what a short statement costs a
//! server is reading its parameters and setting its plan up.

use std::sync::LazyLock;

use super::{
    rows_usual::{ClaimRow, SettlementRow},
    sql::{HOLDER, aliases, clock, in_row, list, names, source, value, values},
    table::{EffectRow, Role, Shape, Table},
};

/// Inserts the claim of an effect that is not there; returns the time, its token and null if it was inserted.
pub(super) static CLAIM_ONE: LazyLock<String> = LazyLock::new(|| claim(Shape::One, of_claim));
/// [`CLAIM_ONE`] for any number of claims.
pub(super) static CLAIM_MANY: LazyLock<String> = LazyLock::new(|| claim(Shape::Many, of_claim));
/// [`CLAIM_MANY`] for claims that have nothing that is rare.
pub(super) static CLAIM_PLAIN: LazyLock<String> = LazyLock::new(|| claim(Shape::Many, of_plain_claim));
/// Writes a settlement by compare-and-set; returns the time, null and its slot if the row was still the judged one.
pub(super) static SETTLE_ONE: LazyLock<String> = LazyLock::new(|| settle(Shape::One));
/// [`SETTLE_ONE`] for any number of settlements.
pub(super) static SETTLE_MANY: LazyLock<String> = LazyLock::new(|| settle(Shape::Many));
/// [`CLAIM_MANY`] and [`SETTLE_MANY`] in one commit: the parameters of the claims, then those of the settlements.
pub(super) static CLAIM_AND_SETTLE: LazyLock<String> = LazyLock::new(|| claim_and_settle(of_claim));
/// [`CLAIM_AND_SETTLE`] with [`CLAIM_PLAIN`].
pub(super) static CLAIM_PLAIN_AND_SETTLE: LazyLock<String> =
    LazyLock::new(|| claim_and_settle(of_plain_claim));
/// Inserts the claim of an effect with its earlier identities, or fails as a whole where one of them is taken; returns what
/// [`CLAIM_ONE`] does.
pub(super) static CLAIM_AMONG: LazyLock<String> = LazyLock::new(claim_among);
/// The rows that claims found: those of [`READ`](super::sql::READ), and whether the run that asks is known to have met the
/// effect. `$2` holds the heads, `$3` the runs.
pub(super) static LOOK: LazyLock<String> = LazyLock::new(|| {
    let columns = list(EffectRow::COLUMNS, in_row, |column| format!("held.{}", column.name));
    format!(
        "{clock} SELECT clock.ms, NULL::uuid, CASE WHEN asked.run IS NOT NULL AND asked.run IS DISTINCT FROM held.run THEN
            EXISTS (SELECT FROM effectual_touches t WHERE t.run = asked.run AND t.digest_head = held.digest_head)
            OR EXISTS (SELECT FROM effectual_attempts t WHERE t.digest_head = held.digest_head AND t.run = asked.run)
            END, x.digest_head, x.digest_tail, {columns}
        FROM (SELECT unnest($2::uuid[]) AS head, unnest($3::text[]) AS run) AS asked
        JOIN effectual_effects x ON x.digest_head = asked.head
        JOIN effectual_effects held ON held.digest_head = {HOLDER} CROSS JOIN clock",
        clock = clock(),
    )
});

/// The columns of any claim.
pub(super) fn of_claim(role: Role) -> bool {
    is_kept(role)
}

/// The columns of a claim that has nothing that is rare.
pub(super) fn of_plain_claim(role: Role) -> bool {
    is_kept(role) && role != Role::Rare
}

/// The columns of a settlement, with what finds and compares the row.
pub(super) fn of_settlement(_: Role) -> bool {
    true
}

fn is_kept(role: Role) -> bool {
    role != Role::Guard
}

fn is_settled(role: Role) -> bool {
    role == Role::Later
}

fn claim(shape: Shape, keep: fn(Role) -> bool) -> String {
    format!("{} {}", clock(), insert(shape, keep, UNLESS_THERE, &mut 1))
}

fn settle(shape: Shape) -> String {
    format!("{} {}", clock(), update(shape, &mut 1))
}

fn claim_and_settle(keep: fn(Role) -> bool) -> String {
    let mut last = 1;
    let claimed = insert(Shape::Many, keep, UNLESS_THERE, &mut last);
    let settled = update(Shape::Many, &mut last);
    format!(
        "{clock}, claimed AS ({claimed}), settled AS ({settled})
        SELECT * FROM claimed UNION ALL SELECT * FROM settled",
        clock = clock()
    )
}

fn claim_among() -> String {
    let mut last = 1;
    let inserted = insert(Shape::One, of_claim, "", &mut last);
    let aliases = aliases(&mut last, "");
    format!("{}, inserted AS ({inserted}){aliases} SELECT * FROM inserted", clock())
}

const UNLESS_THERE: &str = "ON CONFLICT (digest_head) DO NOTHING";

fn insert(shape: Shape, keep: fn(Role) -> bool, unless: &str, last: &mut usize) -> String {
    let asked = source("asked", ClaimRow::COLUMNS, keep, shape, last);
    let (names, values) = (names(ClaimRow::COLUMNS, keep), values(ClaimRow::COLUMNS, keep, "asked"));
    format!(
        "INSERT INTO effectual_effects (created_at, started_at, state, fence, attempt, revision, {names})
        SELECT clock.ms, clock.ms, 'claimed', 1, 1, 1, {values} FROM {asked} CROSS JOIN clock
        {unless} RETURNING created_at, token, NULL::bigint"
    )
}

fn update(shape: Shape, last: &mut usize) -> String {
    let asked = source("asked", SettlementRow::COLUMNS, of_settlement, shape, last);
    let set = list(SettlementRow::COLUMNS, is_settled, |column| {
        format!("{} = {}", column.name, value(column, "asked"))
    });
    format!(
        "UPDATE effectual_effects held SET state = 'completed', lease_until = clock.ms, ended_at = clock.ms,
            settled_at = clock.ms, verdict = CASE asked.outcome_kind WHEN 'success' THEN 'performed' ELSE 'refused' END,
            revision = held.revision + 1, {set}
        FROM {asked} CROSS JOIN clock
        WHERE held.digest_head = asked.digest_head AND held.digest_tail = asked.digest_tail
            AND held.revision = asked.was_revision AND held.state = 'claimed'
            AND held.fence = asked.was_fence AND held.alias_of IS NULL
        RETURNING clock.ms, NULL::uuid, asked.slot"
    )
}
