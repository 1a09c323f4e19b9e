//! Who takes part.

use std::sync::{Arc, atomic::AtomicU64};

use effectual::{PostgresLedger, SqliteLedger};

use crate::{
    by_hand::{self, tables::Table},
    contender::{Contender, Provider},
    effectual::Effectual,
    peers::{agent_effects, dbos, durare},
    store::{Database, Store},
};

/// What all others are measured against.
pub(crate) const LIMIT: &str = "group-commit";
/// The same code on the ledger's table: what its rules and indexes cost whoever writes to it.
pub(crate) const ON_LEDGER: &str = "group-commit-on-ledger";
pub(crate) const EFFECTUAL: &str = "effectual";
pub(crate) const CACHED: &str = "effectual-cached";

/// In the order in which they take turns: Effectual next to what it is compared with most.
pub(crate) const SQLITE: [&str; 9] = [
    LIMIT,
    ON_LEDGER,
    EFFECTUAL,
    CACHED,
    "two-statements",
    "agent-effects",
    "durare-step",
    "durare-step-full",
    "durare-workflow",
];
pub(crate) const POSTGRES: [&str; 10] = [
    LIMIT,
    ON_LEDGER,
    EFFECTUAL,
    CACHED,
    "two-statements",
    "agent-effects",
    "durare-step",
    "durare-workflow",
    "dbos-step",
    "dbos-workflow",
];

/// One contender with its database.
pub(crate) struct Entrant {
    pub(crate) name: &'static str,
    pub(crate) contender: Arc<dyn Contender>,
    pub(crate) store: Store,
    pub(crate) provider: Arc<Provider>,
    /// The next key.
    pub(crate) keys: Arc<AtomicU64>,
    /// What its database took before the first effect.
    pub(crate) bytes_empty: u64,
}

impl Entrant {
    pub(crate) async fn enter(name: &'static str, store: Store) -> Self {
        let provider = Provider::new();
        let contender = contender(name, &store, &provider).await;
        let bytes_empty = store.bytes().await;
        Self { name, contender, store, provider, keys: Arc::default(), bytes_empty }
    }

    pub(crate) async fn leave(self) {
        self.contender.close().await;
        drop(self.contender);
        self.store.remove().await;
    }
}

pub(crate) fn database(store: &Store) -> Database {
    match store {
        Store::Sqlite(_) => Database::Sqlite,
        Store::Postgres { .. } => Database::Postgres,
    }
}

async fn contender(name: &'static str, store: &Store, provider: &Arc<Provider>) -> Arc<dyn Contender> {
    match database(store) {
        Database::Sqlite => on_sqlite(name, store, provider).await,
        Database::Postgres => on_postgres(name, &store.url(), provider).await,
    }
}

async fn on_sqlite(name: &'static str, store: &Store, provider: &Arc<Provider>) -> Arc<dyn Contender> {
    let path = store.path();
    match name {
        LIMIT => Arc::new(by_hand::sqlite::group(path, Table::Own, provider).await),
        ON_LEDGER => Arc::new(by_hand::sqlite::group(path, Table::Ledger, provider).await),
        EFFECTUAL => {
            let ledger = SqliteLedger::open(path).await.expect("a ledger");
            Arc::new(Effectual::new(ledger, provider))
        }
        CACHED => {
            let ledger = SqliteLedger::open(path).await.expect("a ledger");
            Arc::new(Effectual::cached(ledger, provider))
        }
        "two-statements" => Arc::new(by_hand::sqlite::TwoStatements::open(path, provider).await),
        "agent-effects" => Arc::new(agent_effects::sqlite(path, provider).await),
        "durare-step" => Arc::new(durare::steps(durare::At::Sqlite(path), provider).await),
        "durare-step-full" => Arc::new(durare::steps(durare::At::SqliteFull(path), provider).await),
        "durare-workflow" => Arc::new(durare::workflows(durare::At::Sqlite(path), provider).await),
        _ => panic!("no contender on SQLite is called {name}: {SQLITE:?}"),
    }
}

async fn on_postgres(name: &'static str, url: &str, provider: &Arc<Provider>) -> Arc<dyn Contender> {
    match name {
        LIMIT => Arc::new(by_hand::postgres::group(url, Table::Own, provider).await),
        ON_LEDGER => Arc::new(by_hand::postgres::group(url, Table::Ledger, provider).await),
        EFFECTUAL => {
            let ledger = PostgresLedger::connect(url).await.expect("a ledger");
            Arc::new(Effectual::new(ledger, provider))
        }
        CACHED => {
            let ledger = PostgresLedger::connect(url).await.expect("a ledger");
            Arc::new(Effectual::cached(ledger, provider))
        }
        "two-statements" => Arc::new(by_hand::postgres::TwoStatements::connect(url, provider).await),
        "agent-effects" => Arc::new(agent_effects::postgres(url, provider).await),
        "durare-step" => Arc::new(durare::steps(durare::At::Postgres(url), provider).await),
        "durare-workflow" => Arc::new(durare::workflows(durare::At::Postgres(url), provider).await),
        "dbos-step" => Arc::new(dbos::steps(url, provider).await),
        "dbos-workflow" => Arc::new(dbos::workflows(url, provider).await),
        _ => panic!("no contender on PostgreSQL is called {name}: {POSTGRES:?}"),
    }
}
