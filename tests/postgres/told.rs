//! A waiter is told when another process' claim ends, and nobody is told where nobody waits.

use std::{sync::Arc, time::Duration};

use effectual::{Ledger, ledger::Owner};
use effectual_tests::wait;
use sqlx::{PgConnection, postgres::PgListener};

use crate::{apply, database, execute, ledger, number, raw, request, settle, win};

const LIMIT: Duration = Duration::from_secs(30);

async fn until_both_listen(observer: &mut PgConnection) {
    const LISTENING: &str = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'effectual' AND query LIKE '%LISTEN%'
        AND state = 'idle'";
    wait::until("both ledgers to listen", LIMIT, async || number(observer, LISTENING).await == 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_of_another_process_is_told() {
    let Some(database) = database("a waiter is told").await else { return };
    let (winner, waiter) = (ledger(&database).await, Arc::new(ledger(&database).await));
    assert!(waiter.announces());
    until_both_listen(&mut raw(&database).await).await;
    let mut heard = PgListener::connect(&database.url()).await.expect("a listener");
    heard.listen("effectual_awaited").await.expect("it listens");
    let mut told = 0;
    for n in 0..10 {
        let request = request(&n.to_string());
        let record = win(&winner, &request).await;
        let (ledger, id) = (Arc::clone(&waiter), request.id.clone());
        let mut waiting = tokio::spawn(async move { ledger.changed(&id).await });
        heard.recv().await.expect("the waiter says that it waits");
        assert!(!waiting.is_finished(), "nothing has changed yet");
        apply(&winner, &Owner::of(&record), &settle(b"1")).await;
        // The winner may settle before it has heard that somebody waits: then the waiter finds out by looking again.
        let is_told = tokio::time::timeout(Duration::from_secs(2), &mut waiting).await.is_ok();
        told += usize::from(is_told);
        waiting.abort();
    }
    assert!(told >= 5, "told {told} times of 10");
}

#[tokio::test]
async fn where_nobody_waits_nobody_is_told() {
    let Some(database) = database("nobody is told").await else { return };
    let ledger = ledger(&database).await;
    let mut heard = PgListener::connect(&database.url()).await.expect("a listener");
    heard.listen_all(["effectual_awaited", "effectual_moved"]).await.expect("it listens");
    for n in 0..20 {
        let record = win(&ledger, &request(&n.to_string())).await;
        apply(&ledger, &Owner::of(&record), &settle(b"1")).await;
    }
    ledger.close().await;
    execute(&mut raw(&database).await, "NOTIFY effectual_moved, 'the end'").await;
    assert_eq!(heard.recv().await.expect("a notification").payload(), "the end");
}
