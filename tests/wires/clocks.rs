//! Workers whose clocks are not the ledger's.

use std::{path::Path, sync::Arc, time::Duration};

use effectual::{ErrorKind, Ledger, PostgresLedger, SqliteLedger, ledger::record::State};
use effectual_tests::{
    database::{PostgresDatabase, SqliteFile},
    scripted::{Act, Scripted},
    servers,
    wait::for_value,
};

use crate::{LIMIT, effects::*};

const HOUR_MS: i64 = 3_600_000;

const LEASE: Duration = Duration::from_millis(1_500);

/// The ledger's clock is an hour before or behind the clock of the workers' machine. A claim that its owner does not renew
/// is taken over when its lease has ended on the ledger's clock: not before, and not an hour later.
async fn taken_over_in_time(open: impl AsyncFn(i64) -> Arc<dyn Ledger>) {
    for offset_ms in [HOUR_MS, -HOUR_MS] {
        let (of_owner, of_other) = (open(offset_ms).await, open(offset_ms).await);
        let provider = Scripted::forgetful([Act::PerformAndHang]);
        let order = format!("o{offset_ms}");
        let owner = builder(&(Arc::new(Unrenewed(of_owner)) as Arc<dyn Ledger>))
            .attempt_timeout(Duration::from_secs(1))
            .lease(LEASE)
            .build()
            .expect("a valid set-up");
        let (_, scope) = receipted(&owner);
        let begun = std::time::Instant::now();
        let first = tokio::spawn(rerunning(&scope, order.clone(), 5, provider.clone()));
        provider.next_arrival().await;
        first.abort();

        let impatient = builder(&of_other).wait(Duration::ZERO).lease(LEASE).build().expect("a valid set-up");
        let (receipt, scope) = receipted(&impatient);
        let done =
            for_value(LIMIT, async || match rerunning(&scope, order.clone(), 5, provider.clone()).await {
                Ok(done) => Some(done),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::InFlight, "{error}");
                    let left = error.retry_after().expect("the rest of the lease");
                    assert!(left > Duration::ZERO && left <= LEASE, "{left:?} at {offset_ms}");
                    assert_eq!(provider.performed(), 1, "no early takeover");
                    None
                }
            });
        assert_eq!(done.await.expect("no late takeover").number, 2);
        // The lease began after the call did.
        assert!(begun.elapsed() >= LEASE, "taken over after {:?}", begun.elapsed());
        assert_eq!(state(&impatient, &receipt).await, State::Completed);
    }
}

/// A ledger that takes claims and is told nothing more by their owner, as when its process has died.
#[derive(Debug)]
struct Unrenewed(Arc<dyn Ledger>);

#[async_trait::async_trait]
impl Ledger for Unrenewed {
    async fn claim(
        &self,
        request: &effectual::ledger::ClaimRequest,
    ) -> Result<effectual::ledger::Claim, effectual::LedgerError> {
        self.0.claim(request).await
    }

    async fn change(
        &self,
        _owner: &effectual::ledger::Owner,
        _change: &effectual::ledger::Change,
    ) -> Result<effectual::ledger::Changed, effectual::LedgerError> {
        std::future::pending().await
    }

    async fn read(
        &self,
        id: &effectual::EffectId,
    ) -> Result<Option<effectual::ledger::EffectHistory>, effectual::LedgerError> {
        self.0.read(id).await
    }

    fn name(&self) -> &'static str {
        self.0.name()
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f30_a_worker_whose_clock_is_an_hour_off_neither_hurries_nor_delays_a_takeover_on_a_file() {
    let file = SqliteFile::new();
    let path: &Path = &file.path();
    taken_over_in_time(async |offset_ms| {
        // Of one clock a file: one for each direction.
        let path = path.with_extension(offset_ms.to_string());
        let builder = SqliteLedger::builder(path).clock_offset_ms(offset_ms);
        Arc::new(builder.open().await.expect("a ledger")) as Arc<dyn Ledger>
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f30_a_worker_whose_clock_is_an_hour_off_neither_hurries_nor_delays_a_takeover_on_postgres() {
    let Some(server) = servers::postgres("f30 on PostgreSQL") else { return };
    let database = PostgresDatabase::create(&server).await;
    taken_over_in_time(async |offset_ms| {
        let builder = PostgresLedger::builder(database.url()).clock_offset_ms(offset_ms);
        Arc::new(builder.connect().await.expect("a ledger")) as Arc<dyn Ledger>
    })
    .await;
}
