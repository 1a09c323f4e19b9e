//! The columns of each table, once: from this list come the structs, the parameters and the SQL's column lists.

use std::borrow::Cow;

use sqlx::{Arguments, Row as _, error::BoxDynError, postgres::PgArguments, postgres::PgRow};
use uuid::Uuid;

pub(super) type Text<'r> = Option<Cow<'r, str>>;
pub(super) type Bytes<'r> = Option<&'r [u8]>;

/// When a column is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// With the row, and never again; a change finds the row by it.
    Key,
    /// With the row, and never again.
    Fixed,
    /// With the row, and by changes.
    Kept,
    /// By changes only: null, or its default, in a first claim.
    Later,
    /// With the row, of few effects: where a batch has none of them, it is not handed over.
    Rare,
    /// Not by a claim or a change.
    Read,
    /// Never: it is a parameter of a statement and no column of the table.
    Guard,
}

/// How rows are handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// One row: a parameter is a value.
    One,
    /// Any number of rows: a parameter is an array.
    Many,
}

impl Shape {
    pub(super) fn of<T>(rows: &[T]) -> Self {
        if rows.len() == 1 { Self::One } else { Self::Many }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) sql: &'static str,
    pub(super) role: Role,
    /// Whether it may hold a symbolic time.
    pub(super) is_time: bool,
}

/// A Rust type of a column and its name in SQL.
pub(super) trait Cell {
    const SQL: &'static str;
}

impl Cell for Option<Uuid> {
    const SQL: &'static str = "uuid";
}
impl Cell for Option<i64> {
    const SQL: &'static str = "bigint";
}
impl Cell for Option<bool> {
    const SQL: &'static str = "boolean";
}
impl Cell for Text<'_> {
    const SQL: &'static str = "text";
}
impl Cell for Bytes<'_> {
    const SQL: &'static str = "bytea";
}

/// A row of a table, as parameters or as a result.
pub(super) trait Table<'r>: Sized {
    const COLUMNS: &'static [Column];

    /// Adds the columns whose role `keep` keeps, in the order of the list.
    fn add_to(
        rows: &mut [Self],
        shape: Shape,
        keep: fn(Role) -> bool,
        arguments: &mut PgArguments,
    ) -> Result<(), BoxDynError>;

    /// Reads the columns of the table, in the order of the list, from the result's column `at` on.
    fn read(row: &'r PgRow, at: usize) -> Result<Self, sqlx::Error>;
}

macro_rules! is_time {
    (time) => {
        true
    };
    () => {
        false
    };
}
pub(super) use is_time;

macro_rules! table {
    ($(#[$doc:meta])* $row:ident { $($name:ident: $kind:ty, $role:ident $($time:ident)?;)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(super) struct $row<'r> {
            $(pub(super) $name: $kind,)+
        }

        impl<'r> Table<'r> for $row<'r> {
            const COLUMNS: &'static [Column] = &[$(Column {
                name: stringify!($name),
                sql: <$kind as Cell>::SQL,
                role: Role::$role,
                is_time: is_time!($($time)?),
            },)+];

            fn add_to(
                rows: &mut [Self],
                shape: Shape,
                keep: fn(Role) -> bool,
                arguments: &mut PgArguments,
            ) -> Result<(), BoxDynError> {
                if let (Shape::One, [row]) = (shape, &mut *rows) {
                    $(if keep(Role::$role) {
                        arguments.add(row.$name.take())?;
                    })+
                    return Ok(());
                }
                $(if keep(Role::$role) {
                    arguments.add(rows.iter_mut().map(|row| row.$name.take()).collect::<Vec<_>>())?;
                })+
                Ok(())
            }

            fn read(row: &'r PgRow, mut at: usize) -> Result<Self, sqlx::Error> {
                let mut read = Self::default();
                $(if Role::$role != Role::Guard {
                    read.$name = row.try_get(at)?;
                    at += 1;
                })+
                debug_assert!(at <= row.len(), "a statement returns every column");
                Ok(read)
            }
        }
    };
}
pub(super) use table;

