//! Processes that are killed at every boundary of a call, and calls again in new ones: how often the provider performed, and
//! what the ledger says of it.
//!
//! The worker stops at the boundary and says so; the kill comes then and never by a clock. Leases are not waited for: the
//! ledger's clock of the next process is ahead.
#![forbid(unsafe_code)]

#[path = "crash_sweep/boundary.rs"]
mod boundary;
#[path = "crash_sweep/migrations.rs"]
mod migrations;
#[path = "crash_sweep/model.rs"]
mod model;
#[path = "crash_sweep/plan.rs"]
mod plan;
#[path = "wires/requests.rs"]
mod requests;
#[path = "crash_sweep/stopped.rs"]
mod stopped;
#[path = "crash_sweep/sweeping.rs"]
mod sweeping;
#[path = "crash_sweep/worker.rs"]
mod worker;

use std::{collections::BTreeMap, io::Write as _, time::Duration};

use boundary::{Boundary, STOPPED, Stop};
use effectual_tests::{
    counted::Counted,
    database::{PostgresDatabase, SqliteFile},
    servers,
};
use model::{CLASSES, End, Gives, State};
use plan::{Depth, Scenario, kills, scenarios};
use worker::Job;

/// Soon renewed.
const RENEWING_LEASE_MS: u64 = 3_000;

const LIMIT: Duration = Duration::from_secs(60);

/// What one ledger goes through.
struct Sweep {
    ledger: &'static str,
    place: String,
    provider: Counted,
}

impl Sweep {
    fn job(&self, scenario: &Scenario, generation: usize, stop: Stop) -> Job<'_> {
        Job {
            ledger: self.ledger,
            place: &self.place,
            provider: self.provider.url(),
            generation: u64::try_from(generation).expect("few kills"),
            orders: vec![(scenario.class, scenario.order())],
            stop: Some(stop),
            gate: None,
            lease_ms: scenario.is_renewing().then_some(RENEWING_LEASE_MS),
        }
    }

    /// Starts a worker, and kills it when it, or the provider for it, stands at the boundary.
    fn kill(&self, scenario: &Scenario, generation: usize, stop: Stop) {
        let order = scenario.order();
        let at_provider = matches!(stop.0, Boundary::Acted | Boundary::Asked);
        if at_provider || scenario.is_renewing() {
            self.provider.hold(&order);
        }
        let mut worker = self.job(scenario, generation, stop).start();
        if at_provider {
            self.provider.wait_until_held(&order, LIMIT);
        } else {
            let said = worker.next_line();
            assert_eq!(said, Some(format!("{STOPPED} {:?}", stop.0)), "{order} on {}", self.ledger);
        }
        worker.kill();
        self.provider.release(&order);
    }

    /// Calls all of them in one more process, and gives what each call gave and what is stored, by order.
    fn finish(&self, scenarios: &[Scenario]) -> BTreeMap<String, Vec<String>> {
        let mut finished = BTreeMap::new();
        for generation in 1..=2 {
            let these = scenarios.iter().filter(|scenario| scenario.kills.len() == generation);
            let orders: Vec<_> = these.map(|scenario| (scenario.class, scenario.order())).collect();
            let Some((first, _)) = scenarios.split_first().filter(|_| !orders.is_empty()) else { continue };
            let job =
                Job { orders, stop: None, lease_ms: None, ..self.job(first, generation, first.kills[0]) };
            for line in job.start().finish() {
                let mut words = line.split('|').map(str::to_owned);
                finished.insert(words.next().expect("an order"), words.collect());
            }
        }
        finished
    }

    fn check(&self, scenario: &Scenario, found: &[String]) {
        let mut model = scenario.model();
        let Ok(gives) = model.call() else { unreachable!("no stop is set") };
        let order = scenario.order();
        let gives = match gives {
            Gives::Number(number) => number.to_string(),
            Gives::Escaped => "escaped".to_owned(),
        };
        let expected = [gives.clone(), gives, stored(model.state, &model.attempts)];
        assert_eq!(found, expected, "{order} on {}", self.ledger);
        let account = self.provider.account(&order);
        let counted = (account.performed, account.keys.len(), account.questions);
        assert_eq!(counted, (model.performed, model.requests, model.questions), "{order} on {}", self.ledger);
        assert!(account.keys.iter().all(|key| *key == account.keys[0]), "one key: {:?}", account.keys);
    }

    fn run(&self, depth: Depth) {
        let scenarios = scenarios(depth);
        for scenario in &scenarios {
            if scenario.is_busy {
                self.provider.be_busy(&scenario.order(), 1);
            }
            for (generation, stop) in scenario.kills.iter().enumerate() {
                self.kill(scenario, generation, *stop);
            }
        }
        let finished = self.finish(&scenarios);
        for scenario in &scenarios {
            self.check(scenario, finished.get(&scenario.order()).expect("each was called again"));
        }
        let boundaries: std::collections::HashSet<_> =
            scenarios.iter().flat_map(|scenario| &scenario.kills).map(|(at, _)| *at).collect();
        let line = format!(
            "crash sweep: ledger={} kills={} boundaries={} classes={} effects={}",
            self.ledger,
            kills(&scenarios),
            boundaries.len(),
            CLASSES.len(),
            scenarios.len()
        );
        // Past the harness, which shows the output of failures only.
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

/// A row as the worker describes it.
fn stored(state: State, attempts: &[End]) -> String {
    let state = match state {
        State::Absent => unreachable!("a call that ended has left a row"),
        State::Claimed => "claimed",
        State::Completed => "completed",
        State::Escaped => "escaped",
    };
    let end = |end: &End| match end {
        End::Open => "open",
        End::NotPerformed => "not_performed",
        End::Unknown => "unknown",
        End::Performed => "performed",
    };
    let attempts = attempts.iter().enumerate().map(|(at, which)| format!(" {}:{}", at + 1, end(which)));
    format!("{state}{}", attempts.collect::<String>())
}

#[test]
fn the_sweep_kills_at_least_300_processes() {
    let depths = [Depth::Recovery, Depth::RecoveryOfActed, Depth::Once];
    let planned: usize = depths.into_iter().map(|depth| kills(&scenarios(depth))).sum();
    assert!(planned >= 300, "{planned}");
}

#[test]
fn every_boundary_of_a_call_is_survived_on_sqlite() {
    let file = SqliteFile::new();
    let place = file.path().display().to_string();
    Sweep { ledger: "sqlite", place, provider: Counted::open() }.run(Depth::Recovery);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_boundary_of_a_call_is_survived_on_postgres() {
    let Some(server) = servers::postgres("crash sweep on PostgreSQL") else { return };
    let database = PostgresDatabase::create(&server).await;
    let sweep = Sweep { ledger: "postgres", place: database.url(), provider: Counted::open() };
    tokio::task::block_in_place(|| sweep.run(Depth::RecoveryOfActed));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_boundary_of_a_call_is_survived_through_a_pooler() {
    let part = "crash sweep on PostgreSQL through a pooler";
    let (Some(server), Some(pooler)) = (servers::postgres(part), servers::pgbouncer(part)) else { return };
    let database = PostgresDatabase::create(&server).await;
    let place = database.url_through(&pooler);
    let sweep = Sweep { ledger: "pooled", place, provider: Counted::open() };
    tokio::task::block_in_place(|| sweep.run(Depth::Once));
}
