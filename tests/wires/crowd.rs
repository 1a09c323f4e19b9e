//! Many tasks of two processes on one file.

use std::{path::Path, sync::Arc};

use effectual::{
    Ledger, SqliteLedger,
    ledger::{Claim, Owner},
};
use effectual_tests::{
    database::SqliteFile,
    process::{Process, tell, told},
};
use sqlx::{ConnectOptions, SqliteConnection, sqlite::SqliteConnectOptions};
use tokio::task::JoinSet;

use crate::requests;

const TASKS: u64 = 50;

/// How many effects each task claims first, takes over and settles.
const EFFECTS: u64 = 40;

/// Each claim is a write, each takeover a read that becomes a write: what fails at once in a deferred transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the test of this file in processes of their own"]
async fn child_crowds() {
    let (path, process) = told();
    let ledger: Arc<dyn Ledger> = Arc::new(SqliteLedger::open(path).await.expect("a ledger"));
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let ledger = Arc::clone(&ledger);
        tasks.spawn(async move {
            for effect in 0..EFFECTS {
                let number = (process * TASKS + task) * EFFECTS + effect;
                // A lease of none: the second claim takes it over.
                let first = requests::request(number, 1);
                let first = ledger.claim(&first).await.expect("no caller sees that the file is busy");
                assert!(matches!(first, Claim::Won { .. }), "{first:?}");
                let second = requests::request(number, 2);
                let second = ledger.claim(&second).await.expect("no caller sees that the file is busy");
                let Claim::Won { record, .. } = second else { panic!("{second:?}") };
                assert_eq!((record.attempt, record.fence), (2, 2));
                let settled = ledger.change(&Owner::of(&record), &requests::settle()).await;
                settled.expect("no caller sees that the file is busy");
            }
            tell(EFFECTS);
        });
    }
    tasks.join_all().await;
    ledger.close().await;
}

async fn count(connection: &mut SqliteConnection, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(connection).await.expect("a count")
}

#[tokio::test]
async fn f28_fifty_tasks_of_two_processes_never_see_that_the_file_is_busy() {
    let file = SqliteFile::new();
    let path: &Path = &file.path();
    let children: Vec<_> =
        (0..2).map(|number| Process::start("crowd::child_crowds", path, number, |_| {})).collect();
    let done: u64 = children
        .into_iter()
        .flat_map(Process::finish)
        .map(|line| line.parse::<u64>().expect("a number"))
        .sum();
    assert_eq!(done, 2 * TASKS * EFFECTS);
    let mut connection = SqliteConnectOptions::new().filename(path).connect().await.expect("the file");
    let right =
        "SELECT count(*) FROM effectual_effects WHERE state = 'completed' AND attempt = 2 AND fence = 2";
    assert_eq!(count(&mut connection, right).await, i64::try_from(done).expect("few"));
    let closed = "SELECT count(*) FROM effectual_attempts";
    assert_eq!(count(&mut connection, closed).await, i64::try_from(done).expect("few"));
}
