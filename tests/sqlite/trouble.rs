//! Trouble while running: each is named, nothing is half stored, and the ledger goes on when it clears.

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use effectual::{
    Ledger, LedgerErrorKind, RunId, SqliteLedger,
    ledger::{Claim, ClaimRequest, Owner, record::Place},
};
use tokio::task::JoinSet;

use crate::support::{count, execute, id, open, raw, request, scratch, success, win};

/// A full disk fails the call and not the ledger: once there is room, it goes on.
#[tokio::test]
async fn a_full_disk_is_named_and_passes() {
    let (_directory, path) = scratch();
    let ledger = SqliteLedger::builder(&path).max_pages(100).open().await.expect("a small ledger");
    let mut settled = 0;
    let error = loop {
        let record = match ledger.claim(&request(settled, 0)).await {
            Ok(Claim::Won { record, .. }) => record,
            Ok(claim) => panic!("expected to win, got {claim:?}"),
            Err(error) => break error,
        };
        match ledger.change(&Owner::of(&record), &success(vec![7; 50_000])).await {
            Ok(_) => settled += 1,
            Err(error) => break error,
        }
        assert!(settled < 100, "the disk never fills");
    };
    assert_eq!((error.kind(), error.is_transient()), (LedgerErrorKind::Full, true), "{error}");
    assert!(error.to_string().contains("effects.db") && error.to_string().contains("make room"), "{error}");
    let stored =
        count(&mut raw(&path).await, "SELECT count(*) FROM effectual_effects WHERE payload IS NOT NULL")
            .await;
    assert_eq!(stored, i64::try_from(settled).expect("few"), "what failed was not half stored");
    for number in 0..settled {
        assert!(
            matches!(ledger.claim(&request(number, 9)).await, Ok(Claim::Settled { .. })),
            "hits need no room"
        );
    }
    execute(&mut raw(&path).await, "UPDATE effectual_effects SET payload = x'00' WHERE payload IS NOT NULL")
        .await
        .expect("room is made");
    let record = win(&ledger, 1_000).await;
    ledger.change(&Owner::of(&record), &success(vec![7; 50_000])).await.expect("there is room again");
}

/// A request that the database refuses for its data fails alone; the others of its commit go through.
#[tokio::test]
async fn bad_data_fails_its_own_call_only() {
    let (_directory, path) = scratch();
    let ledger = open(&path).await;
    let mut calls = JoinSet::new();
    for number in 0..40 {
        let ledger = ledger.clone();
        let attempt_timeout_ms = if number % 10 == 3 { 0 } else { 1_000 };
        let request = ClaimRequest { attempt_timeout_ms, ..request(number, 0) };
        calls.spawn(async move { (number, ledger.claim(&request).await.map_err(|error| error.kind())) });
    }
    for (number, answer) in calls.join_all().await {
        match (number % 10 == 3, answer) {
            (true, Err(LedgerErrorKind::Corrupt)) | (false, Ok(Claim::Won { .. })) => {}
            (_, answer) => panic!("{number}: {answer:?}"),
        }
    }
    assert_eq!(count(&mut raw(&path).await, "SELECT count(*) FROM effectual_effects").await, 36);
}

/// Twice this is longer than one statement waits inside SQLite, so that a more patient ledger has to try again, and ends
/// amid that second try.
const PATIENCE: Duration = Duration::from_millis(600);

/// A writer elsewhere is waited for and never seen; only when it holds on for longer than the patience is the ledger
/// unavailable.
#[tokio::test]
async fn another_writer_is_waited_for() {
    let (_directory, path) = scratch();
    let patient = open(&path).await;
    let hasty = SqliteLedger::builder(&path).busy_patience(PATIENCE).open().await.expect("a ledger");
    let mut other = raw(&path).await;
    execute(&mut other, "BEGIN IMMEDIATE").await.expect("the lock");
    let waiting = tokio::spawn({
        let patient = patient.clone();
        async move { win(&patient, 1).await }
    });
    let asked = Instant::now();
    for _ in 0..2 {
        let error = hasty.claim(&request(2, 0)).await.expect_err("the lock is held");
        assert_eq!(error.kind(), LedgerErrorKind::Unavailable);
        assert!(error.to_string().contains("effects.db"), "{error}");
    }
    assert!(asked.elapsed() >= 2 * PATIENCE && !waiting.is_finished());
    execute(&mut other, "COMMIT").await.expect("released");
    let released = count(&mut other, "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)").await;
    let record = waiting.await.expect("it was stored");
    assert!(
        record.started_at >= released - 100,
        "its lease starts when it could be stored, not when it was asked"
    );
    win(&hasty, 2).await;
}

