//! The rules that the database holds rows to, whoever writes them.

use effectual::{Ledger, ledger::Owner};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::{apply, database, ledger, number, raw, request, settle, win};

/// What no update of a claimed effect may set, by the rule that refuses it.
const REFUSED_OF_CLAIMED: &[(&str, &str)] = &[
    ("effectual_half_check", "digest_tail = 'short'"),
    ("effectual_digest_check", "alias_of = 'short'"),
    ("effectual_ordinal_check", "key_version = 0"),
    ("effectual_keying_check", "keying = 'other'"),
    ("effectual_state_check", "state = 'done'"),
    ("effectual_ordinal_check", "fence = 0"),
    ("effectual_ordinal_check", "attempt = 0"),
    ("effectual_class_check", "class = 'other'"),
    ("effectual_ordinal_check", "attempt_timeout_ms = 0"),
    ("effectual_verdict_check", "ended_at = 1, verdict = 'maybe', key_taken = true"),
    ("effectual_digest_check", "ended_at = 1, verdict = 'unknown', key_taken = true, send_digest = 'short'"),
    ("effectual_ordinal_check", "doubt_attempt = 0, doubt_since = 1, doubt_class = 'hold', doubt_acts_until = 1"),
    ("effectual_class_check", "doubt_attempt = 1, doubt_since = 1, doubt_class = 'other', doubt_acts_until = 1"),
    ("effectual_digest_check", "doubt_send_digest = 'short'"),
    ("effectual_outcome_check", "outcome_kind = 'other'"),
    ("effectual_absence_check", "absent_reason = 'bored'"),
    ("effectual_ordinal_check", "revision = 0"),
    ("alias_or_effect", "operation = NULL"),
    ("alias_or_effect", "keying = NULL"),
    ("alias_or_effect", "provider_key = NULL"),
    ("alias_or_effect", "fingerprints = NULL"),
    ("alias_or_effect", "created_at = NULL"),
    ("alias_or_effect", "state = NULL"),
    ("alias_or_effect", "fence = NULL"),
    ("alias_or_effect", "attempt = NULL"),
    ("alias_or_effect", "token = NULL"),
    ("alias_or_effect", "class = NULL"),
    ("alias_or_effect", "started_at = NULL"),
    ("alias_or_effect", "lease_until = NULL"),
    ("alias_or_effect", "attempt_timeout_ms = NULL"),
    ("alias_or_effect", "alias_of = sha256('')"),
    ("alias_or_effect", "alias_of = sha256(''), state = NULL, fence = NULL, attempt = NULL"),
    ("alias_or_effect", "alias_of = sha256(''), state = NULL, fence = NULL, token = NULL"),
    ("alias_or_effect", "alias_of = sha256(''), state = NULL, attempt = NULL, token = NULL"),
    ("alias_or_effect", "alias_of = sha256(''), fence = NULL, attempt = NULL, token = NULL"),
    (
        "alias_or_effect",
        "alias_of = uuid_send(digest_head) || digest_tail, state = NULL, fence = NULL, attempt = NULL, token = NULL",
    ),
    ("end_whole", "ended_at = 1"),
    ("end_whole", "verdict = 'unknown'"),
    ("end_whole", "key_taken = true"),
    ("end_whole", "ended_at = 1, verdict = 'unknown'"),
    ("end_whole", "send_digest = sha256('')"),
    ("doubt_whole", "doubt_attempt = 1"),
    ("doubt_whole", "doubt_since = 1"),
    ("doubt_whole", "doubt_class = 'hold'"),
    ("doubt_whole", "doubt_acts_until = 1"),
    ("doubt_whole", "doubt_attempt = 1, doubt_since = 1, doubt_class = 'hold'"),
    ("doubt_whole", "doubt_send_digest = sha256('')"),
    ("doubt_of_an_attempt", "doubt_attempt = 2, doubt_since = 1, doubt_class = 'hold', doubt_acts_until = 1"),
    ("accepted_whole", "accepted_handle = 'job'"),
    ("accepted_whole", "accepted_poll_after = 1"),
    ("input_whole", "input = 'x'"),
    ("input_whole", "input_codec = 'json/1'"),
    ("completed_has_outcome", "state = 'completed'"),
    ("completed_has_outcome", "payload = 'x', payload_codec = 'json/1'"),
    ("completed_has_outcome", "payload_codec = 'json/1'"),
    ("completed_has_outcome", "outcome_kind = 'success'"),
    ("completed_has_outcome", "absent_reason = 'expired'"),
    ("completed_has_outcome", "provider_replay = false"),
    ("completed_has_outcome", "settled_at = 1"),
    ("completed_has_outcome", "retain_until = 1"),
    ("released_is_known", "state = 'released'"),
    (
        "released_is_known",
        "state = 'released', ended_at = 1, verdict = 'unknown', key_taken = true, doubt_attempt = 1, doubt_since = 1,
            doubt_class = 'hold', doubt_acts_until = 1",
    ),
    ("escaped_is_doubted", "state = 'escaped'"),
];

