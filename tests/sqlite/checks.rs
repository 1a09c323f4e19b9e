//! The database itself refuses what the state machine does not know.

use effectual::{Ledger, ledger::Owner};
use sqlx::Connection;

use crate::support::{execute, open, raw, scratch, success, win};

/// What must not be stored of a claimed effect (`seq` 1) and of a completed one (`seq` 2).
const REFUSED: &[&str] = &[
    "SET digest = x'00' WHERE seq = 1",
    "SET key_version = 0 WHERE seq = 1",
    "SET keying = 'guess' WHERE seq = 1",
    "SET state = 'lost' WHERE seq = 1",
    "SET fence = 0 WHERE seq = 1",
    "SET attempt = 0 WHERE seq = 1",
    "SET token = x'00' WHERE seq = 1",
    "SET class = 'retry' WHERE seq = 1",
    "SET attempt_timeout_ms = 0 WHERE seq = 1",
    "SET double_suspected = 2 WHERE seq = 1",
    "SET revision = 0 WHERE seq = 1",
    // An effect is whole, and an alias is nothing else.
    "SET operation = NULL WHERE seq = 1",
    "SET state = NULL WHERE seq = 1",
    "SET fence = NULL WHERE seq = 1",
    "SET token = NULL WHERE seq = 1",
    "SET provider_key = NULL WHERE seq = 1",
    "SET lease_until = NULL WHERE seq = 1",
    "SET alias_of = digest WHERE seq = 1",
    "SET alias_of = zeroblob(32) WHERE seq = 1",
    // An end has its time, its verdict and whether the key was taken.
    "SET ended_at = 1 WHERE seq = 1",
    "SET verdict = 'unknown' WHERE seq = 1",
    "SET ended_at = 1, verdict = 'maybe', key_taken = 0 WHERE seq = 1",
    "SET ended_at = 1, verdict = 'unknown', key_taken = 2 WHERE seq = 1",
    "SET send_digest = zeroblob(32) WHERE seq = 1",
    "SET ended_at = 1, verdict = 'unknown', key_taken = 1, send_digest = x'00' WHERE seq = 1",
    // A doubt is whole and names an attempt that was made.
    "SET doubt_attempt = 1 WHERE seq = 1",
    "SET doubt_attempt = 2, doubt_since = 1, doubt_class = 'hold', doubt_acts_until = 1 WHERE seq = 1",
    "SET doubt_attempt = 1, doubt_since = 1, doubt_class = 'odd', doubt_acts_until = 1 WHERE seq = 1",
    "SET doubt_send_digest = zeroblob(32) WHERE seq = 1",
    "SET accepted_handle = 'job-1' WHERE seq = 1",
    "SET accepted_poll_after = 1 WHERE seq = 1",
    "SET input = x'00' WHERE seq = 1",
    // States.
    "SET state = 'escaped' WHERE seq = 1",
    "SET state = 'released' WHERE seq = 1",
    "SET state = 'released', ended_at = 1, verdict = 'not_performed', key_taken = 0, doubt_attempt = 1, \
        doubt_since = 1, doubt_class = 'hold', doubt_acts_until = 1 WHERE seq = 1",
    "SET state = 'completed' WHERE seq = 1",
    "SET payload = x'00', payload_codec = 'json/1' WHERE seq = 1",
    "SET outcome_kind = 'success' WHERE seq = 1",
    "SET settled_at = 1 WHERE seq = 1",
    "SET state = 'claimed' WHERE seq = 2",
    "SET outcome_kind = NULL WHERE seq = 2",
    "SET outcome_kind = 'maybe' WHERE seq = 2",
    "SET outcome_kind = 'refusal' WHERE seq = 2",
    "SET verdict = 'unknown' WHERE seq = 2",
    "SET ended_at = NULL, verdict = NULL, key_taken = NULL WHERE seq = 2",
    "SET payload = NULL WHERE seq = 2",
    "SET payload_codec = NULL WHERE seq = 2",
    "SET absent_reason = 'expired' WHERE seq = 2",
    "SET payload = NULL, payload_codec = NULL WHERE seq = 2",
    "SET payload = NULL, payload_codec = NULL, absent_reason = 'bored' WHERE seq = 2",
    "SET provider_replay = 2 WHERE seq = 2",
    "SET retain_until = NULL WHERE seq = 2",
    "SET doubt_attempt = 1, doubt_since = 1, doubt_class = 'hold', doubt_acts_until = 1 WHERE seq = 2",
];

