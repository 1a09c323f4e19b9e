//! Futures that go away in the middle.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use effectual::{
    EffectContext, ErrorKind, Ledger, PostgresLedger, RecoveryClass, effect, ledger::record::State,
};
use effectual_tests::{
    database::PostgresDatabase,
    on_each_ledger,
    scripted::{Act, Done, Scripted, ScriptedError},
    servers, wait,
};
use sqlx::{Connection, PgConnection};

use crate::{
    claims::{claim, request, settle, win},
    effects::*,
};

const LIMIT: Duration = Duration::from_secs(30);

/// How many calls are dropped.
const DROPS: usize = 1_000;

on_each_ledger![
    f01_the_next_claim_works_wherever_the_one_before_was_dropped,
    f05_wherever_a_caller_goes_away_the_effect_is_done_or_was_never_begun,
    f05_wherever_the_caller_of_an_attached_effect_goes_away_no_claim_is_left,
];

/// Polls a future whenever it asks for it, and drops it when it has not ended after so many times.
async fn dropped_after<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Claims and settles are dropped after no, one, two and three polls, among them before the first: 1,000 times.
async fn drop_claims_and_settles(ledger: &Arc<dyn Ledger>) {
    let settled = settle("1");
    for number in 0..DROPS {
        let (polls, request) = (number % 4, request(RecoveryClass::Hold, 600_000));
        drop(dropped_after(polls, ledger.claim(&request)).await);
        if number % 20 == 0 {
            let record = win(ledger, &self::request(RecoveryClass::Hold, 600_000)).await;
            let owner = effectual::ledger::Owner::of(&record);
            drop(dropped_after(polls, ledger.change(&owner, &settled)).await);
            drop(dropped_after(polls, ledger.read(&record.id)).await);
        }
    }
}

async fn f01_the_next_claim_works_wherever_the_one_before_was_dropped(ledger: Arc<dyn Ledger>) {
    drop_claims_and_settles(&ledger).await;
    let request = request(RecoveryClass::Hold, 600_000);
    let record = win(&ledger, &request).await;
    let stored = ledger.read(&record.id).await.expect("a read").expect("it is there");
    assert_eq!(stored.effect, record);
    assert!(matches!(claim(&ledger, &request).await, effectual::ledger::Claim::Won { .. }), "our own claim");
}

/// The row is seen from another connection, and none of the ledger's is left inside a transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f01_no_connection_is_left_inside_a_transaction() {
    let Some(server) = servers::postgres("f01 on PostgreSQL") else { return };
    let database = PostgresDatabase::create(&server).await;
    let ledger: Arc<dyn Ledger> = Arc::new(PostgresLedger::connect(database.url()).await.expect("a ledger"));
    drop_claims_and_settles(&ledger).await;
    let record = win(&ledger, &request(RecoveryClass::Hold, 600_000)).await;

    let mut other = PgConnection::connect(&database.url()).await.expect("a second connection");
    let seen: i64 = sqlx::query_scalar("SELECT count(*) FROM effectual_effects WHERE provider_key = $1")
        .bind(&*record.provider_key)
        .fetch_one(&mut other)
        .await
        .expect("a count");
    assert_eq!(seen, 1, "committed, and not in somebody's transaction");
    let idle = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'";
    wait::until("no backend to be idle in a transaction", LIMIT, async || {
        let idle: i64 = sqlx::query_scalar(idle).fetch_one(&mut other).await.expect("a count");
        idle == 0
    })
    .await;
}

async fn f05_wherever_a_caller_goes_away_the_effect_is_done_or_was_never_begun(ledger: Arc<dyn Ledger>) {
    let executor = executor(&ledger);
    for polls in 0..40 {
        // An answer, a retry and a second attempt: as many awaits as a call has.
        let provider = Scripted::forgetful([Act::NoConnection, Act::Perform]);
        let (receipt, scope) = receipted(&executor);
        let order = format!("f05-{polls}");
        let ended = dropped_after(polls, holding(&scope, order.clone(), 5, provider.clone())).await;
        let done = holding(&scope, order, 5, provider.clone()).await.expect("its outcome, or its own");
        assert_eq!((done.number, provider.performed()), (1, 1), "after {polls} polls");
        let record = record(&executor, &receipt).await;
        assert_eq!(record.state, State::Completed, "after {polls} polls");
        if let Some(ended) = ended {
            assert_eq!(ended.expect("an outcome"), done);
        }
    }
}

/// Has awaits of its own before and after the request.
#[effect(keying = business_identity, attached)]
async fn borrowing(
    cx: &EffectContext,
    #[key] order: &str,
    #[skip] provider: &Scripted,
) -> effectual::Result<Done, ScriptedError> {
    tokio::task::yield_now().await;
    let done = provider.send(cx, order).await?;
    tokio::task::yield_now().await;
    Ok(done)
}

/// The body goes with its caller, so it may have acted: then it is escaped, and a second call says so. It is never
/// performed again, and never left claimed.
async fn f05_wherever_the_caller_of_an_attached_effect_goes_away_no_claim_is_left(ledger: Arc<dyn Ledger>) {
    let executor = executor(&ledger);
    let mut ends = (0, 0);
    for polls in 0..40 {
        let provider = Scripted::forgetful([Act::NoConnection, Act::Perform]);
        let (receipt, scope) = receipted(&executor);
        let order = format!("f05-{polls}");
        drop(dropped_after(polls, borrowing(&scope, &order, &provider)).await);
        let acted = provider.performed();
        // A claim that was just given back is told as such; the next call gets it.
        let second = wait::for_value(LIMIT, async || match borrowing(&scope, &order, &provider).await {
            Err(error) if matches!(error.kind(), ErrorKind::RetryLater | ErrorKind::InFlight) => None,
            end => Some(end),
        })
        .await
        .expect("no claim is left without its owner");
        let state = record(&executor, &receipt).await.state;
        match second {
            Ok(_) => {
                assert_eq!((state, provider.performed()), (State::Completed, 1), "after {polls} polls");
                ends.0 += 1;
            }
            Err(error) => {
                assert_eq!(
                    (error.kind(), state),
                    (ErrorKind::Escaped, State::Escaped),
                    "after {polls} polls"
                );
                assert_eq!(provider.performed(), acted, "after {polls} polls");
                ends.1 += 1;
            }
        }
    }
    assert!(ends.0 > 0 && ends.1 > 0, "dropped before, in and after the body: {ends:?}");
}
