//! An effect that is removed while somebody hangs something on it: a tombstone at the end of its own retention.

use std::time::Duration;

use effectual::{
    Ledger,
    ledger::{
        Claim, ClaimRequest, Owner,
        identities::{Further, Identities},
    },
};
use effectual_tests::{database::PostgresDatabase, wait};

use crate::{apply, database, execute, id, in_run, ledger, number, raw, request, settle, win};

const LIMIT: Duration = Duration::from_secs(30);

/// The answer to a claim that waits for the removal of what it found.
async fn claim_beside_a_removal(database: &PostgresDatabase, claim: ClaimRequest) -> Claim {
    let ledger = ledger(database).await;
    let record = win(&ledger, &in_run("one", "first")).await;
    apply(&ledger, &Owner::of(&record), &settle(b"1")).await;
    let (mut remover, mut observer) = (raw(database).await, raw(database).await);
    execute(&mut remover, "UPDATE effectual_effects SET retain_until = 1").await;
    execute(&mut remover, "BEGIN; DELETE FROM effectual_effects").await;
    let claim = tokio::spawn(async move { ledger.claim(&claim).await.expect("an answer, and no error") });
    wait::until("the claim to wait", LIMIT, async || {
        number(
            &mut observer,
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
        )
        .await
            == 1
    })
    .await;
    execute(&mut remover, "COMMIT").await;
    claim.await.expect("the claim's task")
}

#[tokio::test]
async fn f19_a_touch_of_an_effect_that_is_being_removed() {
    let Some(database) = database("a touch and a removal").await else { return };
    let claim = claim_beside_a_removal(&database, in_run("one", "second")).await;
    assert!(matches!(claim, Claim::Won { .. }), "a row of its own: {claim:?}");
    let mut observer = raw(&database).await;
    assert_eq!(
        number(&mut observer, "SELECT count(*) FROM effectual_effects WHERE state = 'claimed'").await,
        1
    );
    assert_eq!(number(&mut observer, "SELECT count(*) FROM effectual_touches").await, 0);
}

#[tokio::test]
async fn f19_a_further_identity_of_an_effect_that_is_being_removed() {
    let Some(database) = database("an alias and a removal").await else { return };
    let further = vec![Further { id: id("one"), key_version: 1 }];
    let identities = Identities { further, key_fields: vec!["amount".to_owned()] };
    let claim = ClaimRequest { id: id("one, raised"), key_version: 2, identities, ..request("one") };
    let claim = claim_beside_a_removal(&database, claim).await;
    assert!(matches!(claim, Claim::Won { .. }), "a row of its own: {claim:?}");
    let mut observer = raw(&database).await;
    let dangling = "SELECT count(*) FROM effectual_effects alias WHERE alias_of IS NOT NULL AND NOT EXISTS (
        SELECT FROM effectual_effects held WHERE uuid_send(held.digest_head) || held.digest_tail = alias.alias_of)";
    assert_eq!(number(&mut observer, dangling).await, 0);
    assert_eq!(number(&mut observer, "SELECT count(*) FROM effectual_effects").await, 2, "it and its alias");
}
