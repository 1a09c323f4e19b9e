//! A hit reads and does not write, but for the first touch by another run.

use std::{fs, time::Duration};

use effectual::{
    Ledger, RunId, SqliteLedger,
    ledger::{Claim, ClaimRequest, Owner, record::Place},
};

use crate::support::{count, execute, open, raw, request, scratch, success, win};

fn from_run(name: &str, token: u64) -> ClaimRequest {
    let run = RunId::parse(format!("acme/{name:0>16}")).expect("a valid run");
    ClaimRequest { place: Place { run: Some(run), ..Place::default() }, ..request(1, token) }
}

async fn settle_in_run(ledger: &SqliteLedger, request: &ClaimRequest) {
    let claim = ledger.claim(request).await.expect("a claim is answered");
    let Claim::Won { record, .. } = claim else { panic!("expected to win, got {claim:?}") };
    ledger.change(&Owner::of(&record), &success(vec![1])).await.expect("a settle is stored");
}

async fn hit(ledger: &SqliteLedger, request: &ClaimRequest) {
    assert!(matches!(ledger.claim(request).await, Ok(Claim::Settled { .. })));
}

#[tokio::test]
async fn hits_need_no_lock_and_leave_no_trace() {
    let (_directory, path) = scratch();
    let ledger = open(&path).await;
    settle_in_run(&ledger, &from_run("one", 1)).await;
    win(&ledger, 2).await;
    let log = path.with_extension("db-wal");
    let before = fs::read(&log).expect("the log");
    let mut other = raw(&path).await;
    execute(&mut other, "BEGIN IMMEDIATE").await.expect("the lock");
    for token in 2..50 {
        hit(&ledger, &request(1, token)).await;
        hit(&ledger, &from_run("one", token)).await;
        assert!(matches!(ledger.claim(&request(2, token)).await, Ok(Claim::InFlight { .. })));
    }
    execute(&mut other, "ROLLBACK").await.expect("released");
    assert!(fs::read(&log).expect("the log") == before, "nothing was written");
}

#[tokio::test]
async fn the_first_touch_by_another_run_is_kept_once() {
    let (_directory, path) = scratch();
    let ledger = open(&path).await;
    settle_in_run(&ledger, &from_run("one", 1)).await;
    let mut conn = raw(&path).await;
    for token in 2..5 {
        hit(&ledger, &from_run("one", token)).await;
        hit(&ledger, &request(1, token)).await;
    }
    assert_eq!(
        count(&mut conn, "SELECT count(*) FROM effectual_touches").await,
        0,
        "its own run, and no run"
    );
    hit(&ledger, &from_run("two", 10)).await;
    let first = count(&mut conn, "SELECT at FROM effectual_touches").await;
    for token in 11..20 {
        hit(&ledger, &from_run("two", token)).await;
    }
    assert_eq!(count(&mut conn, "SELECT sum(at) FROM effectual_touches").await, first, "the first one stays");
    hit(&ledger, &from_run("three", 20)).await;
    assert_eq!(count(&mut conn, "SELECT count(*) FROM effectual_touches").await, 2);
}

/// Between the look at an effect and the note that a run has met it, the effect is removed. Never an error, and never a win
/// without a row.
#[tokio::test]
async fn f19_a_touch_of_an_effect_that_is_being_removed() {
    let (_directory, path) = scratch();
    let ledger = open(&path).await;
    let mut other = raw(&path).await;
    let (mut expired, mut won) = (0, 0);
    for round in 0..60 {
        settle_in_run(&ledger, &from_run("one", round * 10 + 1)).await;
        execute(&mut other, "UPDATE effectual_effects SET retain_until = 1").await.expect("long ago");
        execute(&mut other, "BEGIN IMMEDIATE; DELETE FROM effectual_effects")
            .await
            .expect("not yet for others");
        let request = from_run("two", round * 10 + 2);
        let (claim, removed) = tokio::join!(ledger.claim(&request), async {
            // The claim has some time for its look, and not so much that it looks again.
            drop(tokio::time::timeout(Duration::from_millis(5), std::future::pending::<()>()).await);
            execute(&mut other, "COMMIT").await
        });
        removed.expect("removed");
        let rows = count(&mut other, "SELECT count(*) FROM effectual_effects").await;
        match claim.expect("an answer, and no error") {
            Claim::Expired => (expired, _) = (expired + 1, assert_eq!(rows, 0)),
            Claim::Won { .. } => (won, _) = (won + 1, assert_eq!(rows, 1)),
            other => panic!("neither what was nor what is: {other:?}"),
        }
        execute(&mut other, "DELETE FROM effectual_effects").await.expect("an empty ledger");
    }
    assert_eq!((count(&mut other, "SELECT count(*) FROM effectual_touches").await, expired + won), (0, 60));
    assert!(expired > 0, "the look came first in none of {won} rounds");
}
