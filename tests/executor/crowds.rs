//! Many callers at once. What they wait is counted in batches, not in seconds.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use effectual::{
    EffectContext, ErrorKind, Executor, Ledger, LedgerErrorKind, PostgresLedger, SqliteLedger, effect,
    ledger::WhenFull,
};
use effectual_tests::{
    database::{PostgresDatabase, SqliteFile},
    servers,
    wait::until_true,
};
use tokio::task::JoinSet;

/// As many as one commit carries at the most.
const BATCH: usize = 256;

const FLOOD: u64 = 20 * BATCH as u64;

#[effect(keying = business_identity, on_unknown = hold)]
async fn order(_cx: &EffectContext, #[key] order: u64) -> effectual::Result<u64, effectual::Never> {
    Ok(order)
}

effectual_tests::on_each_ledger!(a_tenants_flood_delays_no_other_tenants_call);

async fn a_tenants_flood_delays_no_other_tenants_call(ledger: Arc<dyn Ledger>) {
    let executor = Executor::builder(ledger).build().expect("an executor");
    let answered = Arc::<AtomicUsize>::default();
    let mut flood = JoinSet::new();
    for number in 0..FLOOD {
        let (scope, answered) = (executor.tenant("acme").expect("a tenant"), Arc::clone(&answered));
        flood.spawn(async move {
            order(&scope, number).await.expect("an outcome");
            answered.fetch_add(1, Ordering::SeqCst);
        });
    }
    until_true(|| answered.load(Ordering::SeqCst) > 0).await;
    let before = answered.load(Ordering::SeqCst);
    let scope = executor.tenant("bolt").expect("a tenant");
    order(&scope, 1).await.expect("an outcome");
    let passed = answered.load(Ordering::SeqCst) - before;
    // Two writers may each have a batch under way and one before the next, for the claim and for the settle.
    assert!(passed <= 8 * BATCH, "{passed} of the flood were answered first");
    flood.join_all().await;
}

async fn refuses_what_finds_no_room(ledger: impl Ledger) {
    let executor = Executor::builder(ledger).build().expect("an executor");
    let mut calls = JoinSet::new();
    for number in 0..500 {
        let scope = executor.tenant("acme").expect("a tenant");
        calls.spawn(async move { (number, order(&scope, number).await) });
    }
    let (mut done, mut refused) = (0, Vec::new());
    for (number, end) in calls.join_all().await {
        match end {
            Ok(_) => done += 1,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Ledger, "{error}");
                let kind = error.ledger_error().map(effectual::LedgerError::kind);
                assert_eq!(kind, Some(LedgerErrorKind::Overloaded), "{error}");
                refused.push(number);
            }
        }
    }
    assert!(done > 0 && !refused.is_empty(), "{done} of 500 found room");
    let scope = executor.tenant("acme").expect("a tenant");
    for number in refused {
        order(&scope, number).await.expect("nothing of it was started, and there is room now");
    }
}

#[tokio::test]
async fn sqlite_refuses_what_finds_no_room() {
    let file = SqliteFile::new();
    let ledger = SqliteLedger::builder(file.path()).waiting_max(3).when_full(WhenFull::Refuse);
    refuses_what_finds_no_room(ledger.open().await.expect("a ledger")).await;
}

#[tokio::test]
async fn postgres_refuses_what_finds_no_room() {
    let Some(server) = servers::postgres("a full queue on PostgreSQL") else { return };
    let database = PostgresDatabase::create(&server).await;
    let ledger = PostgresLedger::builder(database.url()).waiting_max(3).when_full(WhenFull::Refuse);
    refuses_what_finds_no_room(ledger.connect().await.expect("a ledger")).await;
}
