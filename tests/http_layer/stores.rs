//! What a store owes, beside what the requests over sockets show.

use std::{any::Any, sync::Arc};

use effectual::{
    Ledger, LedgerErrorKind, PostgresLedger, SqliteLedger, Tenant,
    idempotency_key::RequestStore,
    ledger::requests::{
        Absence, Begin, Begun, Change, Changed, Owner, RecordKey, RequestState, StoredResponse,
    },
};
use effectual_tests::{
    database::{PostgresDatabase, SqliteFile},
    servers,
};
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};
use tokio::task::JoinSet;

const HOUR_MS: i64 = 3600 * 1000;
const CALLERS_KEY: &[u8] = b"canary-callers-key-0123456789";

/// One database: its records now and 25 hours later, and its rows as they are.
struct Database {
    ledger: Arc<dyn Ledger>,
    now: Arc<dyn RequestStore>,
    later: Arc<dyn RequestStore>,
    raw: Raw,
    _keep: Box<dyn Any + Send + Sync>,
}

enum Raw {
    Sqlite(SqliteFile),
    Postgres(PostgresDatabase),
}

impl Raw {
    /// `statement` is text of this file.
    async fn execute(&self, statement: &str) -> Result<u64, sqlx::Error> {
        let statement = AssertSqlSafe(statement.to_owned());
        match self {
            Self::Sqlite(file) => {
                let mut conn =
                    SqliteConnection::connect(&format!("sqlite://{}", file.path().display())).await?;
                Ok(sqlx::raw_sql(statement).execute(&mut conn).await?.rows_affected())
            }
            Self::Postgres(database) => {
                let mut conn = PgConnection::connect(&database.url()).await?;
                Ok(sqlx::raw_sql(statement).execute(&mut conn).await?.rows_affected())
            }
        }
    }
}

impl Database {
    async fn sqlite() -> Self {
        let file = SqliteFile::new();
        let ledger = SqliteLedger::open(file.path()).await.expect("a ledger");
        let later = SqliteLedger::builder(file.path()).clock_offset_ms(25 * HOUR_MS);
        let later = later.open().await.expect("the same ledger, later");
        let (now, then) = (ledger.requests(), later.requests());
        Self {
            ledger: Arc::new(ledger),
            now: Arc::new(now),
            later: Arc::new(then),
            raw: Raw::Sqlite(file),
            _keep: Box::new(later),
        }
    }

    async fn postgres() -> Option<Self> {
        let server = servers::postgres("http_layer: request records on PostgreSQL")?;
        let database = PostgresDatabase::create(&server).await;
        let ledger = PostgresLedger::connect(database.url()).await.expect("a ledger");
        let later = PostgresLedger::builder(database.url()).clock_offset_ms(25 * HOUR_MS);
        let later = later.connect().await.expect("the same ledger, later");
        let (now, then) = (ledger.requests(), later.requests());
        Some(Self {
            ledger: Arc::new(ledger),
            now: Arc::new(now),
            later: Arc::new(then),
            raw: Raw::Postgres(database),
            _keep: Box::new(later),
        })
    }
}

fn begin(key: &[u8]) -> Begin {
    Begin {
        key: RecordKey::new(Tenant::parse("acme").expect("a tenant"), "POST /runs", key),
        fingerprint: [7; 32],
        principal: Some([9; 32]),
        token: *uuid::Uuid::new_v4().as_bytes(),
        lease_ms: 10_000,
        retention_ms: 24 * HOUR_MS,
    }
}

async fn run(store: &Arc<dyn RequestStore>, request: &Begin) -> Owner {
    match store.begin(request).await.expect("it answers") {
        Begun::Run(owner) => owner,
        other => panic!("not to run: {other:?}"),
    }
}

fn answer() -> StoredResponse {
    let headers = vec![("location".to_owned(), b"/x".to_vec()), ("x-odd".to_owned(), b"\xff\x01".to_vec())];
    StoredResponse { status: 299, headers, body: b"\0\xff body".to_vec() }
}

