//! What is asked of a grown ledger beside effects: a run's list, what is unsettled, and sweeps.

use std::{num::NonZeroUsize, sync::Arc, time::Instant};

use effectual::{
    Executor, Ledger, RunId, Tenant,
    ledger::{RunPage, Sweep, UnsettledQuery},
};

use crate::{contender::Provider, effectual::order, lines::median, store::Store};

const TIMES: usize = 101;

/// The list of a run with 100 effects, and a look for what a recovery would take up; microseconds, medians.
pub(super) async fn reads(ledger: &dyn Ledger, executor: &Executor, provider: &Arc<Provider>) -> (f64, f64) {
    let tenant = Tenant::parse("acme").expect("a tenant");
    let run = RunId::mint(&tenant);
    let node = executor
        .tenant("acme")
        .expect("a tenant")
        .run(run.clone())
        .expect("a run")
        .node("n")
        .expect("a node");
    for effect in 0..100 {
        // Beyond every key that callers count to.
        let key = u64::MAX - u64::from(number_of(&run)) * 100 - effect;
        order(&node, key, Arc::clone(provider)).await.expect("an outcome");
    }
    let page = RunPage { after: None, rows_max: NonZeroUsize::new(200).expect("more than none") };
    let (mut witness, mut recovery) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        let began = Instant::now();
        let rows = ledger.of_run(&run, &page).await.expect("a list");
        witness.push(began.elapsed().as_secs_f64() * 1e6);
        assert_eq!(rows.len(), 100, "the run's effects");
        let began = Instant::now();
        let query = UnsettledQuery { due_only: true, after: None, limit: 100 };
        ledger.unsettled(&query).await.expect("a page");
        recovery.push(began.elapsed().as_secs_f64() * 1e6);
    }
    (median(witness.into_iter()), median(recovery.into_iter()))
}

/// Something that differs from run to run.
fn number_of(run: &RunId) -> u32 {
    let hash = blake3::hash(run.to_string().as_bytes());
    u32::from_be_bytes(hash.as_bytes()[..4].try_into().expect("4 bytes"))
}

const DUE: u32 = 1000;
const SWEEPS: u32 = 5;

/// So many filled effects are swept in one measurement.
pub(super) const SWEPT: u64 = (DUE * SWEEPS) as u64;

/// Microseconds an effect, in batches of a thousand.
pub(super) async fn sweep(store: &Store, ledger: &dyn Ledger) -> f64 {
    let mut times = Vec::new();
    for _ in 0..SWEEPS {
        make_due(store, Some(DUE)).await;
        let began = Instant::now();
        let mut swept = 0;
        // A ledger may take fewer at once than it is asked for.
        loop {
            let batch = ledger.sweep(Sweep::Outcomes { at_most: DUE }).await.expect("a batch");
            swept += batch.effects;
            if !batch.more || swept >= DUE {
                break;
            }
        }
        times.push(began.elapsed().as_secs_f64() * 1e6 / f64::from(DUE));
        assert_eq!(swept, DUE, "all that are due");
    }
    median(times.into_iter())
}

/// Makes tombstones of everything.
pub(super) async fn forget_all(store: &Store, ledger: &dyn Ledger) {
    make_due(store, None).await;
    while ledger.sweep(Sweep::Outcomes { at_most: 10_000 }).await.expect("a batch").more {}
}

/// Lets the retention of filled effects be over; real ones are still asked for.
async fn make_due(store: &Store, rows: Option<u32>) {
    let row = match store {
        Store::Sqlite(_) => "rowid",
        Store::Postgres { .. } => "ctid",
    };
    let limit = rows.map_or(String::new(), |rows| format!(" LIMIT {rows}"));
    let due = format!(
        "UPDATE effectual_effects SET retain_until = 1 WHERE {row} IN
            (SELECT {row} FROM effectual_effects WHERE outcome_kind IS NOT NULL AND absent_reason IS NULL
                AND provider_key LIKE 'filled-%'{limit})"
    );
    store.execute(&due).await;
}