/// What no update of a completed effect may set; all are one rule's.
const REFUSED_OF_COMPLETED: &[&str] = &[
    "state = 'claimed'",
    "outcome_kind = NULL",
    "outcome_kind = 'refusal'",
    "verdict = 'refused'",
    "provider_replay = NULL",
    "settled_at = NULL",
    "retain_until = NULL",
    "payload = NULL",
    "payload_codec = NULL",
    "payload = NULL, payload_codec = NULL",
    "absent_reason = 'expired'",
    "payload = NULL, absent_reason = 'expired'",
    "ended_at = NULL, verdict = NULL, key_taken = NULL, send_digest = NULL",
    "doubt_attempt = 1, doubt_since = 1, doubt_class = 'hold', doubt_acts_until = 1",
];

/// What is in order, so that a refusal above is for what it breaks.
const TAKEN: &[(&str, &str)] = &[
    ("claimed", "fence = 2, attempt = 2"),
    ("claimed", "ended_at = 1, verdict = 'unknown', key_taken = true, send_digest = sha256('')"),
    ("claimed", "state = 'released', ended_at = 1, verdict = 'not_performed', key_taken = false"),
    (
        "claimed",
        "state = 'escaped', doubt_attempt = 1, doubt_since = 1, doubt_class = 'hold', doubt_acts_until = 1,
            doubt_send_digest = sha256('')",
    ),
    ("claimed", "accepted_handle = 'job', accepted_poll_after = 1"),
    ("claimed", "input = 'x', input_codec = 'json/1'"),
    ("claimed", "alias_of = sha256(''), state = NULL, fence = NULL, attempt = NULL, token = NULL"),
    ("completed", "payload = NULL, payload_codec = NULL, absent_reason = 'expired'"),
    ("completed", "outcome_kind = 'refusal', verdict = 'refused'"),
];

#[tokio::test]
async fn the_database_enforces_the_states() {
    let Some(database) = database("raw SQL").await else { return };
    let ledger = ledger(&database).await;
    win(&ledger, &request("one")).await;
    let record = win(&ledger, &request("two")).await;
    apply(&ledger, &Owner::of(&record), &settle(b"1")).await;
    let mut connection = raw(&database).await;
    for (rule, set) in REFUSED_OF_CLAIMED {
        assert_eq!(refusal(&mut connection, "claimed", set).await.as_deref(), Some(*rule), "{set}");
    }
    for set in REFUSED_OF_COMPLETED {
        let refused = refusal(&mut connection, "completed", set).await;
        assert_eq!(refused.as_deref(), Some("completed_has_outcome"), "{set}");
    }
    for (state, set) in TAKEN {
        assert_eq!(refusal(&mut connection, state, set).await, None, "{set}");
    }
}

/// The rule that refuses an update of the effects in `state`; what is not refused is taken back.
async fn refusal(connection: &mut PgConnection, state: &str, set: &str) -> Option<String> {
    let update = AssertSqlSafe(format!("UPDATE effectual_effects SET {set} WHERE state = '{state}'"));
    let mut transaction = connection.begin().await.expect("a transaction");
    let updated = sqlx::raw_sql(update).execute(&mut *transaction).await;
    transaction.rollback().await.expect("taken back");
    let error = match updated {
        Ok(updated) => {
            assert_eq!(updated.rows_affected(), 1, "{set}");
            return None;
        }
        Err(error) => error.into_database_error().unwrap_or_else(|| panic!("{set}: not refused")),
    };
    assert_eq!(error.code().as_deref(), Some("23514"), "{set}: {error}");
    Some(error.constraint().unwrap_or_else(|| panic!("{set}: {error}")).to_owned())
}