fn complete(answer: Result<StoredResponse, Absence>) -> Change {
    Change::Complete { answer, retention_ms: 24 * HOUR_MS }
}

async fn an_ended_lease_is_taken_over_by_one(database: Database) {
    let old = run(&database.now, &begin(CALLERS_KEY)).await;
    assert_eq!(database.now.begin(&begin(CALLERS_KEY)).await.expect("it answers"), Begun::InFlight);
    let mut racers = JoinSet::new();
    for _ in 0..32 {
        let store = Arc::clone(&database.later);
        racers.spawn(async move { store.begin(&begin(CALLERS_KEY)).await.expect("it answers") });
    }
    let told = racers.join_all().await;
    let owners: Vec<_> = told.iter().filter(|told| matches!(told, Begun::Run(_))).collect();
    assert_eq!(owners.len(), 1, "{told:?}");
    assert_eq!(told.iter().filter(|told| **told == Begun::InFlight).count(), 31);
    for change in [complete(Ok(answer())), Change::Renew { lease_ms: 1 }] {
        assert_eq!(database.now.change(&old, &change).await.expect("it answers"), Changed::Stale);
    }
    let Begun::Run(new) = owners[0] else { unreachable!("it was filtered") };
    assert_eq!(database.later.change(new, &complete(Ok(answer()))).await.expect("it answers"), Changed::Done);
    let told = database.later.begin(&begin(CALLERS_KEY)).await.expect("it answers");
    assert_eq!(told, Begun::Replay(answer()), "byte for byte");
}

async fn ends_are_kept_as_they_are(database: Database) {
    let store = &database.now;
    let fail = |keep_digest| Change::Fail { keep_digest, retention_ms: 24 * HOUR_MS };
    let ends = [
        (complete(Ok(answer())), Some(RequestState::Final(answer()))),
        (complete(Err(Absence::TooLarge)), Some(RequestState::Unavailable(Absence::TooLarge))),
        (complete(Err(Absence::Streamed)), Some(RequestState::Unavailable(Absence::Streamed))),
        (fail(true), Some(RequestState::Retryable)),
        (fail(false), None),
    ];
    for (number, (change, state)) in ends.into_iter().enumerate() {
        let request = begin(&[b'k', u8::try_from(number).expect("few")]);
        let owner = run(store, &request).await;
        assert_eq!(store.change(&owner, &change).await.expect("it answers"), Changed::Done);
        let held = store.read(&request.key).await.expect("it answers");
        assert_eq!(held.as_ref().map(|held| held.state.clone()), state);
        if let Some(held) = held {
            assert_eq!(
                (held.fingerprint, held.principal, held.key),
                (request.fingerprint, request.principal, request.key)
            );
            let again = store.change(&owner, &change).await.expect("it answers");
            assert_eq!(again, Changed::Settled, "a lost acknowledgement is recognised");
        }
    }
}

async fn what_is_over_is_swept_in_bounded_batches(database: Database) {
    for number in 0..5 {
        let owner = run(&database.now, &begin(&[b'k', number])).await;
        database.now.change(&owner, &complete(Ok(answer()))).await.expect("it answers");
    }
    assert_eq!(database.now.sweep(100).await.expect("it answers"), 0, "nothing is over yet");
    let running = run(&database.later, &begin(CALLERS_KEY)).await;
    for expected in [2, 2, 1, 0] {
        assert_eq!(database.later.sweep(2).await.expect("it answers"), expected);
    }
    assert!(database.later.read(&running.key).await.expect("it answers").is_some(), "who runs is left alone");
    // A record that is over counts as absent, swept or not.
    let owner = run(&database.now, &begin(b"unswept")).await;
    database.now.change(&owner, &complete(Ok(answer()))).await.expect("it answers");
    run(&database.later, &begin(b"unswept")).await;
}

