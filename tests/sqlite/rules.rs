//! The rules of an effect's row in their present form, and in the one of the first release, on rows at random.

use std::path::Path;

use effectual::{Ledger, SqliteLedger};
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};

use crate::support::{execute, raw, scratch};

pub(crate) const VERSION_4: [&str; 4] = [
    include_str!("../../sdk/migrations/sqlite/0001_effects.sql"),
    include_str!("../../sdk/migrations/sqlite/0002_unsettled.sql"),
    include_str!("../../sdk/migrations/sqlite/0003_retention.sql"),
    include_str!("../../sdk/migrations/sqlite/0004_requests.sql"),
];
const RULES: &str = include_str!("../../sdk/migrations/sqlite/0005_rules.sql");

/// How many rows are judged by both, and how many changes of rows.
const ROWS: usize = 5_000;
const CHANGES: usize = 5_000;

/// Whole rows, one of a kind, from which those at random differ in a few columns.
const WHOLE: [&[(&str, &str)]; 8] = [
    &[("alias_of", "zeroblob(32)")],
    CLAIMED,
    &[("state", "'claimed'"), ("ended_at", "3"), ("verdict", "'unknown'"), ("key_taken", "1")],
    &[
        ("state", "'escaped'"),
        ("doubt_attempt", "1"),
        ("doubt_since", "3"),
        ("doubt_class", "'hold'"),
        ("doubt_acts_until", "4"),
    ],
    &[("state", "'released'"), ("ended_at", "3"), ("verdict", "'not_performed'"), ("key_taken", "0")],
    &[
        ("outcome_kind", "'success'"),
        ("verdict", "'performed'"),
        ("payload", "x'01'"),
        ("payload_codec", "'json/1'"),
    ],
    &[
        ("outcome_kind", "'refusal'"),
        ("verdict", "'refused'"),
        ("payload", "x'01'"),
        ("payload_codec", "'json/1'"),
    ],
    &[("outcome_kind", "'success'"), ("verdict", "'performed'"), ("absent_reason", "'expired'")],
];

/// What every effect has.
const CLAIMED: &[(&str, &str)] = &[
    ("operation", "'order'"),
    ("keying", "'business-identity'"),
    ("provider_key", "'key'"),
    ("fingerprints", "'[]'"),
    ("created_at", "1"),
    ("state", "'claimed'"),
    ("fence", "1"),
    ("attempt", "1"),
    ("token", "zeroblob(16)"),
    ("class", "'hold'"),
    ("started_at", "1"),
    ("lease_until", "2"),
    ("attempt_timeout_ms", "1"),
];

/// What every settled effect has.
const COMPLETED: &[(&str, &str)] = &[
    ("state", "'completed'"),
    ("ended_at", "3"),
    ("key_taken", "0"),
    ("provider_replay", "0"),
    ("settled_at", "3"),
    ("retain_until", "9"),
];

