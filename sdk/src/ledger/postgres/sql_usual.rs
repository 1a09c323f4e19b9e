//! The statements of the usual way of an effect: its first claim, its settlement, both for a batch at once, and the look of a
//! claim at what is there. As few columns and as simple a plan as they can have: most of what a short statement costs a
//! server is reading its parameters and setting its plan up.

use std::sync::LazyLock;

use super::{
    sql::{HOLDER, clock, in_row, is_settled, list, names, of_claim, of_settlement, source, value, values},
    table::{EffectRow, Shape, Table},
};

/// Inserts the claims of effects that are not there; returns the time, the token and null for each that was inserted.
pub(super) static CLAIM_ONE: LazyLock<String> = LazyLock::new(|| claim(Shape::One));
/// [`CLAIM_ONE`] for any number of claims.
pub(super) static CLAIM_MANY: LazyLock<String> = LazyLock::new(|| claim(Shape::Many));
/// Writes settlements by compare-and-set; returns the time, null and the slot of each row that was still the judged one.
pub(super) static SETTLE_ONE: LazyLock<String> = LazyLock::new(|| settle(Shape::One));
/// [`SETTLE_ONE`] for any number of settlements.
pub(super) static SETTLE_MANY: LazyLock<String> = LazyLock::new(|| settle(Shape::Many));
/// [`CLAIM_MANY`] and [`SETTLE_MANY`] in one commit: the parameters of the claims, then those of the settlements.
pub(super) static CLAIM_AND_SETTLE: LazyLock<String> = LazyLock::new(|| {
    let mut last = 1;
    let (claimed, settled) = (insert(Shape::Many, &mut last), update(Shape::Many, &mut last));
    format!(
        "{clock}, claimed AS ({claimed}), settled AS ({settled})
        SELECT * FROM claimed UNION ALL SELECT * FROM settled",
        clock = clock()
    )
});
/// The rows that claims found: those of [`READ`](super::sql::READ), and whether the run that asks is known to have met the
/// effect. `$2` holds the heads, `$3` the runs.
pub(super) static LOOK: LazyLock<String> = LazyLock::new(|| {
    let columns = list(EffectRow::COLUMNS, in_row, |column| format!("held.{}", column.name));
    format!(
        "{clock} SELECT clock.ms, NULL::uuid, CASE WHEN asked.run IS NOT NULL AND asked.run IS DISTINCT FROM held.run THEN
            EXISTS (SELECT FROM effectual_touches t WHERE t.run = asked.run AND t.digest_head = held.digest_head)
            OR EXISTS (SELECT FROM effectual_attempts t WHERE t.digest_head = held.digest_head AND t.run = asked.run)
            END, x.digest_head, x.digest_tail, {columns}
        FROM unnest($2::uuid[], $3::text[]) AS asked(head, run)
        JOIN effectual_effects x ON x.digest_head = asked.head
        JOIN effectual_effects held ON held.digest_head = {HOLDER} CROSS JOIN clock",
        clock = clock(),
    )
});

fn claim(shape: Shape) -> String {
    format!("{} {}", clock(), insert(shape, &mut 1))
}

fn settle(shape: Shape) -> String {
    format!("{} {}", clock(), update(shape, &mut 1))
}

fn insert(shape: Shape, last: &mut usize) -> String {
    let asked = source("asked", EffectRow::COLUMNS, of_claim, shape, last);
    let names = names(EffectRow::COLUMNS, of_claim);
    let values = values(EffectRow::COLUMNS, of_claim, "asked");
    // An effect is created at the time of its first claim.
    format!(
        "INSERT INTO effectual_effects ({names}) SELECT {values} FROM {asked} CROSS JOIN clock
        ON CONFLICT (digest_head) DO NOTHING RETURNING created_at, token, NULL::bigint"
    )
}

fn update(shape: Shape, last: &mut usize) -> String {
    let asked = source("asked", EffectRow::COLUMNS, of_settlement, shape, last);
    let set = list(EffectRow::COLUMNS, is_settled, |column| {
        format!("{} = {}", column.name, value(column, "asked"))
    });
    format!(
        "UPDATE effectual_effects held SET {set} FROM {asked} CROSS JOIN clock
        WHERE held.digest_head = asked.digest_head AND held.digest_tail = asked.digest_tail
            AND held.revision = asked.revision - 1 AND held.state = asked.was_state
            AND held.fence = asked.was_fence AND held.alias_of IS NULL
        RETURNING clock.ms, NULL::uuid, asked.slot"
    )
}
