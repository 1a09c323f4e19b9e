//! Claims: who wins, what is read, and that a hit leaves no trace.

use std::{sync::Arc, time::Duration};

use effectual::{
    Ledger, LedgerErrorKind, PostgresLedger,
    ledger::{Claim, ClaimRequest, Owner, record::State},
};
use effectual_tests::{database::PostgresDatabase, wait};
use sqlx::{PgConnection, Row};
use tokio::task::JoinSet;

use crate::{apply, database, execute, id, in_run, ledger, number, raw, request, settle, win};

const LIMIT: Duration = Duration::from_secs(30);

#[tokio::test]
async fn of_64_claims_over_two_ledgers_one_wins() {
    let Some(database) = database("one winner").await else { return };
    let ledgers = [Arc::new(ledger(&database).await), Arc::new(ledger(&database).await)];
    let mut claims = JoinSet::new();
    for n in 0..64 {
        let ledger = Arc::clone(&ledgers[n % 2]);
        claims.spawn(async move { ledger.claim(&request("one")).await.expect("an answer") });
    }
    let answers = claims.join_all().await;
    let won = answers.iter().filter(|claim| matches!(claim, Claim::Won { .. })).count();
    let in_flight = answers.iter().filter(|claim| matches!(claim, Claim::InFlight { .. })).count();
    assert_eq!((won, in_flight), (1, 63));
    assert_eq!(number(&mut raw(&database).await, "SELECT count(*) FROM effectual_effects").await, 1);
}

/// Claims an effect while another connection has inserted it and not yet committed; gives the claim's answer.
async fn claim_behind(database: &PostgresDatabase, end: &'static str) -> Claim {
    let ledger = ledger(database).await;
    win(&ledger, &request("pattern")).await;
    let (mut winner, mut observer) = (raw(database).await, raw(database).await);
    let late = request("late");
    execute(&mut winner, "BEGIN").await;
    sqlx::query(
        "INSERT INTO effectual_effects (digest_head, digest_tail, tenant, key_version, operation, keying, provider_key,
            fingerprints, created_at, state, fence, attempt, token, class, started_at, lease_until, attempt_timeout_ms)
        SELECT $1, $2, tenant, key_version, operation, keying, provider_key, fingerprints, created_at, state, fence,
            attempt, gen_random_uuid(), class, started_at, lease_until, attempt_timeout_ms FROM effectual_effects",
    )
    .bind(uuid::Uuid::from_slice(&late.id.digest()[..16]).expect("16 bytes"))
    .bind(&late.id.digest()[16..])
    .execute(&mut winner)
    .await
    .expect("the winner's row");
    let claim = tokio::spawn(async move { ledger.claim(&late).await.expect("an answer") });
    wait::until("the claim to wait for the winner", LIMIT, async || waiting(&mut observer).await == 1).await;
    execute(&mut winner, end).await;
    claim.await.expect("the claim's task")
}

async fn waiting(observer: &mut PgConnection) -> i64 {
    number(
        observer,
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    )
    .await
}

#[tokio::test]
async fn a_claim_waits_for_a_winner_that_commits_late() {
    let Some(database) = database("a late commit").await else { return };
    assert!(matches!(claim_behind(&database, "COMMIT").await, Claim::InFlight { .. }));
}

#[tokio::test]
async fn a_claim_wins_behind_a_winner_that_rolls_back() {
    let Some(database) = database("a rollback").await else { return };
    assert!(matches!(claim_behind(&database, "ROLLBACK").await, Claim::Won { .. }));
}

#[tokio::test]
async fn a_row_that_is_held_for_long_keeps_no_other_effect_from_being_stored() {
    let Some(database) = database("a held row").await else { return };
    let builder = PostgresLedger::builder(database.url()).writers(1).patience(LIMIT);
    let ledger = Arc::new(builder.connect().await.expect("a ledger"));
    let mut owners = Vec::new();
    for n in 0..8 {
        owners.push(Owner::of(&win(&ledger, &request(&n.to_string())).await));
    }
    let mut holder = raw(&database).await;
    execute(&mut holder, "BEGIN; SELECT FROM effectual_effects WHERE provider_key = 'key of 3' FOR UPDATE")
        .await;
    let mut settles = JoinSet::new();
    for owner in owners {
        let ledger = Arc::clone(&ledger);
        settles.spawn(async move { apply(&ledger, &owner, &settle(b"1")).await.state });
    }
    const STORED: &str = "SELECT count(*) FROM effectual_effects WHERE state = 'completed'";
    let mut observer = raw(&database).await;
    wait::until("the others to be stored", LIMIT, async || number(&mut observer, STORED).await == 7).await;
    execute(&mut holder, "ROLLBACK").await;
    assert_eq!(settles.join_all().await, [State::Completed; 8]);
}