/// The columns that a rule looks at, and what they may hold beside null: what is in order, and what is not or only just.
const COLUMNS: [(&str, &[&str]); 36] = [
    ("digest", &["zeroblob(31)", "'0123456789abcdef0123456789abcdef'"]),
    ("alias_of", &["zeroblob(32)", "zeroblob(33)", "'0123456789abcdef0123456789abcdef'"]),
    ("key_version", &["1", "0", "'two'", "0.5"]),
    ("operation", &["'order'", "''"]),
    ("keying", &["'business-identity'", "'activity-recipe'", "'guess'", "''", "x'00'"]),
    ("provider_key", &["'key'", "''"]),
    ("fingerprints", &["'[]'"]),
    ("created_at", &["1"]),
    ("input", &["x'01'", "''"]),
    ("input_codec", &["'json/1'"]),
    (
        "state",
        &[
            "'claimed'",
            "'completed'",
            "'released'",
            "'escaped'",
            "'lost'",
            "''",
            "1",
            "CAST('claimed' AS BLOB)",
        ],
    ),
    ("fence", &["1", "0", "'two'", "-1", "1.5"]),
    ("attempt", &["1", "2", "0", "'two'", "x'01'"]),
    ("token", &["zeroblob(16)", "zeroblob(15)", "'0123456789abcdef'"]),
    (
        "class",
        &["'rerun'", "'resend'", "'reconcile'", "'transactional'", "'hold'", "'odd'", "CAST('hold' AS BLOB)"],
    ),
    ("started_at", &["1"]),
    ("lease_until", &["2", "'late'"]),
    ("attempt_timeout_ms", &["1", "0", "'long'", "0.5"]),
    ("ended_at", &["3"]),
    (
        "verdict",
        &["'performed'", "'refused'", "'not_performed'", "'unknown'", "'maybe'", "CAST('refused' AS BLOB)"],
    ),
    ("send_digest", &["zeroblob(32)", "zeroblob(31)", "'0123456789abcdef0123456789abcdef'"]),
    ("key_taken", &["0", "1", "2", "'1'", "0.5", "'yes'"]),
    ("doubt_attempt", &["1", "2", "0", "'two'", "0.5"]),
    ("doubt_since", &["3"]),
    ("doubt_class", &["'rerun'", "'resend'", "'reconcile'", "'transactional'", "'hold'", "'odd'"]),
    ("doubt_acts_until", &["4"]),
    ("doubt_send_digest", &["zeroblob(32)", "zeroblob(31)"]),
    ("accepted_handle", &["'job'"]),
    ("accepted_poll_after", &["5"]),
    ("outcome_kind", &["'success'", "'refusal'", "'maybe'", "x'00'"]),
    ("payload", &["x'01'", "''"]),
    ("payload_codec", &["'json/1'"]),
    ("absent_reason", &["'expired'", "'unencodable'", "'too_large'", "'bored'"]),
    ("provider_replay", &["0", "1", "2", "'0'"]),
    ("settled_at", &["3"]),
    ("retain_until", &["9"]),
];

/// Never null, so that only these are tried.
const FLAGS: [(&str, &[&str]); 3] = [
    ("late_success", &["0", "1", "2", "0.5", "'no'"]),
    ("double_suspected", &["0", "1", "2", "-1"]),
    ("revision", &["1", "2", "0", "'two'"]),
];

/// What is written together, so that a row gets all of it.
const GROUPS: [&[Cell]; 7] = [
    &[("doubt_attempt", "1"), ("doubt_since", "3"), ("doubt_class", "'rerun'"), ("doubt_acts_until", "4")],
    &[
        ("doubt_attempt", "NULL"),
        ("doubt_since", "NULL"),
        ("doubt_class", "NULL"),
        ("doubt_acts_until", "NULL"),
    ],
    &[("ended_at", "3"), ("verdict", "'performed'"), ("key_taken", "1")],
    &[("ended_at", "NULL"), ("verdict", "NULL"), ("key_taken", "NULL")],
    &[("accepted_handle", "'job'"), ("accepted_poll_after", "5")],
    &[("input", "x'01'"), ("input_codec", "'json/1'")],
    &[("payload", "NULL"), ("payload_codec", "NULL"), ("absent_reason", "'too_large'")],
];

/// A column and what it is to hold.
type Cell = (&'static str, &'static str);

/// The same numbers in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % bound
    }

    fn of<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// A column and what is written to it.
    fn column(&mut self) -> Cell {
        if self.below(12) == 0 {
            let (name, values) = self.of(&FLAGS);
            return (name, self.of(values));
        }
        let (name, values) = self.of(&COLUMNS);
        (name, if self.below(4) == 0 { "NULL" } else { self.of(values) })
    }

    /// A column, or what is written together.
    fn change(&mut self) -> Vec<Cell> {
        if self.below(4) == 0 { self.of(&GROUPS).to_vec() } else { vec![self.column()] }
    }

    fn changes(&mut self, at_most: usize) -> Vec<Cell> {
        (0..self.below(at_most + 1)).flat_map(|_| self.change()).collect()
    }

    /// A whole row.
    fn whole(&mut self) -> Vec<Cell> {
        let kind = self.below(WHOLE.len());
        let mut row = vec![("tenant", "'acme'"), ("key_version", "1"), ("digest", "randomblob(32)")];
        let common = [CLAIMED, COMPLETED];
        let of_it = usize::from(kind > 0) + usize::from(kind > 4);
        for (name, value) in common[..of_it].iter().copied().flatten().chain(WHOLE[kind]) {
            put(&mut row, name, value);
        }
        row
    }
}