/// Rows known at sight are rows that keep the rules: random ones, most of them a change or two away from a usual one, are
/// judged by the table's check and by the rules alone.
#[tokio::test]
async fn what_is_known_at_sight_keeps_the_rules() {
    const JUDGE: &str = "DO $$
        DECLARE
            usual jsonb[] := (SELECT array_agg(to_jsonb(held)) FROM effectual_effects held);
            of text[] := (SELECT array_agg(attname::text) FROM pg_attribute
                WHERE attrelid = 'effectual_effects'::regclass AND attnum > 0);
            other jsonb := (SELECT jsonb_object_agg(attname, CASE format_type(atttypid, NULL)
                WHEN 'effectual_keying' THEN '\"activity-recipe\"' WHEN 'effectual_class' THEN '\"rerun\"'
                WHEN 'effectual_absence' THEN '\"too_large\"' WHEN 'effectual_digest' THEN to_jsonb(sha256('other'))
                WHEN 'effectual_half' THEN to_jsonb(substring(sha256('other') FOR 16))
                WHEN 'uuid' THEN to_jsonb(md5('other')) WHEN 'boolean' THEN 'true' ELSE '\"2\"' END)
                FROM pg_attribute WHERE attrelid = 'effectual_effects'::regclass AND attnum > 0);
            states text[] := '{claimed,completed,released,escaped}';
            verdicts text[] := '{performed,refused,not_performed,unknown}';
            outcomes text[] := '{success,refusal}';
            doc jsonb; picked text; held effectual_effects; ruled boolean; checked boolean;
            taken int := 0; refused int := 0;
        BEGIN
            PERFORM setseed(0.5);
            FOR round IN 1..8000 LOOP
                doc := usual[1 + floor(random() * array_length(usual, 1))];
                FOR change IN 1..floor(random() * 4) LOOP
                    picked := of[1 + floor(random() * array_length(of, 1))];
                    doc := doc || jsonb_build_object(picked, CASE WHEN random() < 0.4 THEN NULL ELSE CASE picked
                        WHEN 'state' THEN to_jsonb(states[1 + floor(random() * 4)])
                        WHEN 'verdict' THEN to_jsonb(verdicts[1 + floor(random() * 4)])
                        WHEN 'outcome_kind' THEN to_jsonb(outcomes[1 + floor(random() * 2)])
                        ELSE other -> picked END END);
                END LOOP;
                held := jsonb_populate_record(NULL::effectual_effects, doc);
                BEGIN ruled := num_nulls(held::effectual_effect) = 0;
                EXCEPTION WHEN check_violation THEN ruled := false; END;
                BEGIN checked := effectual_is_an_effect(held, NULL);
                EXCEPTION WHEN check_violation THEN checked := false; END;
                IF ruled IS DISTINCT FROM checked THEN RAISE 'by the rules %, at sight %: %', ruled, checked, doc; END IF;
                IF ruled THEN taken := taken + 1; ELSE refused := refused + 1; END IF;
            END LOOP;
            IF least(taken, refused) < 1000 THEN RAISE '% taken and % refused', taken, refused; END IF;
        END $$";
    let Some(database) = database("rows known at sight").await else { return };
    let ledger = ledger(&database).await;
    win(&ledger, &request("one")).await;
    let record = win(&ledger, &request("two")).await;
    apply(&ledger, &Owner::of(&record), &settle(b"1")).await;
    sqlx::raw_sql(JUDGE).execute(&mut raw(&database).await).await.expect("both say the same of every row");
}

#[tokio::test]
async fn what_is_beside_a_row_has_its_rules_too() {
    let Some(database) = database("raw SQL beside a row").await else { return };
    win(&ledger(&database).await, &request("one")).await;
    let mut connection = raw(&database).await;
    let attempt = "INSERT INTO effectual_attempts (digest_head, token, started_at, lease_until, attempt_timeout_ms,
        ended_at, key_taken, attempt, fence, class, verdict, send_digest) SELECT digest_head, token, 1, 1, 1, 1, true, ";
    let evidence =
        "INSERT INTO effectual_evidence (digest_head, attempt, fence, at, verdict, payload, payload_codec)
        SELECT digest_head, 1, 1, 1, ";
    for (insert, values, is_taken) in [
        (attempt, "1, 1, 'hold', 'unknown', sha256('')", true),
        (attempt, "0, 1, 'hold', 'unknown', NULL", false),
        (attempt, "1, 0, 'hold', 'unknown', NULL", false),
        (attempt, "1, 1, 'other', 'unknown', NULL", false),
        (attempt, "1, 1, 'hold', 'maybe', NULL", false),
        (attempt, "1, 1, 'hold', 'unknown', 'short'", false),
        (evidence, "'performed', 'x', 'json/1'", true),
        (evidence, "'maybe', NULL, NULL", false),
        (evidence, "'performed', 'x', NULL", false),
    ] {
        let insert = AssertSqlSafe(format!("{insert}{values} FROM effectual_effects"));
        let mut transaction = connection.begin().await.expect("a transaction");
        let inserted = sqlx::raw_sql(insert).execute(&mut *transaction).await;
        transaction.rollback().await.expect("taken back");
        let code =
            inserted.err().and_then(|error| error.as_database_error()?.code().map(|code| code.into_owned()));
        assert_eq!(code.as_deref(), (!is_taken).then_some("23514"), "{values}");
    }
}

/// Each statement that writes reads a table's CHECKs anew: 28,000 characters of them were most of a claim.
#[tokio::test]
async fn a_table_has_little_to_read_anew() {
    let Some(database) = database("the length of CHECKs").await else { return };
    ledger(&database).await.close().await;
    let length =
        "SELECT max(length)::bigint FROM (SELECT sum(length(conbin::text)) AS length FROM pg_constraint
        WHERE contype = 'c' AND conrelid <> 0 GROUP BY conrelid) of_tables";
    let length = number(&mut raw(&database).await, length).await;
    assert!((1..1_000).contains(&length), "{length}");
}
