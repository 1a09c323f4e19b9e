//! Processes that are killed while they forget what is past its retention: a batch is stored whole or not at all, what was
//! told is on disk, and what has no outcome is not touched.

use std::sync::Arc;

use effectual::{
    Ledger,
    ledger::{Claim, Owner, Sweep},
};
use effectual_tests::{
    database::{PostgresDatabase, SqliteFile},
    process::{Process, tell, told},
    servers,
};
use sqlx::{ConnectOptions, Connection, PgConnection, SqliteConnection, sqlite::SqliteConnectOptions};

use crate::{requests, worker::open};

const SETTLED: u64 = 400;
const UNSETTLED: u64 = 20;
const BATCH: u32 = 7;
const KILLS: usize = 12;

/// Past every retention.
const LATER_MS: i64 = 60 * 24 * 3_600_000;

#[tokio::test]
#[ignore = "run by the tests of this file in processes of their own"]
async fn child_sweeps() {
    let (place, is_postgres) = told();
    let place = place.into_os_string().into_string().expect("UTF-8");
    let ledger = open(if is_postgres == 1 { "postgres" } else { "sqlite" }, &place, LATER_MS).await;
    loop {
        let swept = ledger.sweep(Sweep::Outcomes { at_most: BATCH }).await.expect("a batch");
        tell(swept.effects);
        if swept.effects == 0 {
            return ledger.close().await;
        }
    }
}

async fn fill(ledger: Arc<dyn Ledger>) {
    for number in 0..SETTLED + UNSETTLED {
        let record = match ledger.claim(&requests::request(number, 1)).await {
            Ok(Claim::Won { record, .. }) => record,
            other => panic!("a new effect is won: {other:?}"),
        };
        if number < SETTLED {
            ledger.change(&Owner::of(&record), &requests::settle()).await.expect("settled");
        }
    }
    ledger.close().await;
}

enum Rows {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Rows {
    async fn open(place: &str) -> Self {
        if place.starts_with("postgres") {
            return Self::Postgres(PgConnection::connect(place).await.expect("the server"));
        }
        Self::Sqlite(SqliteConnectOptions::new().filename(place).connect().await.expect("the file"))
    }

    async fn count(&mut self, sql: &'static str) -> u64 {
        let count: i64 = match self {
            Self::Sqlite(file) => sqlx::query_scalar(sql).fetch_one(file).await.expect("a count"),
            Self::Postgres(server) => sqlx::query_scalar(sql).fetch_one(server).await.expect("a count"),
        };
        count.unsigned_abs()
    }

    /// How many outcomes are whole, and how many are forgotten.
    async fn counts(&mut self) -> (u64, u64) {
        const WHOLE: &str = "SELECT count(*) FROM effectual_effects
            WHERE state = 'completed' AND payload IS NOT NULL AND absent_reason IS NULL";
        const FORGOTTEN: &str = "SELECT count(*) FROM effectual_effects
            WHERE state = 'completed' AND payload IS NULL AND absent_reason = 'expired'";
        const UNTOUCHED: &str =
            "SELECT count(*) FROM effectual_effects WHERE state = 'claimed' AND revision = 1";
        assert_eq!(self.count(UNTOUCHED).await, UNSETTLED);
        let (whole, forgotten) = (self.count(WHOLE).await, self.count(FORGOTTEN).await);
        assert_eq!(whole + forgotten, SETTLED);
        (whole, forgotten)
    }
}

fn sum(lines: &[String]) -> u64 {
    lines.iter().map(|line| line.parse::<u64>().expect("a number")).sum()
}

async fn killed_amid_sweeps(place: &str) {
    let number = u64::from(place.starts_with("postgres"));
    fill(open(if number == 1 { "postgres" } else { "sqlite" }, place, 0).await).await;
    let mut rows = Rows::open(place).await;
    let mut told = 0;
    for round in 0..KILLS {
        let mut child = Process::start("sweeping::child_sweeps", place, number, |_| {});
        let mut lines: Vec<_> = (0..=round % 3).map_while(|_| child.next_line()).collect();
        lines.extend(child.kill());
        told += sum(&lines);
        let (whole, forgotten) = rows.counts().await;
        assert!(forgotten >= told, "{forgotten} are forgotten, and {told} were told");
        assert!(whole > 0, "it was killed amid its work");
    }
    let rest = Process::start("sweeping::child_sweeps", place, number, |_| {}).finish();
    let (whole, forgotten) = rows.counts().await;
    assert_eq!((whole, forgotten), (0, SETTLED));
    assert!(told + sum(&rest) <= SETTLED, "no outcome is forgotten twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_amid_a_sweep_leaves_whole_batches_on_a_file() {
    let file = SqliteFile::new();
    killed_amid_sweeps(&file.path().display().to_string()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_amid_a_sweep_leaves_whole_batches_on_postgres() {
    let Some(server) = servers::postgres("kills amid sweeps on PostgreSQL") else { return };
    let database = PostgresDatabase::create(&server).await;
    killed_amid_sweeps(&database.url()).await;
}
