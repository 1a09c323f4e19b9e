//! One file, several processes.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use effectual::{
    Ledger, SqliteLedger,
    ledger::{Claim, Owner},
};
use tokio::task::JoinSet;

use crate::support::{Process, count, id, open, raw, request, scratch, success, tell, told};

const PROCESSES: u64 = 4;

/// Counts how often each number was told.
fn tally(children: Vec<Process>) -> BTreeMap<u64, usize> {
    let mut tally = BTreeMap::new();
    for child in children {
        for line in child.finish() {
            *tally.entry(line.parse().expect("a number")).or_default() += 1;
        }
    }
    tally
}

fn children(test: &str, path: &Path) -> Vec<Process> {
    (0..PROCESSES).map(|number| Process::start(test, path, number, |_| {})).collect()
}

/// Four processes with fifty tasks each ask for the same effects over one new file: no call fails, and each effect is
/// won, performed and settled once.
#[tokio::test]
async fn four_processes_share_one_file() {
    let (_directory, path) = scratch();
    let won = tally(children("processes::child_claims_and_settles", &path));
    assert_eq!(won, (0..EFFECTS).map(|number| (number, 1)).collect());
    let mut conn = raw(&path).await;
    let settled =
        count(&mut conn, "SELECT count(*) FROM effectual_effects WHERE state = 'completed' AND fence = 1")
            .await;
    assert_eq!(settled, i64::try_from(EFFECTS).expect("a small number"));
}

const TASKS: u64 = 50;
const EFFECTS: u64 = 400;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by four_processes_share_one_file in processes of their own"]
async fn child_claims_and_settles() {
    let (path, process) = told();
    let ledger = Arc::new(open(&path).await);
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let ledger = Arc::clone(&ledger);
        tasks.spawn(async move {
            for step in 0..EFFECTS {
                // Every task meets every effect, each from another start.
                let number = (step + task * 7) % EFFECTS;
                let claim = ledger.claim(&request(number, 1 + process * TASKS + task)).await;
                if let Claim::Won { record, .. } = claim.expect("no claim fails") {
                    let settle = success(number.to_be_bytes().to_vec());
                    ledger.change(&Owner::of(&record), &settle).await.expect("no settle fails");
                    tell(number);
                }
            }
        });
    }
    tasks.join_all().await;
    ledger.close().await;
}

/// Four processes open files that do not exist yet, all at the same time: each gets the ledger, and one schema is made.
#[test]
fn four_processes_create_one_file() {
    let (directory, _) = scratch();
    let won = tally(children("processes::child_creates", directory.path()));
    assert_eq!(won, (0..FILES).map(|number| (number, 1)).collect());
}

const FILES: u64 = 30;

#[tokio::test]
#[ignore = "run by four_processes_create_one_file in processes of their own"]
async fn child_creates() {
    let (directory, process) = told();
    let mut tasks = JoinSet::new();
    for file in 0..FILES {
        let path = directory.join(format!("{file}.db"));
        tasks.spawn(async move {
            let ledger = open(&path).await;
            if matches!(ledger.claim(&request(file, 1 + process)).await, Ok(Claim::Won { .. })) {
                tell(file);
            }
            ledger.close().await;
        });
    }
    tasks.join_all().await;
}

/// A process that is killed amid commits has stored everything that it acknowledged, and nothing of the file is broken.
#[tokio::test]
async fn what_was_acknowledged_survives_a_kill() {
    let (_directory, path) = scratch();
    for round in 0..3 {
        let mut child = Process::start("processes::child_claims_without_end", &path, round, |_| {});
        let mut told: Vec<_> = (0..300).map_while(|_| child.next_line()).collect();
        told.extend(child.kill());
        assert!(told.len() >= 300, "it was killed at work");
        let ledger = open(&path).await;
        for number in told {
            let id = id(number.parse().expect("a number"));
            assert!(ledger.read(&id).await.expect("a read is answered").is_some(), "{id} was acknowledged");
        }
        let mut conn = raw(&path).await;
        assert_eq!(
            count(&mut conn, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'")
                .await,
            0
        );
        ledger.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by what_was_acknowledged_survives_a_kill in a process of its own"]
async fn child_claims_without_end() {
    let (path, round) = told();
    let ledger: Arc<SqliteLedger> = Arc::new(open(&path).await);
    let mut tasks = JoinSet::new();
    for task in 0..16 {
        let ledger = Arc::clone(&ledger);
        tasks.spawn(async move {
            for step in 0..u64::from(u32::MAX) {
                let number = (round << 56) | (task << 40) | step;
                ledger.claim(&request(number, 1)).await.expect("no claim fails");
                tell(number);
            }
        });
    }
    tasks.join_all().await;
}