async fn a_closed_ledgers_records_are_closed(database: Database) {
    run(&database.now, &begin(CALLERS_KEY)).await;
    database.ledger.close().await;
    let error = database.now.begin(&begin(b"other")).await.expect_err("it is closed");
    assert_eq!(error.kind(), LedgerErrorKind::Closed);
}

async fn the_callers_key_is_not_kept(database: Database) {
    let owner = run(&database.now, &begin(CALLERS_KEY)).await;
    database.now.change(&owner, &complete(Ok(answer()))).await.expect("it answers");
    let text = std::str::from_utf8(CALLERS_KEY).expect("a text");
    match &database.raw {
        Raw::Sqlite(file) => {
            let folder = file.path().parent().expect("a folder").to_owned();
            for entry in std::fs::read_dir(folder).expect("a folder") {
                let bytes = std::fs::read(entry.expect("a file").path()).expect("its bytes");
                assert!(!bytes.windows(CALLERS_KEY.len()).any(|window| window == CALLERS_KEY));
            }
        }
        Raw::Postgres(_) => {
            let find = format!("DELETE FROM effectual_requests AS r WHERE r::text LIKE '%{text}%'");
            assert_eq!(database.raw.execute(&find).await.expect("it runs"), 0);
        }
    }
    assert!(!format!("{owner:?} {:?}", begin(CALLERS_KEY)).contains(text));
}

/// What must not be stored of a pending record and of a final one.
const REFUSED: [&str; 17] = [
    "state = 'lost' WHERE state = 'pending'",
    "fence = 0 WHERE state = 'pending'",
    "revision = 0 WHERE state = 'pending'",
    "lease_until = NULL WHERE state = 'pending'",
    "ended_at = 1 WHERE state = 'pending'",
    "status = 200 WHERE state = 'pending'",
    "body = fingerprint WHERE state = 'pending'",
    "state = 'retryable' WHERE state = 'pending'",
    "state = 'unavailable', lease_until = NULL, ended_at = 1 WHERE state = 'pending'",
    "state = 'final', lease_until = NULL, ended_at = 1 WHERE state = 'pending'",
    "state = 'unavailable', lease_until = NULL, ended_at = 1, absent_reason = 'bored' WHERE state = 'pending'",
    "status = NULL WHERE state = 'final'",
    "headers = NULL WHERE state = 'final'",
    "body = NULL WHERE state = 'final'",
    "absent_reason = 'streamed' WHERE state = 'final'",
    "ended_at = NULL WHERE state = 'final'",
    "lease_until = 1 WHERE state = 'final'",
];

async fn the_database_refuses_what_is_no_record(database: Database) {
    run(&database.now, &begin(b"pending")).await;
    let owner = run(&database.now, &begin(b"final")).await;
    database.now.change(&owner, &complete(Ok(answer()))).await.expect("it answers");
    for refused in REFUSED {
        let stored = database.raw.execute(&format!("UPDATE effectual_requests SET {refused}")).await;
        assert!(stored.is_err(), "{refused}: {stored:?}");
    }
    let allowed = "state = 'retryable', lease_until = NULL, ended_at = 1 WHERE state = 'pending'";
    let stored = database.raw.execute(&format!("UPDATE effectual_requests SET {allowed}")).await;
    assert_eq!(stored.ok(), Some(1), "the rules let a record through");
}

macro_rules! on_each_database {
    ($($rule:ident),+ $(,)?) => {
        $(mod $rule {
            use super::*;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                super::$rule(Database::sqlite().await).await;
            }
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                if let Some(database) = Database::postgres().await {
                    super::$rule(database).await;
                }
            }
        })+
    };
}

on_each_database!(
    an_ended_lease_is_taken_over_by_one,
    ends_are_kept_as_they_are,
    what_is_over_is_swept_in_bounded_batches,
    a_closed_ledgers_records_are_closed,
    the_callers_key_is_not_kept,
    the_database_refuses_what_is_no_record,
);