table! {
    /// `effectual_effects`, with what a compare-and-set compares.
    EffectRow {
        slot: Option<i64>, Guard;
        was_state: Text<'r>, Guard;
        was_fence: Option<i64>, Guard;
        digest_head: Option<Uuid>, Key;
        digest_tail: Bytes<'r>, Key;
        tenant: Text<'r>, Fixed;
        alias_of: Bytes<'r>, Read;
        key_version: Option<i64>, Fixed;
        operation: Text<'r>, Fixed;
        keying: Text<'r>, Fixed;
        readable: Text<'r>, Fixed;
        provider: Text<'r>, Fixed;
        provider_key: Text<'r>, Fixed;
        fingerprints: Text<'r>, Fixed;
        created_at: Option<i64>, Fixed time;
        first_send_at: Option<i64>, Later time;
        state: Text<'r>, Kept;
        fence: Option<i64>, Kept;
        attempt: Option<i64>, Kept;
        token: Option<Uuid>, Kept;
        class: Text<'r>, Kept;
        run: Text<'r>, Kept;
        node: Text<'r>, Kept;
        invocation: Text<'r>, Kept;
        started_at: Option<i64>, Kept time;
        lease_until: Option<i64>, Kept time;
        attempt_timeout_ms: Option<i64>, Kept;
        ended_at: Option<i64>, Later time;
        verdict: Text<'r>, Later;
        send_digest: Bytes<'r>, Later;
        key_taken: Option<bool>, Later;
        doubt_attempt: Option<i64>, Later;
        doubt_since: Option<i64>, Later time;
        doubt_class: Text<'r>, Later;
        doubt_acts_until: Option<i64>, Later time;
        doubt_send_digest: Bytes<'r>, Later;
        accepted_handle: Text<'r>, Later;
        accepted_poll_after: Option<i64>, Later time;
        not_before: Option<i64>, Later time;
        outcome_kind: Text<'r>, Later;
        payload: Bytes<'r>, Later;
        payload_codec: Text<'r>, Later;
        absent_reason: Text<'r>, Later;
        provider_replay: Option<bool>, Later;
        settled_at: Option<i64>, Later time;
        retain_until: Option<i64>, Later time;
        late_success: Option<bool>, Later;
        double_suspected: Option<bool>, Later;
        revision: Option<i64>, Kept;
    }
}

table! {
    /// `effectual_attempts`.
    AttemptRow {
        slot: Option<i64>, Guard;
        digest_head: Option<Uuid>, Key;
        attempt: Option<i64>, Fixed;
        fence: Option<i64>, Fixed;
        token: Option<Uuid>, Fixed;
        class: Text<'r>, Fixed;
        run: Text<'r>, Fixed;
        node: Text<'r>, Fixed;
        invocation: Text<'r>, Fixed;
        started_at: Option<i64>, Fixed time;
        lease_until: Option<i64>, Fixed time;
        attempt_timeout_ms: Option<i64>, Fixed;
        ended_at: Option<i64>, Fixed time;
        verdict: Text<'r>, Fixed;
        send_digest: Bytes<'r>, Fixed;
        key_taken: Option<bool>, Fixed;
    }
}

table! {
    /// `effectual_touches`.
    TouchRow {
        slot: Option<i64>, Guard;
        run: Text<'r>, Fixed;
        digest_head: Option<Uuid>, Key;
        node: Text<'r>, Fixed;
        invocation: Text<'r>, Fixed;
        at: Option<i64>, Fixed time;
    }
}

table! {
    /// `effectual_audit`.
    AuditRow {
        slot: Option<i64>, Guard;
        digest_head: Option<Uuid>, Key;
        at: Option<i64>, Fixed time;
        who: Text<'r>, Fixed;
        why: Text<'r>, Fixed;
        action: Text<'r>, Fixed;
        before: Text<'r>, Fixed;
        after: Text<'r>, Fixed;
    }
}

table! {
    /// `effectual_evidence`.
    EvidenceRow {
        slot: Option<i64>, Guard;
        digest_head: Option<Uuid>, Key;
        attempt: Option<i64>, Fixed;
        fence: Option<i64>, Fixed;
        at: Option<i64>, Fixed time;
        verdict: Text<'r>, Fixed;
        payload: Bytes<'r>, Fixed;
        payload_codec: Text<'r>, Fixed;
    }
}