fn put(row: &mut Vec<Cell>, name: &'static str, value: &'static str) {
    match row.iter_mut().find(|(column, _)| *column == name) {
        Some(there) => there.1 = value,
        None => row.push((name, value)),
    }
}

fn insert(row: &[(&str, &str)]) -> String {
    let (names, values): (Vec<_>, Vec<_>) = row.iter().copied().unzip();
    format!("INSERT INTO effectual_effects ({}) VALUES ({})", names.join(", "), values.join(", "))
}

/// A ledger's file with the schema of version 4.
pub(crate) async fn version_4(path: &Path) -> SqliteConnection {
    drop(std::fs::File::create(path).expect("a file"));
    let mut conn = raw(path).await;
    execute(
        &mut conn,
        "PRAGMA journal_mode = WAL; PRAGMA application_id = 1701209708; PRAGMA user_version = 4",
    )
    .await
    .expect("its marks");
    for migration in VERSION_4 {
        execute(&mut conn, migration).await.expect("the schema");
    }
    conn
}

/// Whether the row is taken; a refusal is for a rule or a null.
async fn takes(conn: &mut SqliteConnection, sql: &str) -> bool {
    let done = sqlx::query(AssertSqlSafe(sql)).persistent(false).execute(conn).await;
    let Err(error) = done else { return true };
    let text = error.to_string();
    assert!(text.contains("CHECK constraint") || text.contains("NOT NULL constraint"), "{sql}: {text}");
    false
}

#[tokio::test]
async fn the_rules_take_and_refuse_the_rows_that_those_of_the_first_release_did() {
    let (_directory, path) = scratch();
    let mut first = version_4(&path).await;
    let mut now = SqliteConnection::connect("sqlite::memory:").await.expect("a database");
    for migration in VERSION_4.into_iter().chain([RULES]) {
        execute(&mut now, migration).await.expect("the schema");
    }
    for conn in [&mut first, &mut now] {
        execute(conn, "PRAGMA foreign_keys = OFF; BEGIN").await.expect("a transaction");
    }
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let mut taken = [0_usize; 2];
    for _ in 0..ROWS {
        let mut row = dice.whole();
        for (name, value) in dice.changes(4) {
            // Another digest than that of the row before.
            let value = if name == "digest" && value.starts_with('\'') { "randomblob(31)" } else { value };
            put(&mut row, name, value);
        }
        let sql = insert(&row);
        let is_taken = takes(&mut first, &sql).await;
        assert_eq!(takes(&mut now, &sql).await, is_taken, "{sql}");
        taken[0] += usize::from(is_taken);
    }
    for _ in 0..CHANGES {
        let row = insert(&dice.whole());
        let mut cells = dice.change();
        cells.extend(dice.changes(4));
        let set: Vec<_> = cells.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let change =
            format!("UPDATE effectual_effects SET {} WHERE seq = last_insert_rowid()", set.join(", "));
        let mut verdicts = [false; 2];
        for (conn, verdict) in [&mut first, &mut now].into_iter().zip(&mut verdicts) {
            execute(conn, "SAVEPOINT change").await.expect("a savepoint");
            assert!(takes(conn, &row).await, "{row}");
            *verdict = takes(conn, &change).await;
            execute(conn, "ROLLBACK TO change; RELEASE change").await.expect("taken back");
        }
        assert_eq!(verdicts[0], verdicts[1], "{row}; {change}");
        taken[1] += usize::from(verdicts[0]);
    }
    // Both judgements are asked for often.
    assert!(taken[0] > ROWS / 5 && taken[0] < ROWS * 4 / 5, "{taken:?}");
    assert!(taken[1] > CHANGES / 20 && taken[1] < CHANGES * 4 / 5, "{taken:?}");
    // What the first release took is whole by the present rules.
    execute(&mut first, "COMMIT").await.expect("the rows");
    first.close().await.expect("a file");
    SqliteLedger::open(&path).await.expect("migrated").close().await;
    let check: Vec<String> =
        sqlx::query_scalar("PRAGMA integrity_check").fetch_all(&mut raw(&path).await).await.expect("a check");
    assert_eq!(check, ["ok"]);
}
