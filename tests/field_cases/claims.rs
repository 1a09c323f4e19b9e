//! Claims that were lost, taken over or contended, at the ledger itself.

use std::{sync::Arc, time::Duration};

use effectual::{
    EffectId, Keying, Ledger, PostgresLedger, RecoveryClass,
    identity::ArgumentDigest,
    ledger::{
        Change, Changed, Claim, ClaimRequest, Owner,
        change::Ended,
        record::{
            AttemptToken, AttemptVerdict, EffectRecord, OutcomeBody, OutcomeKind, Payload, Place, State,
        },
    },
};
use effectual_tests::{database::PostgresDatabase, on_each_ledger, servers, wait};
use sqlx::{Connection, PgConnection};

const LIMIT: Duration = Duration::from_secs(30);

/// How often a race is run.
const ROUNDS: usize = 60;

on_each_ledger![
    f02_a_takeover_and_a_settle_at_the_same_time_have_one_winner,
    f06_a_stale_owner_renews_ends_and_settles_nothing,
    f57_calls_of_one_batch_are_compared_as_single_ones_are,
];

pub(crate) fn request(class: RecoveryClass, lease_ms: i64) -> ClaimRequest {
    let digest = blake3::hash(uuid::Uuid::new_v4().as_bytes()).to_hex();
    ClaimRequest {
        id: EffectId::parse(format!("acme/{digest}")).expect("a valid effect id"),
        operation: "refund-order".into(),
        keying: Keying::BusinessIdentity,
        key_version: 1,
        identities: effectual::ledger::identities::Identities::default(),
        readable: None,
        provider: None,
        provider_key: digest[..32].into(),
        fingerprints: [argument(1)].into(),
        input: None,
        class,
        can_perform: true,
        can_look_up: false,
        can_poll: false,
        resend_window_ms: None,
        resend_quiet_ms: None,
        token: token(),
        lease_ms,
        attempt_timeout_ms: 1,
        place: Place::default(),
    }
}

fn argument(value: u8) -> ArgumentDigest {
    ArgumentDigest { name: "amount".into(), digest: [value; 32], key_id: None }
}

fn token() -> AttemptToken {
    AttemptToken(uuid::Uuid::new_v4().into_bytes())
}

/// The same call of another process on the same host: nothing tells the two apart but the token.
fn again(request: &ClaimRequest) -> ClaimRequest {
    ClaimRequest { token: token(), lease_ms: 600_000, ..request.clone() }
}

pub(crate) fn settle(text: &str) -> Change {
    Change::Settle {
        ended: Ended::found(AttemptVerdict::Performed),
        kind: OutcomeKind::Success,
        body: payload(text),
        provider_replay: false,
        conclusive: false,
        retain_ms: 600_000,
    }
}

fn payload(text: &str) -> OutcomeBody {
    OutcomeBody::Payload(Payload { codec: "json/1".into(), bytes: text.as_bytes().to_vec() })
}

pub(crate) async fn claim(ledger: &dyn Ledger, request: &ClaimRequest) -> Claim {
    ledger.claim(request).await.expect("a claim is answered")
}

pub(crate) async fn win(ledger: &dyn Ledger, request: &ClaimRequest) -> EffectRecord {
    match claim(ledger, request).await {
        Claim::Won { record, .. } => std::sync::Arc::unwrap_or_clone(record),
        other => panic!("expected to win, got {other:?}"),
    }
}

async fn change(ledger: &dyn Ledger, record: &EffectRecord, change: &Change) -> Changed {
    ledger.change(&Owner::of(record), change).await.expect("a change is answered")
}

async fn stored(ledger: &dyn Ledger, record: &EffectRecord) -> EffectRecord {
    ledger.read(&record.id).await.expect("a read is answered").expect("it is recorded").effect
}

/// The orphan's owner comes back with its outcome at the moment when another takes it over. Whoever the ledger lets through,
/// the other one is told, and exactly one outcome is stored.
async fn f02_a_takeover_and_a_settle_at_the_same_time_have_one_winner(ledger: Arc<dyn Ledger>) {
    for round in 0..ROUNDS {
        let request = request(RecoveryClass::Rerun, 1);
        let first = win(&ledger, &request).await;
        // Only once the lease has ended may it be taken over at all.
        wait::until("the lease to end", LIMIT, async || now_ms() > first.lease_until).await;
        let (second, settled) = (again(&request), settle("1"));
        let (claimed, changed) = if round % 2 == 0 {
            tokio::join!(claim(&ledger, &second), change(&ledger, &first, &settled))
        } else {
            let (changed, claimed) = tokio::join!(change(&ledger, &first, &settled), claim(&ledger, &second));
            (claimed, changed)
        };
        let record = stored(&ledger, &first).await;
        match (claimed, changed) {
            (Claim::Settled { .. }, Changed::Applied(_)) => {
                assert_eq!((record.state, record.attempt, record.fence), (State::Completed, 1, 1));
            }
            (Claim::Won { record: won, .. }, Changed::Stale(_)) => {
                assert_eq!((record.state, record.attempt, record.token), (State::Claimed, 2, second.token));
                assert!(record.outcome.is_none(), "the late outcome did not replace anything");
                assert!(matches!(change(&ledger, &won, &settle("2")).await, Changed::Applied(_)));
            }
            other => panic!("two winners or none: {other:?}"),
        }
    }
}

/// How many of the ledgers' connections wait for a lock.
async fn waiting(connection: &mut PgConnection) -> i64 {
    let sql = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND wait_event_type = 'Lock'";
    sqlx::query_scalar(sql).fetch_one(connection).await.expect("a count")
}