/// What the same statements look like when they are in order, so that a refusal above is for what it breaks.
const TAKEN: &[&str] = &[
    "SET fence = 2, attempt = 2 WHERE seq = 1",
    "SET ended_at = 1, verdict = 'unknown', key_taken = 1, send_digest = zeroblob(32) WHERE seq = 1",
    "SET state = 'escaped', doubt_attempt = 1, doubt_since = 1, doubt_class = 'hold', doubt_acts_until = 1, \
        doubt_send_digest = zeroblob(32) WHERE seq = 1",
    "SET state = 'released', ended_at = 1, verdict = 'not_performed', key_taken = 0 WHERE seq = 1",
    "SET accepted_handle = 'job-1', accepted_poll_after = 1 WHERE seq = 1",
    "SET input = x'00', input_codec = 'json/1' WHERE seq = 1",
    "SET payload = NULL, payload_codec = NULL, absent_reason = 'expired' WHERE seq = 2",
    "SET outcome_kind = 'refusal', verdict = 'refused' WHERE seq = 2",
];

#[tokio::test]
async fn every_constraint_refuses_what_it_names() {
    let (_directory, path) = scratch();
    let ledger = open(&path).await;
    win(&ledger, 1).await;
    let record = win(&ledger, 2).await;
    ledger.change(&Owner::of(&record), &success(vec![1])).await.expect("a settle is stored");
    let mut conn = raw(&path).await;
    for set in REFUSED {
        let error = update(&mut conn, set).await.expect_err(set);
        assert!(error.to_string().contains("CHECK constraint failed"), "{set}: {error}");
    }
    for set in TAKEN {
        update(&mut conn, set).await.unwrap_or_else(|error| panic!("{set}: {error}"));
    }
}

/// Tries the update and takes it back.
async fn update(conn: &mut sqlx::SqliteConnection, set: &str) -> sqlx::Result<()> {
    let mut transaction = conn.begin().await?;
    let sql = sqlx::AssertSqlSafe(format!("UPDATE effectual_effects {set}"));
    let updated = sqlx::query(sql).execute(&mut *transaction).await?;
    assert_eq!(updated.rows_affected(), 1, "{set}");
    transaction.rollback().await
}

#[tokio::test]
async fn what_is_beside_a_row_belongs_to_one() {
    let (_directory, path) = scratch();
    win(&open(&path).await, 1).await;
    let mut conn = raw(&path).await;
    for (sql, refusal) in [
        (
            "INSERT INTO effectual_evidence (digest, attempt, fence, at, verdict)
             VALUES (zeroblob(32), 1, 1, 1, 'performed')",
            "FOREIGN KEY constraint failed",
        ),
        (
            "INSERT INTO effectual_evidence (digest, attempt, fence, at, verdict, payload)
             SELECT digest, 1, 1, 1, 'performed', x'00' FROM effectual_effects",
            "CHECK constraint failed",
        ),
        (
            "INSERT INTO effectual_touches (run, digest, at) VALUES ('acme/0123456789abcdef', zeroblob(32), 1)",
            "FOREIGN KEY constraint failed",
        ),
        (
            "INSERT INTO effectual_attempts (digest, attempt, fence, token, class, started_at, lease_until,
                 attempt_timeout_ms, ended_at, verdict, key_taken)
             SELECT digest, 1, 1, x'00', 'hold', 1, 1, 1, 1, 'unknown', 0 FROM effectual_effects",
            "CHECK constraint failed",
        ),
        (
            "INSERT INTO effectual_effects (digest, tenant, alias_of, key_version)
             SELECT digest, tenant, zeroblob(32), 1 FROM effectual_effects",
            "UNIQUE constraint failed",
        ),
    ] {
        let error = execute(&mut conn, sql).await.expect_err(sql);
        assert!(error.to_string().contains(refusal), "{sql}: {error}");
    }
}
