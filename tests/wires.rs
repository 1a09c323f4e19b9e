//! What goes wrong on real wires, disks and schedulers: between the library and a PostgreSQL server, on a full disk, with
//! clocks that differ and renewals that fail.
#![forbid(unsafe_code)]

#[path = "wires/clocks.rs"]
mod clocks;
#[path = "wires/crowd.rs"]
mod crowd;
#[path = "wires/disk.rs"]
mod disk;
#[path = "executor/effects.rs"]
#[allow(dead_code, reason = "shared with the tests of the executor, which need all of it")]
mod effects;
#[path = "wires/heartbeats.rs"]
mod heartbeats;
#[path = "wires/lost.rs"]
mod lost;
#[path = "wires/requests.rs"]
mod requests;
#[path = "wires/waiting.rs"]
mod waiting;

use std::{sync::Arc, time::Duration};

use effectual::{Ledger, PostgresLedger};
use effectual_tests::{database::PostgresDatabase, pg_proxy::PgProxy, servers};

const LIMIT: Duration = Duration::from_secs(30);

/// The ledger's writes, as they are recognised on the wire.
const CLAIM: &str = "INSERT INTO effectual_effects";
const CHANGE: &str = "UPDATE effectual_effects";

/// A ledger behind a wire that fails when it is told to.
struct Wired {
    proxy: Arc<PgProxy>,
    ledger: Arc<dyn Ledger>,
    database: PostgresDatabase,
}

impl Wired {
    /// To the server itself, or through the pooler before it; `None` where there is none.
    async fn open(part: &str, pooled: bool) -> Option<Self> {
        let server = servers::postgres(part)?;
        let database = PostgresDatabase::create(&server).await;
        let url = if pooled { database.url_through(&servers::pgbouncer(part)?) } else { database.url() };
        let proxy = PgProxy::in_front_of(&url).await;
        let builder = PostgresLedger::builder(proxy.url(&url)).pooled(pooled);
        let ledger = builder.patience(Duration::from_secs(2)).connect().await.expect("a ledger");
        Some(Self { proxy: Arc::new(proxy), ledger: Arc::new(ledger), database })
    }

    /// Another process' ledger over the same database, past the proxy.
    async fn other(&self) -> Arc<dyn Ledger> {
        Arc::new(PostgresLedger::connect(self.database.url()).await.expect("a ledger"))
    }
}

/// Makes a test of an `async fn(Wired)`, straight and through a pooler.
macro_rules! on_both_wires {
    ($($rule:ident),+ $(,)?) => {
        $(mod $rule {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn straight() {
                let part = concat!(module_path!(), " on PostgreSQL");
                if let Some(wired) = crate::Wired::open(part, false).await {
                    super::$rule(wired).await;
                }
            }
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn pooled() {
                let part = concat!(module_path!(), " on PostgreSQL through a pooler");
                if let Some(wired) = crate::Wired::open(part, true).await {
                    super::$rule(wired).await;
                }
            }
        })+
    };
}
use on_both_wires;
