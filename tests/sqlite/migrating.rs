//! From version 4, whose rules were of another form, to this one.

use effectual::{Ledger, SqliteLedger, ledger::Owner};
use sqlx::{Connection, Row, SqliteConnection};

use crate::{
    rules::version_4,
    support::{count, execute, id, open, raw, scratch, success, win},
};

const TEXT: &str =
    "SELECT type || ' ' || name || ' ' || coalesce(sql, '') AS text FROM sqlite_schema ORDER BY text";
const COLUMNS: &str = "SELECT name || type || \"notnull\" || coalesce(dflt_value, '-') || pk AS text
    FROM pragma_table_xinfo('effectual_effects') ORDER BY cid";

async fn texts(conn: &mut SqliteConnection, sql: &'static str) -> Vec<String> {
    let rows = sqlx::query(sql).fetch_all(conn).await.expect("texts");
    rows.iter().map(|row| row.get("text")).collect()
}

#[tokio::test]
async fn a_migrated_file_has_the_schema_of_a_new_one() {
    let (_directory, old) = scratch();
    let (_other, new) = scratch();
    let mut conn = version_4(&old).await;
    let columns = texts(&mut conn, COLUMNS).await;
    conn.close().await.expect("a file");
    open(&old).await.close().await;
    open(&new).await.close().await;
    let (mut old, mut new) = (raw(&old).await, raw(&new).await);
    assert_eq!(texts(&mut old, TEXT).await, texts(&mut new, TEXT).await);
    for conn in [&mut old, &mut new] {
        assert_eq!(texts(conn, COLUMNS).await, columns, "the columns are those of before");
        assert_eq!(texts(conn, "SELECT integrity_check AS text FROM pragma_integrity_check").await, ["ok"]);
        assert_eq!(count(conn, "SELECT user_version FROM pragma_user_version").await, 5);
        assert_eq!(count(conn, "SELECT count(*) FROM sqlite_schema WHERE name LIKE '%next%'").await, 0);
    }
}

/// A process of the version before has the file open and its statements prepared; it keeps both.
#[tokio::test]
async fn who_has_the_file_open_goes_on_through_the_migration() {
    const CLAIM: &str = "INSERT INTO effectual_effects (digest, tenant, key_version, operation, keying, provider_key,
            fingerprints, created_at, state, fence, attempt, token, class, started_at, lease_until, attempt_timeout_ms)
        VALUES (?, 'acme', 1, 'order', 'business-identity', 'key', '[]', 1, ?, 1, 1, zeroblob(16), 'hold', 1, 2, 3)";
    const RENEW: &str = "UPDATE effectual_effects SET lease_until = lease_until + 1, revision = revision + 1";
    let (_directory, path) = scratch();
    let mut before = version_4(&path).await;
    let claim = async |conn: &mut SqliteConnection, number, state| {
        sqlx::query(CLAIM).bind(&id(number).digest()[..]).bind(state).execute(conn).await.map(drop)
    };
    claim(&mut before, 1, "claimed").await.expect("a row of before");
    sqlx::query(RENEW).execute(&mut before).await.expect("a renewal");
    let ledger = open(&path).await;
    claim(&mut before, 2, "claimed").await.expect("a row of the earlier version");
    let renewed = sqlx::query(RENEW).execute(&mut before).await.expect("a renewal");
    assert_eq!(renewed.rows_affected(), 2);
    let error = claim(&mut before, 3, "lost").await.expect_err("no state");
    assert!(error.to_string().contains("CHECK constraint failed"), "{error}");
    for number in [1, 2] {
        let found = ledger.read(&id(number)).await.expect("an answer").expect("a row");
        let settled = ledger.change(&Owner::of(&found.effect), &success(vec![1])).await;
        settled.expect("it is the ledger's to settle");
    }
    win(&ledger, 4).await;
    assert_eq!(
        count(&mut before, "SELECT count(*) FROM effectual_effects WHERE state = 'completed'").await,
        2
    );
}

/// Something is in the migration's way: nothing of it stays, and with that gone it is made.
#[tokio::test]
async fn a_migration_that_fails_leaves_the_file_as_it_was() {
    let (_directory, path) = scratch();
    let mut conn = version_4(&path).await;
    execute(&mut conn, "CREATE TABLE effectual_effects_next (x)").await.expect("a table");
    let before = texts(&mut conn, TEXT).await;
    SqliteLedger::open(&path).await.expect_err("the name is taken");
    assert_eq!(texts(&mut conn, TEXT).await, before);
    assert_eq!(count(&mut conn, "SELECT user_version FROM pragma_user_version").await, 4);
    execute(&mut conn, "DROP TABLE effectual_effects_next").await.expect("room");
    win(&open(&path).await, 1).await;
}
