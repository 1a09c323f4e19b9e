//! One effect, called by many tasks of several processes at once.

#[path = "processes/child.rs"]
mod child;

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::io::AsyncWriteExt;

use effectual_tests::{
    database::{PostgresDatabase, SqliteFile},
    process::Process,
    servers,
};

const PROCESSES: usize = 4;
const TASKS: usize = 64;

/// How long the processes may take to start.
const LIMIT: Duration = Duration::from_secs(60);

/// The provider, outside all processes that call it: it counts what it performed.
struct Counter {
    address: String,
    performed: Arc<AtomicU64>,
}

impl Counter {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address").to_string();
        let performed = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&performed);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.expect("a connection");
                let mut asked = [0; 8];
                // A connection that asks for nothing performs nothing.
                if connection.read_exact(&mut asked).is_ok() {
                    let number = 1 + count.fetch_add(1, Ordering::SeqCst);
                    // A client that went away was served all the same.
                    drop(connection.write_all(&number.to_be_bytes()));
                }
            }
        });
        Self { address, performed }
    }
}

/// Starts the processes, lets them go at the same moment, and collects what each call returned.
async fn race(ledger: &str, url: &str) -> (u64, Vec<String>) {
    let counter = Counter::start();
    let gate = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = gate.local_addr().expect("its address").to_string();
    let start = |number| {
        Process::start("child::calls_one_effect", url, number, |command| {
            command.env(child::LEDGER, ledger).env(child::COUNTER, &counter.address);
            command.env(child::GATE, &address);
        })
    };
    let children: Vec<_> = (0..PROCESSES as u64).map(start).collect();
    let mut ready = Vec::new();
    for _ in 0..PROCESSES {
        let child = tokio::time::timeout(LIMIT, gate.accept()).await.expect("a child that is ready in time");
        ready.push(child.expect("a connection").0);
    }
    for child in &mut ready {
        child.write_all(b"!").await.expect("the child goes");
    }
    let answers = children.into_iter().flat_map(Process::finish).collect();
    (counter.performed.load(Ordering::SeqCst), answers)
}

async fn one_performance_and_identical_replays(ledger: &str, url: &str) {
    let (performed, answers) = race(ledger, url).await;
    assert_eq!(performed, 1, "on {ledger}");
    assert_eq!(answers.len(), PROCESSES * TASKS, "on {ledger}: every call is answered");
    let first = answers.iter().filter(|answer| *answer == "performed: 1").count();
    let replays = answers.iter().filter(|answer| *answer == "replayed: 1").count();
    assert_eq!((first, replays), (1, PROCESSES * TASKS - 1), "on {ledger}: {answers:?}");
}

#[tokio::test]
async fn four_processes_are_one_performance_on_sqlite() {
    let file = SqliteFile::new();
    one_performance_and_identical_replays("sqlite", file.path().to_str().expect("a path in UTF-8")).await;
}

#[tokio::test]
async fn four_processes_are_one_performance_on_postgres() {
    let Some(server) = servers::postgres("processes: PostgreSQL") else { return };
    let database = PostgresDatabase::create(&server).await;
    one_performance_and_identical_replays("postgres", &database.url()).await;
}

#[tokio::test]
async fn four_processes_are_one_performance_through_a_pooler() {
    let part = "processes: PostgreSQL through a pooler";
    let (Some(server), Some(pooler)) = (servers::postgres(part), servers::pgbouncer(part)) else { return };
    let database = PostgresDatabase::create(&server).await;
    one_performance_and_identical_replays("pooled", &database.url_through(&pooler)).await;
}
