//! Worker processes at full speed over one ledger, killed, stopped and cut off at random, for as long as told; then
//! everything is settled, and the ledger is compared with what the provider counted. `./tests/soak` builds and starts it.
#![forbid(unsafe_code)]

mod bank;
mod board;
mod chaos;
mod compare;
mod effects;
mod wire;
mod worker;

use std::{
    error::Error,
    process::ExitCode,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use effectual_tests::{
    database::{PostgresDatabase, SqliteFile},
    pg_proxy::PgProxy,
    servers,
};

use board::Board;

pub(crate) type Failed = Box<dyn Error + Send + Sync>;

/// What the command line says.
pub(crate) struct Options {
    seconds: u64,
    pub(crate) ledger: String,
    pub(crate) seed: u64,
    workers: u64,
}

const USAGE: &str = "soak --seconds N --ledger sqlite|postgres|pooled [--seed N] [--workers N]";

impl Options {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, Failed> {
        let mut options = Self { seconds: 0, ledger: String::new(), seed: seed(), workers: 4 };
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or(USAGE)?;
            match name.as_str() {
                "--seconds" => options.seconds = value.parse()?,
                "--ledger" => options.ledger = value,
                "--seed" => options.seed = value.parse()?,
                "--workers" => options.workers = value.parse()?,
                _ => return Err(USAGE.into()),
            }
        }
        let is_known = ["sqlite", "postgres", "pooled"].contains(&options.ledger.as_str());
        if options.seconds == 0 || !is_known { Err(USAGE.into()) } else { Ok(options) }
    }
}

fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) >> 16
}

/// Where the ledger is: for the workers, perhaps through a proxy, and for the comparison.
pub(crate) struct Place {
    pub(crate) of_workers: String,
    pub(crate) direct: String,
    pub(crate) proxy: Option<PgProxy>,
    _keep: Box<dyn std::any::Any + Send + Sync>,
}

impl Place {
    async fn make(ledger: &str) -> Result<Self, Failed> {
        if ledger == "sqlite" {
            let file = SqliteFile::new();
            let path = file.path().display().to_string();
            return Ok(Self { of_workers: path.clone(), direct: path, proxy: None, _keep: Box::new(file) });
        }
        let server =
            servers::postgres("the soak on PostgreSQL").ok_or("no PostgreSQL: start ./tests/soak")?;
        let database = PostgresDatabase::create(&server).await;
        let direct = database.url();
        let reached = match ledger {
            "pooled" => {
                database.url_through(&servers::pgbouncer("the soak through a pooler").ok_or("no pgbouncer")?)
            }
            _ => direct.clone(),
        };
        let proxy = PgProxy::in_front_of(&reached).await;
        let of_workers = proxy.url(&reached);
        Ok(Self { of_workers, direct, proxy: Some(proxy), _keep: Box::new(database) })
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let ended = match arguments.first().map(String::as_str) {
        Some("worker") => worker::work(&arguments[1..]).await.map(|()| true),
        _ => soak(arguments).await,
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("soak: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether nothing was lost and nothing doubled.
async fn soak(arguments: Vec<String>) -> Result<bool, Failed> {
    let options = Options::read(arguments.into_iter())?;
    println!("soak: ledger={} seconds={} seed={}", options.ledger, options.seconds, options.seed);
    let place = Place::make(&options.ledger).await?;
    let bank = bank::open(options.seed).await?;
    let board = Arc::new(Board::default());
    let until = tokio::time::Instant::now() + Duration::from_secs(options.seconds);
    chaos::run(&options, &place, &bank, &board, options.workers, until).await?;
    let found = compare::compare(&options.ledger, &place.direct, &bank, &board).await?;
    let proxied = place.proxy.as_ref().map_or(0, PgProxy::faults);
    let counts = bank.books().counts;
    println!(
        "soak: requests={} lost_answers={} refusals={} cut_connections={} proxy_faults={proxied} stops={} replays={} repeats={}",
        counts.requests,
        counts.lost,
        counts.refused,
        counts.cut,
        board.stops.load(Ordering::SeqCst),
        board.replays.load(Ordering::SeqCst),
        found.repeats
    );
    let faults = counts.lost + counts.refused + counts.cut + proxied + board.stops.load(Ordering::SeqCst);
    println!(
        "effects={} kills={} faults={faults} duplicates={} lost={} escaped={}",
        found.effects,
        board.kills.load(Ordering::SeqCst),
        found.duplicates,
        found.lost,
        found.escaped
    );
    Ok(found.duplicates == 0 && found.lost == 0)
}
