//! Two claims of one effect, of which the first is rolled back.

use std::sync::Arc;

use effectual::{
    Ledger, PostgresLedger, SqliteLedger,
    ledger::{Claim, record::State},
};
use effectual_tests::{database::SqliteFile, pg_proxy::Fault, scripted::Scripted, wait::until};
use sqlx::{ConnectOptions, Connection, PgConnection, sqlite::SqliteConnectOptions};

use crate::{CLAIM, LIMIT, Wired, effects::*, requests};

/// The first claim's transaction is open when its connection breaks: whoever waited for it gets the effect, and the first,
/// which tries again, finds it taken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f29_a_claim_that_is_rolled_back_goes_to_the_one_that_waited() {
    let Some(wired) = Wired::open("f29 through a pooler", true).await else { return };
    let other = wired.other().await;
    let (first, second) = (executor(&wired.ledger), executor(&other));
    let mut observer = PgConnection::connect(&wired.database.url()).await.expect("a connection");
    for round in 0..5 {
        let provider = Scripted::forgetful([]);
        let order = format!("o-{round}");
        // Through a pooler the claim has a transaction around it: it is held up before its COMMIT.
        wired.proxy.arm(CLAIM, Fault::Stall);
        let (_, scope) = receipted(&first);
        let held = tokio::spawn(holding(&scope, order.clone(), 5, provider.clone()));
        wired.proxy.wait_for_faults(round + 1).await;
        let (receipt, scope) = receipted(&second);
        let waiting = tokio::spawn(holding(&scope, order.clone(), 5, provider.clone()));
        until("the second to wait for the first", LIMIT, async || waits(&mut observer).await).await;
        assert_eq!(provider.keys().len(), 0);
        wired.proxy.cut_stalled();
        let got = waiting.await.expect("no panic").expect("performed by the one that waited");
        let of_first = held.await.expect("no panic").expect("its outcome");
        assert_eq!((got, provider.performed()), (of_first, 1));
        assert_eq!(state(&second, &receipt).await, State::Completed);
    }
}

async fn waits(observer: &mut PgConnection) -> bool {
    let sql = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND wait_event_type = 'Lock'";
    let waiting: i64 = sqlx::query_scalar(sql).fetch_one(observer).await.expect("a count");
    waiting > 0
}

/// The same on a file, where the first is a transaction of another process that has inserted the claim.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f29_a_claim_that_is_rolled_back_on_a_file_goes_to_the_one_that_waited() {
    let file = SqliteFile::new();
    let ledger: Arc<dyn Ledger> = Arc::new(SqliteLedger::open(file.path()).await.expect("a ledger"));
    let executor = executor(&ledger);
    let (_, scope) = receipted(&executor);
    holding(&scope, "before".into(), 5, Scripted::forgetful([])).await.expect("performed");
    let mut other = SqliteConnectOptions::new().filename(file.path()).connect().await.expect("a connection");
    // The same row under the identity that is about to be claimed.
    let id = requests::request(7, 1).id;
    let copied = "BEGIN IMMEDIATE; CREATE TEMP TABLE copy AS SELECT * FROM effectual_effects";
    sqlx::raw_sql(copied).execute(&mut other).await.expect("an open transaction");
    let renamed = sqlx::query("UPDATE copy SET seq = seq + 1, digest = $1").bind(id.digest().to_vec());
    renamed.execute(&mut other).await.expect("a row of the same shape");
    let inserted = sqlx::query("INSERT INTO effectual_effects SELECT * FROM copy").execute(&mut other).await;
    assert_eq!(inserted.expect("the row, which is not committed").rows_affected(), 1);
    let request = requests::request(7, 1);
    let waiting = tokio::spawn({
        let ledger = Arc::clone(&ledger);
        async move { ledger.claim(&request).await }
    });
    // Reads go on beside it, and see nothing of the row.
    assert!(ledger.read(&id).await.expect("a read").is_none());
    assert!(!waiting.is_finished());
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.expect("rolled back");
    let claim = waiting.await.expect("no panic").expect("an answer");
    assert!(matches!(&claim, Claim::Won { record, .. } if record.id == id), "{claim:?}");
    assert!(ledger.read(&id).await.expect("a read").is_some(), "never a duplicate without a row");
}

/// The connection to the server breaks while a claim of it waits, and the ledger is asked by many at once: everybody is told
/// the truth.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f04_many_callers_over_a_wire_that_keeps_breaking_are_one_performance() {
    let Some(wired) = Wired::open("a wire that keeps breaking", false).await else { return };
    let other: Arc<dyn Ledger> =
        Arc::new(PostgresLedger::connect(wired.proxy.url(&wired.database.url())).await.expect("a ledger"));
    let executors = [executor(&wired.ledger), executor(&other)];
    wired.proxy.at_random(7, 1);
    for round in 0..10 {
        let provider = Scripted::forgetful([]);
        let calls: Vec<_> = (0..32)
            .map(|number| {
                let scope = executors[number % 2].tenant("acme").expect("a tenant");
                tokio::spawn(holding(&scope, format!("o-{round}"), 5, provider.clone()))
            })
            .collect();
        for call in calls {
            assert_eq!(call.await.expect("no panic").expect("one outcome for all").number, 1);
        }
        assert_eq!((provider.performed(), provider.keys().len()), (1, 1));
    }
    assert!(wired.proxy.faults() > 10, "{} faults", wired.proxy.faults());
}
