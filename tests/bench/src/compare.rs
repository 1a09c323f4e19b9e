//! Everybody on one database with so many callers: rounds in turns, and a check that each did what it says.

use std::{path::Path, sync::atomic::Ordering, time::Duration};

use crate::{
    caller::Keys,
    field::Entrant,
    load::{self, Load, Round},
    store::{Database, Server, Store},
};

/// How long it is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Counted rounds, an odd number; one more comes before them.
    pub(crate) rounds: usize,
    pub(crate) length: Duration,
    pub(crate) warm_up: Duration,
}

/// What was measured of one contender with so many callers.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) database: Database,
    pub(crate) callers: usize,
    pub(crate) name: &'static str,
    pub(crate) rounds: Vec<Round>,
    pub(crate) hits: Vec<Round>,
    /// Tables and indexes, an effect.
    pub(crate) bytes: f64,
    /// The server's write-ahead log, an effect.
    pub(crate) log_bytes: Option<f64>,
}

/// Where the databases are.
pub(crate) struct Ground<'a> {
    pub(crate) database: Database,
    pub(crate) folder: &'a Path,
    pub(crate) server: Option<&'a Server>,
}

impl Ground<'_> {
    pub(crate) async fn store(&self, name: &str) -> Store {
        match self.database {
            Database::Sqlite => Store::sqlite(self.folder, name),
            Database::Postgres => Store::postgres(self.server.expect("a server"), name).await,
        }
    }

    pub(crate) fn load(&self, callers: usize, length: Duration) -> Load {
        let server = self.server.filter(|_| self.database == Database::Postgres);
        Load { callers, length, server: server.and_then(|server| server.pid) }
    }

    async fn log_written(&self) -> u64 {
        match (self.database, self.server) {
            (Database::Postgres, Some(server)) => server.log_written().await,
            _ => 0,
        }
    }
}

/// Rounds of effects, then, if asked for, rounds of hits.
pub(crate) async fn cells(
    ground: &Ground<'_>,
    names: &[&'static str],
    callers: usize,
    pace: Pace,
    hits: bool,
) -> Vec<Cell> {
    let mut entrants = Vec::new();
    for name in names {
        entrants.push(Entrant::enter(name, ground.store(name).await).await);
    }
    let mut cells: Vec<Cell> = entrants.iter().map(|entrant| empty(ground, entrant, callers)).collect();
    let mut logs = vec![0; entrants.len()];
    for round in 0..=pace.rounds {
        let load = ground.load(callers, if round == 0 { pace.warm_up } else { pace.length });
        for ((entrant, cell), log) in entrants.iter().zip(&mut cells).zip(&mut logs) {
            let before = ground.log_written().await;
            let keys = Keys::Fresh(entrant.keys.clone());
            let measured = load::perform(entrant.name, &entrant.contender, &keys, load).await;
            if round > 0 {
                *log += ground.log_written().await - before;
                cell.rounds.push(measured);
            }
        }
    }
    for ((entrant, cell), log) in entrants.iter().zip(&mut cells).zip(logs) {
        check(entrant).await;
        let effects = entrant.provider.performed() as f64;
        cell.bytes = entrant.store.bytes().await.saturating_sub(entrant.bytes_empty) as f64 / effects;
        let counted: u64 = cell.rounds.iter().map(|round| round.calls).sum();
        cell.log_bytes = (ground.database == Database::Postgres).then(|| log as f64 / counted as f64);
    }
    if hits {
        replay(ground, &entrants, &mut cells, callers, pace).await;
    }
    for entrant in entrants {
        entrant.leave().await;
    }
    cells
}

fn empty(ground: &Ground<'_>, entrant: &Entrant, callers: usize) -> Cell {
    Cell {
        database: ground.database,
        callers,
        name: entrant.name,
        rounds: Vec::new(),
        hits: Vec::new(),
        bytes: 0.0,
        log_bytes: None,
    }
}

async fn replay(ground: &Ground<'_>, entrants: &[Entrant], cells: &mut [Cell], callers: usize, pace: Pace) {
    for round in 0..=pace.rounds {
        let load = ground.load(callers, if round == 0 { pace.warm_up } else { pace.length });
        for (entrant, cell) in entrants.iter().zip(&mut *cells) {
            if !entrant.contender.replays() {
                continue;
            }
            let performed = entrant.provider.performed();
            let keys = Keys::Known(entrant.keys.load(Ordering::Relaxed));
            let measured = load::replay(entrant.name, &entrant.contender, &keys, load).await;
            assert_eq!(entrant.provider.performed(), performed, "{} performed for a hit", entrant.name);
            if round > 0 {
                cell.hits.push(measured);
            }
        }
    }
}

/// Each key was performed once at the provider, and each has its outcome in the database.
pub(crate) async fn check(entrant: &Entrant) {
    let (asked, performed) = (entrant.keys.load(Ordering::Relaxed), entrant.provider.performed());
    assert_eq!(performed, asked, "{} was asked for so many effects and performed others", entrant.name);
    let stored = entrant.store.number(entrant.contender.count()).await;
    assert_eq!(stored, performed, "{} performed so many effects and stored others", entrant.name);
}