/// What changes whenever the row is written or locked.
async fn version(connection: &mut PgConnection) -> String {
    let row = sqlx::query("SELECT xmin::text, xmax::text, ctid::text FROM effectual_effects")
        .fetch_one(connection)
        .await
        .expect("the row");
    format!("{} {} {}", row.get::<String, _>(0), row.get::<String, _>(1), row.get::<String, _>(2))
}

#[tokio::test]
async fn a_hit_writes_nothing() {
    let Some(database) = database("a hit").await else { return };
    let ledger = ledger(&database).await;
    let owner = Owner::of(&win(&ledger, &request("one")).await);
    let stored = apply(&ledger, &owner, &settle(b"{\"a\":1}")).await;
    let mut observer = raw(&database).await;
    let before = version(&mut observer).await;
    for _ in 0..10 {
        let Ok(Claim::Settled { record, .. }) = ledger.claim(&request("one")).await else {
            panic!("not settled")
        };
        assert_eq!(*record, stored);
    }
    assert_eq!(version(&mut observer).await, before);
}

#[tokio::test]
async fn the_first_touch_by_another_run_is_kept_once() {
    let Some(database) = database("touches").await else { return };
    let ledger = ledger(&database).await;
    let owner = Owner::of(&win(&ledger, &in_run("one", "a")).await);
    apply(&ledger, &owner, &settle(b"1")).await;
    let mut observer = raw(&database).await;
    let hit = async |by: ClaimRequest| assert!(matches!(ledger.claim(&by).await, Ok(Claim::Settled { .. })));

    hit(in_run("one", "a")).await;
    hit(request("one")).await;
    assert_eq!(number(&mut observer, "SELECT count(*) FROM effectual_touches").await, 0);

    hit(in_run("one", "b")).await;
    const TOUCH: &str =
        "SELECT run || ' ' || node || ' ' || invocation || ' ' || at || ' ' || xmin FROM effectual_touches";
    let first: String = sqlx::query_scalar(TOUCH).fetch_one(&mut observer).await.expect("a touch");
    assert!(first.starts_with(&format!("{} charge i:1 1", crate::run("b"))), "{first}");
    let version = version(&mut observer).await;
    hit(in_run("one", "b")).await;
    assert_eq!(
        sqlx::query_scalar::<_, String>(TOUCH).fetch_one(&mut observer).await.expect("one touch"),
        first
    );
    assert_eq!(self::version(&mut observer).await, version, "a known touch is not written again");
}

#[tokio::test]
async fn digests_that_share_a_head_are_not_one_effect() {
    let Some(database) = database("a head collision").await else { return };
    let ledger = ledger(&database).await;
    let first = request("one");
    win(&ledger, &first).await;
    let mut text = first.id.to_string();
    let last = if text.ends_with('0') { "1" } else { "0" };
    text.replace_range(text.len() - 1.., last);
    let other = ClaimRequest { id: text.parse().expect("a valid effect id"), ..request("other") };

    let error = ledger.claim(&other).await.expect_err("no claim of another effect's row");
    assert_eq!(error.kind(), LedgerErrorKind::Corrupt);
    assert!(error.to_string().contains("another effect"), "{error}");
    assert_eq!(ledger.read(&other.id).await.expect_err("no read").kind(), LedgerErrorKind::Corrupt);
    let owner = Owner { seen: None, ..Owner::of(&win(&ledger, &request("third")).await) };
    let owner = Owner { id: other.id, ..owner };
    let error = ledger.change(&owner, &settle(b"1")).await.expect_err("no change of another effect's row");
    assert_eq!(error.kind(), LedgerErrorKind::Corrupt);

    // In one batch: the one that is inserted is not taken for the other.
    let (mut one, mut two) = (request("x"), request("x"));
    text = one.id.to_string();
    text.replace_range(text.len() - 1.., if text.ends_with('0') { "1" } else { "0" });
    (one.id, two.id) = (id("x"), text.parse().expect("a valid effect id"));
    let (one, two) = tokio::join!(ledger.claim(&one), ledger.claim(&two));
    assert_ne!(one.is_ok(), two.is_ok(), "one of {one:?} and {two:?}");
}