/// The one that takes over is held up between its look at the orphan and its write, by a lock on the row, and the owner's
/// settle gets in before it; and the other way round. Each has a ledger of its own, as in two processes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f02_a_takeover_that_is_held_up_loses_to_the_settle_before_it() {
    let Some(server) = servers::postgres("f02 on PostgreSQL") else { return };
    let database = PostgresDatabase::create(&server).await;
    let connect = async || Arc::new(PostgresLedger::connect(database.url()).await.expect("a ledger"));
    let (of_owner, of_other) = (connect().await, connect().await);
    let mut observer = PgConnection::connect(&database.url()).await.expect("a connection");
    for settle_first in [true, false] {
        let request = request(RecoveryClass::Rerun, 1);
        let first = win(&of_owner, &request).await;
        wait::until("the lease to end", LIMIT, async || now_ms() > first.lease_until).await;
        let mut holder = PgConnection::connect(&database.url()).await.expect("a connection");
        let mut held = holder.begin().await.expect("a transaction");
        sqlx::query("SELECT FROM effectual_effects WHERE provider_key = $1 FOR UPDATE")
            .bind(&*request.provider_key)
            .fetch_one(&mut *held)
            .await
            .expect("the row");
        let (ledger, other) = (Arc::clone(&of_other), again(&request));
        let takeover = async move { claim(&ledger, &other).await };
        let (ledger, owned) = (Arc::clone(&of_owner), first.clone());
        let settle = async move { change(&ledger, &owned, &settle("1")).await };
        let (takeover, settle) = if settle_first {
            let settle = tokio::spawn(settle);
            wait::until("the settle to wait", LIMIT, async || waiting(&mut observer).await == 1).await;
            (tokio::spawn(takeover), settle)
        } else {
            let takeover = tokio::spawn(takeover);
            wait::until("the takeover to wait", LIMIT, async || waiting(&mut observer).await == 1).await;
            (takeover, tokio::spawn(settle))
        };
        wait::until("both to wait", LIMIT, async || waiting(&mut observer).await == 2).await;
        held.commit().await.expect("the lock is given back");
        let (claimed, changed) = (takeover.await.expect("no panic"), settle.await.expect("no panic"));
        match (settle_first, claimed, changed) {
            (true, Claim::Settled { .. }, Changed::Applied(_))
            | (false, Claim::Won { .. }, Changed::Stale(_)) => {}
            other => panic!("{other:?}"),
        }
    }
}

fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_millis()).expect("before the year 292 million")
}

async fn f06_a_stale_owner_renews_ends_and_settles_nothing(ledger: Arc<dyn Ledger>) {
    let request = request(RecoveryClass::Rerun, 1);
    let first = win(&ledger, &request).await;
    let second = again(&request);
    let second = wait::for_value(LIMIT, async || match claim(&ledger, &second).await {
        Claim::Won { record, .. } => Some(std::sync::Arc::unwrap_or_clone(record)),
        _ => None,
    })
    .await
    .expect("taken over after the lease");
    let end =
        |verdict, keep_claim| Change::End { ended: Ended::found(verdict), keep_claim, not_before_ms: None };
    let late = || {
        [
            Change::Renew { lease_ms: 600_000 },
            end(AttemptVerdict::NotPerformed, false),
            end(AttemptVerdict::Unknown, true),
            settle("\"of the first\""),
        ]
    };
    for when in ["while the second works", "after it has settled"] {
        let before = stored(&ledger, &first).await;
        for change_of_first in late() {
            let answer = change(&ledger, &first, &change_of_first).await;
            assert!(matches!(answer, Changed::Stale(_)), "{when}: {change_of_first:?}");
        }
        let after = stored(&ledger, &first).await;
        let row = |record: &EffectRecord| (record.state, record.fence, record.token, record.outcome.clone());
        assert_eq!(row(&after), row(&before), "{when}");
        if before.state == State::Claimed {
            assert!(matches!(
                change(&ledger, &second, &settle("\"of the second\"")).await,
                Changed::Applied(_)
            ));
        }
    }
    let Claim::Settled { record, .. } = claim(&ledger, &again(&request)).await else {
        panic!("it is settled")
    };
    assert_eq!(record.outcome.as_ref().expect("an outcome").body, payload("\"of the second\""));
}

/// Fifty calls at once end up in a few batches of the writer. All but one argument's callers are told of the mismatch, and
/// none of them is told that it is merely in flight.
async fn f57_calls_of_one_batch_are_compared_as_single_ones_are(ledger: Arc<dyn Ledger>) {
    let request = request(RecoveryClass::Hold, 600_000);
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..50_u8 {
        let ledger = Arc::clone(&ledger);
        let call = ClaimRequest { fingerprints: [argument(number % 2)].into(), ..again(&request) };
        calls.spawn(async move { (number % 2, claim(&ledger, &call).await) });
    }
    let answers = calls.join_all().await;
    let won: Vec<_> = answers
        .iter()
        .filter(|(_, claim)| matches!(claim, Claim::Won { .. }))
        .map(|(amount, _)| *amount)
        .collect();
    let [winner] = won[..] else { panic!("one winner, not {won:?}") };
    for (amount, claim) in &answers {
        match claim {
            Claim::Won { .. } | Claim::InFlight { .. } => assert_eq!(*amount, winner),
            Claim::Mismatch { .. } => assert_ne!(*amount, winner),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(answers.iter().filter(|(_, claim)| matches!(claim, Claim::Mismatch { .. })).count(), 25);
}
