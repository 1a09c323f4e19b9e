//! Rows that go between two looks at them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use effectual::{
    EffectId, Ledger, LedgerError,
    ledger::{
        Change, Changed, Claim, ClaimRequest, EffectHistory, Owner, Payload, UnsettledPage, UnsettledQuery,
        record::State,
    },
};
use effectual_tests::{on_each_ledger, scripted::Scripted, wait};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::{
    effects::*,
    place::{Place, TODAY},
};

on_each_ledger![f19_a_winner_that_vanished_is_no_winner];

const LIMIT: Duration = Duration::from_secs(30);

async fn execute(connection: &mut PgConnection, sql: &'static str) {
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await.expect("raw SQL");
}

async fn waiting(observer: &mut PgConnection) -> i64 {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    sqlx::query_scalar(sql).fetch_one(observer).await.expect("a number")
}

/// The insert meets a row that is being written, and before the winner can be read its row is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f19_a_row_that_goes_between_the_conflict_and_the_read() {
    for place in Place::all("retention: a vanished row").await {
        let (Place::Direct(database) | Place::Pooled(database, _)) = &place else { continue };
        let ledger = place.open(TODAY).await;
        let provider = Scripted::forgetful([]);
        let executor = executor(&ledger);
        let (receipt, scope) = receipted(&executor);
        holding(&scope, "o-1".into(), 5, provider.clone()).await.expect("performed");
        let connect = async || PgConnection::connect(&database.url()).await.expect("a connection");
        let (mut winner, mut remover, mut observer) = (connect().await, connect().await, connect().await);
        execute(
            &mut winner,
            "CREATE TABLE kept AS SELECT * FROM effectual_effects; DELETE FROM effectual_effects",
        )
        .await;
        execute(&mut winner, "BEGIN; INSERT INTO effectual_effects SELECT * FROM kept").await;
        let (provider_of_call, scope_of_call) = (provider.clone(), scope.clone());
        let call =
            tokio::spawn(async move { holding(&scope_of_call, "o-1".into(), 5, provider_of_call).await });
        wait::until("the conflict", LIMIT, async || waiting(&mut observer).await == 1).await;
        // Whoever asked for the table first has it first: the removal comes before the next look of the claim.
        let remove = tokio::spawn(async move {
            execute(
                &mut remover,
                "BEGIN; LOCK TABLE effectual_effects IN ACCESS EXCLUSIVE MODE; DELETE FROM effectual_effects; COMMIT",
            )
            .await;
        });
        wait::until("the removal to queue up", LIMIT, async || waiting(&mut observer).await == 2).await;
        execute(&mut winner, "COMMIT").await;
        remove.await.expect("removed");
        let done = call.await.expect("no panic").expect("claimed anew, with a row");
        assert_eq!((done.number, provider.performed()), (2, 2), "on {}", place.name());
        assert_eq!(state(&executor, &receipt).await, State::Completed, "there is a row behind it");
    }
}

/// A ledger whose first answer is that somebody else has the claim, of whom nothing is to be found afterwards.
#[derive(Debug)]
struct Vanishing {
    inner: Arc<dyn Ledger>,
    vanished: AtomicBool,
}

#[async_trait::async_trait]
impl Ledger for Vanishing {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        if !self.vanished.swap(true, Ordering::SeqCst) {
            return Ok(Claim::InFlight { lease_remaining_ms: 60_000 });
        }
        self.inner.claim(request).await
    }

    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        self.inner.change(owner, change).await
    }

    async fn read(&self, id: &EffectId) -> Result<Option<EffectHistory>, LedgerError> {
        self.inner.read(id).await
    }

    async fn unsettled(&self, query: &UnsettledQuery) -> Result<UnsettledPage, LedgerError> {
        self.inner.unsettled(query).await
    }

    async fn input(&self, id: &EffectId) -> Result<Option<Payload>, LedgerError> {
        self.inner.input(id).await
    }

    fn name(&self) -> &'static str {
        "vanishing"
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

async fn f19_a_winner_that_vanished_is_no_winner(ledger: Arc<dyn Ledger>) {
    let vanishing: Arc<dyn Ledger> = Arc::new(Vanishing { inner: ledger, vanished: AtomicBool::new(false) });
    let provider = Scripted::forgetful([]);
    let executor = executor(&vanishing);
    let (receipt, scope) = receipted(&executor);
    for _ in 0..2 {
        holding(&scope, "o-1".into(), 5, provider.clone()).await.expect("performed, then replayed");
    }
    assert_eq!(provider.performed(), 1);
    assert_eq!(state(&executor, &receipt).await, State::Completed);
}