#[tokio::test]
async fn an_alias_of_nothing_is_not_taken_for_an_effect() {
    let Some(database) = database("an alias").await else { return };
    let ledger = ledger(&database).await;
    let alias = request("alias");
    sqlx::query(
        "INSERT INTO effectual_effects (digest_head, digest_tail, tenant, alias_of, key_version)
        VALUES ($1, $2, 'acme', $3, 1)",
    )
    .bind(uuid::Uuid::from_slice(&alias.id.digest()[..16]).expect("16 bytes"))
    .bind(&alias.id.digest()[16..])
    .bind(id("holder").digest().as_slice())
    .execute(&mut raw(&database).await)
    .await
    .expect("an alias row");
    let error = ledger.claim(&alias).await.expect_err("no effect");
    assert_eq!(error.kind(), LedgerErrorKind::Corrupt);
    assert!(ledger.read(&alias.id).await.expect("an answer").is_none());
}

#[tokio::test]
async fn the_clock_is_the_databases_and_a_test_may_move_it() {
    let Some(database) = database("the clock").await else { return };
    let now = ledger(&database).await;
    let later =
        PostgresLedger::builder(database.url()).clock_offset_ms(3_600_000).connect().await.expect("a ledger");
    let first = win(&now, &request("one")).await;
    let clock = number(&mut raw(&database).await, "SELECT (extract(epoch FROM now()) * 1000)::bigint").await;
    assert!((clock - 30_000..=clock + 1).contains(&first.created_at), "{} at {clock}", first.created_at);
    assert_eq!(first.lease_until, first.created_at + 60_000);

    assert!(matches!(now.claim(&request("one")).await, Ok(Claim::InFlight { .. })));
    let second = win(&later, &request("one")).await;
    assert_eq!((second.attempt, second.fence), (2, 2));
    let hour = first.started_at + 3_600_000..=clock + 3_630_000;
    assert!(hour.contains(&second.started_at), "{} not in {hour:?}", second.started_at);
    let history = later.read(&first.id).await.expect("a read").expect("the effect");
    assert_eq!(history.effect, second);
    assert_eq!(history.closed.iter().map(|closed| closed.token).collect::<Vec<_>>(), [first.token]);
}

#[tokio::test]
async fn a_claim_is_on_disk_whatever_the_database_says() {
    let Some(database) = database("durable commits").await else { return };
    let mut observer = raw(&database).await;
    execute(
        &mut observer,
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$",
    )
    .await;
    let ledger = ledger(&database).await;
    let check: String = sqlx::query_scalar("SHOW synchronous_commit")
        .fetch_one(&mut raw(&database).await)
        .await
        .expect("the setting");
    assert_eq!(check, "off");
    for n in 0..50 {
        let written = number(&mut observer, "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").await;
        win(&ledger, &request(&n.to_string())).await;
        // A commit that does not wait is flushed up to 600 ms later.
        let flushed = number(&mut observer, "SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint").await;
        assert!(flushed > written, "claim {n} is not on disk");
    }
}

/// Every write sets it for itself: `off` in the server, the database or the role cannot lose what was acknowledged.
#[tokio::test]
async fn f43_every_write_is_on_disk_though_commits_are_not_synchronous() {
    let Some(database) = database("a database that does not wait").await else { return };
    let mut observer = raw(&database).await;
    execute(
        &mut observer,
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$",
    )
    .await;
    let ledger = ledger(&database).await;
    let by = effectual::By::new("the privacy job", "a test").expect("who and why");
    for n in 0..20 {
        let written = async |observer: &mut PgConnection| {
            number(observer, "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").await
        };
        let flushed = async |observer: &mut PgConnection| {
            number(observer, "SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint").await
        };
        let before = written(&mut observer).await;
        let record = win(&ledger, &request(&n.to_string())).await;
        assert!(flushed(&mut observer).await > before, "claim {n} is not on disk");
        let before = written(&mut observer).await;
        apply(&ledger, &Owner::of(&record), &settle(b"1")).await;
        assert!(flushed(&mut observer).await > before, "settle {n} is not on disk");
        let before = written(&mut observer).await;
        ledger.forget(&record.id, &by).await.expect("forgotten");
        assert!(flushed(&mut observer).await > before, "what was forgotten, {n}, is not on disk");
    }
}