/// A process that is just creating the file is waited for too.
#[tokio::test]
async fn another_creator_is_waited_for() {
    let (_directory, path) = scratch();
    fs::write(&path, "").expect("an empty file");
    let mut other = raw(&path).await;
    execute(&mut other, "BEGIN EXCLUSIVE").await.expect("the lock");
    let waiting = tokio::spawn({
        let path = path.clone();
        async move { open(&path).await }
    });
    let asked = Instant::now();
    for _ in 0..2 {
        let hasty = SqliteLedger::builder(&path).busy_patience(PATIENCE).open().await;
        assert_eq!(hasty.expect_err("the lock is held").kind(), LedgerErrorKind::Unavailable);
    }
    assert!(asked.elapsed() >= 2 * PATIENCE && !waiting.is_finished());
    execute(&mut other, "COMMIT").await.expect("released");
    win(&waiting.await.expect("it was opened"), 1).await;
}

/// A row that cannot be read fails the calls for its effect and no others, under whichever of its identities.
#[tokio::test]
async fn an_unreadable_row_fails_its_own_effect_only() {
    let (_directory, path) = scratch();
    let ledger = open(&path).await;
    win(&ledger, 1).await;
    win(&ledger, 2).await;
    let mut conn = raw(&path).await;
    execute(&mut conn, "UPDATE effectual_effects SET run = 'not a run' WHERE seq = 1").await.expect("spoilt");
    execute(
        &mut conn,
        "INSERT INTO effectual_effects (digest, tenant, alias_of, key_version)
         SELECT x'00000000000000000000000000000000000000000000000000000000000000ff', tenant, digest, 2
         FROM effectual_effects WHERE seq = 1",
    )
    .await
    .expect("an alias");
    for number in [1, 0xff] {
        let error = ledger.claim(&request(number, 5)).await.expect_err("it cannot be read");
        assert_eq!(error.kind(), LedgerErrorKind::Corrupt);
        assert!(!error.to_string().contains("not a run"), "{error}");
        let error = ledger.read(&id(number)).await.expect_err("it cannot be read");
        assert_eq!(error.kind(), LedgerErrorKind::Corrupt);
    }
    assert!(matches!(ledger.claim(&request(2, 5)).await, Ok(Claim::InFlight { .. })));
}

fn log_of(path: &Path) -> u64 {
    fs::metadata(path.with_extension("db-wal")).map_or(0, |log| log.len())
}

/// The log is moved into the file while work goes on, and is gone at the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_does_not_grow_without_bound() {
    let (_directory, path) = scratch();
    let ledger = Arc::new(open(&path).await);
    let mut tasks = JoinSet::new();
    for task in 0..32 {
        let (ledger, path) = (Arc::clone(&ledger), path.clone());
        tasks.spawn(async move {
            let mut longest = 0;
            for step in 0..200 {
                let record = win(&ledger, task * 1_000 + step).await;
                let settle = success(vec![7; 16_000]);
                ledger.change(&Owner::of(&record), &settle).await.expect("a settle is stored");
                longest = longest.max(log_of(&path));
            }
            longest
        });
    }
    let longest = tasks.join_all().await.into_iter().max().unwrap_or(0);
    let written = 32 * 200 * 16_000;
    assert!(
        longest > 0 && longest < 64 << 20 && longest < written,
        "{longest} bytes of log for {written} written"
    );
    ledger.close().await;
    assert_eq!(log_of(&path), 0);
}

/// What was handed in before the end is stored by it, and what comes after is told so.
#[tokio::test]
async fn closing_stores_what_was_handed_in() {
    let (_directory, path) = scratch();
    let ledger = open(&path).await;
    let mut calls = JoinSet::new();
    for number in 0..200 {
        let ledger = ledger.clone();
        calls.spawn(async move {
            (number, ledger.claim(&request(number, 0)).await.map_err(|error| error.kind()))
        });
    }
    tokio::task::yield_now().await;
    ledger.close().await;
    let answers = calls.join_all().await;
    let ledger = open(&path).await;
    let mut stored = 0;
    for (number, answer) in answers {
        let is_there = ledger.read(&id(number)).await.expect("a read is answered").is_some();
        match answer {
            Ok(Claim::Won { .. }) => stored += 1,
            Err(LedgerErrorKind::Closed) => {}
            answer => panic!("{answer:?}"),
        }
        assert_eq!(is_there, answer.is_ok(), "{number}");
    }
    assert!(stored > 0, "some were handed in before the end");
}

/// The last handle that is dropped ends the thread too: the log is gone without a `close`.
#[tokio::test]
async fn dropping_the_last_handle_closes_the_file() {
    let (_directory, path) = scratch();
    let ledger = open(&path).await;
    let place = Place { run: RunId::parse("acme/0123456789abcdef").ok(), ..Place::default() };
    ledger.claim(&ClaimRequest { place, ..request(1, 0) }).await.expect("a claim is answered");
    assert!(log_of(&path) > 0);
    drop(ledger);
    let closed = async {
        while log_of(&path) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), closed).await.expect("the file is closed");
}
