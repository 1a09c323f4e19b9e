//! Pages of effects without an outcome cost what they list, and not what the table holds.

use std::time::Duration;

use effectual::{
    Ledger, PostgresLedger,
    ledger::{Change, Owner, UnsettledQuery},
};
use effectual_tests::wait::until;

use crate::{apply, database, execute, ledger, number, raw, request, settle, win};

const MANY: &str = "INSERT INTO effectual_effects SELECT (many).* FROM (
    SELECT jsonb_populate_record(held, jsonb_build_object('digest_head', gen_random_uuid(), 'token', gen_random_uuid()))
        AS many FROM effectual_effects held CROSS JOIN generate_series(1, 20000) WHERE state = 'completed') AS copies";

/// How often an index of that name was read from.
async fn reads(connection: &mut sqlx::PgConnection, index: &'static str) -> i64 {
    sqlx::query_scalar("SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = $1")
        .bind(index)
        .fetch_one(connection)
        .await
        .expect("the index is there")
}

async fn page(ledger: &PostgresLedger, due_only: bool) -> usize {
    let query = UnsettledQuery { due_only, after: None, limit: 100 };
    ledger.unsettled(&query).await.expect("a page").effects.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_reads_an_index_and_never_the_whole_table() {
    let Some(database) = database("pages of unsettled effects").await else { return };
    let ledger = ledger(&database).await;
    let done = win(&ledger, &request("done")).await;
    apply(&ledger, &Owner::of(&done), &settle(b"1")).await;
    let mut raw = raw(&database).await;
    execute(&mut raw, MANY).await;
    execute(&mut raw, "ANALYZE effectual_effects").await;
    let left = effectual::ledger::ClaimRequest { lease_ms: 1, ..request("left") };
    win(&ledger, &left).await;
    win(&ledger, &request("live")).await;
    until("the lease to end", Duration::from_secs(10), async || page(&ledger, true).await == 1).await;
    assert_eq!(page(&ledger, false).await, 2);
    let scans = "SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'effectual_effects'";
    // Counters come late: those of the rows that were made by hand first.
    let mut by_hand = 0;
    for more in [1, 2] {
        by_hand = number(&mut raw, scans).await;
        let indexes = ["effectual_effects_recoverable", "effectual_effects_waiting"];
        for index in indexes {
            let before = reads(&mut raw, index).await;
            until("the counters to show it", Duration::from_secs(30), async || {
                page(&ledger, true).await;
                page(&ledger, false).await;
                reads(&mut raw, index).await >= before + more
            })
            .await;
        }
    }
    assert_eq!(number(&mut raw, scans).await, by_hand, "the table was read from end to end");
}

/// A renewal changes nothing that an index holds, so that it stays on the row's page.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_makes_no_index_entry() {
    let Some(database) = database("renewals within a page").await else { return };
    let ledger = ledger(&database).await;
    let mut record = win(&ledger, &request("renewed")).await;
    for _ in 0..5 {
        record = apply(&ledger, &Owner::of(&record), &Change::Renew { lease_ms: 60_000 }).await;
    }
    let mut raw = raw(&database).await;
    let updates = "SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'effectual_effects'";
    until("the counters to show it", Duration::from_secs(30), async || number(&mut raw, updates).await >= 5)
        .await;
    let within = "SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'effectual_effects'";
    assert_eq!(number(&mut raw, within).await, number(&mut raw, updates).await);
}
