//! Ledgers that the first release wrote and that a later one has migrated since, opened, migrated and read by this one; and their
//! values read by types that have moved on.
#![forbid(unsafe_code)]

#[path = "schema_compat/newer.rs"]
mod newer;
#[path = "retention/place.rs"]
#[allow(dead_code, reason = "shared with the tests of retention, which need all of it")]
mod place;

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use effectual::{
    ErrorKind, Executor, Ledger, PostgresLedger, Receipt, SqliteLedger, TenantScope,
    ledger::record::{OutcomeBody, State},
    retention::{RetentionPolicy, sweep},
};
use effectual_tests::{database::SqliteFile, scripted::Scripted};

use newer::*;
use place::Place;

/// An hour after the fixtures were written: their leases have ended, and no retention has.
const WRITTEN_MS: u64 = 1_796_079_467_000 + 3_600_000;

const SQLITE: &str = include_str!("schema_compat/sqlite_0001.sql");
const POSTGRES: &str = include_str!("schema_compat/postgres_0001.sql");

/// What a file of the first release had become before the rules of its rows had their present form.
const SQLITE_VERSION_4: [&str; 4] = [
    include_str!("../sdk/migrations/sqlite/0002_unsettled.sql"),
    include_str!("../sdk/migrations/sqlite/0003_retention.sql"),
    include_str!("../sdk/migrations/sqlite/0004_requests.sql"),
    "PRAGMA user_version = 4",
];

async fn places() -> Vec<Place> {
    let mut places = Place::all("a ledger of the first release").await;
    for place in &places {
        place.execute(if place.file().is_some() { SQLITE } else { POSTGRES }).await;
    }
    let later = Place::Sqlite(SqliteFile::new());
    for sql in [SQLITE].into_iter().chain(SQLITE_VERSION_4) {
        later.execute(sql).await;
    }
    places.push(later);
    places
}

/// A ledger whose clock stands where the fixture was written, and the given time after that.
async fn open(place: &Place, later: Duration) -> Arc<dyn Ledger> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let target = Duration::from_millis(WRITTEN_MS) + later;
    let offset_ms = target.as_millis().cast_signed() - now.as_millis().cast_signed();
    let offset_ms = i64::try_from(offset_ms).expect("not that long ago");
    match place {
        Place::Sqlite(file) => Arc::new(
            SqliteLedger::builder(file.path()).clock_offset_ms(offset_ms).open().await.expect("migrated"),
        ),
        Place::Direct(database) => {
            let builder = PostgresLedger::builder(database.url()).clock_offset_ms(offset_ms);
            Arc::new(builder.connect().await.expect("migrated"))
        }
        Place::Pooled(database, pooler) => {
            let builder = PostgresLedger::builder(database.url_through(pooler)).pooled(true);
            Arc::new(builder.clock_offset_ms(offset_ms).connect().await.expect("migrated"))
        }
    }
}

fn scope(ledger: &Arc<dyn Ledger>) -> (Executor, TenantScope, Receipt) {
    let executor = Executor::builder(Arc::clone(ledger)).build().expect("a valid set-up");
    let receipt = Receipt::new();
    let scope = executor.tenant("acme").expect("a tenant").with_receipt(&receipt);
    (executor, scope, receipt)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f26_values_of_an_older_binary_decode_or_are_unreadable_and_nothing_is_performed_again() {
    for place in places().await {
        let ledger = open(&place, Duration::ZERO).await;
        let (executor, scope, receipt) = scope(&ledger);
        let ran = Ran::default();
        let (paid, partly) = ("paid".to_owned(), "partly".to_owned());

        // A renamed type.
        let invoice = same(&scope, paid.clone(), 5, ran.clone()).await.expect("decodes");
        assert_eq!((invoice.number, invoice.state, invoice.note.as_str()), (7, State1::Paid, "thank you"));
        let invoice = same(&scope, partly.clone(), 5, ran.clone()).await.expect("decodes");
        assert_eq!(invoice.state, State1::PartlyPaid { cents: 40 });
        // A field that is new, and one that is gone.
        let invoice = wider(&scope, paid.clone(), 5, ran.clone()).await.expect("decodes");
        assert_eq!((invoice.number, invoice.currency.as_str()), (7, "usd"));
        // A variant of another name, which says what it was called.
        let invoice = aliased(&scope, paid.clone(), 5, ran.clone()).await.expect("decodes");
        assert_eq!(invoice.state, State2::Settled);
        // One that does not say so, and a field of another type.
        for error in [
            renamed(&scope, paid.clone(), 5, ran.clone()).await.expect_err("another variant").kind(),
            retyped(&scope, paid.clone(), 5, ran.clone()).await.expect_err("another type").kind(),
            retyped(&scope, partly.clone(), 5, ran.clone()).await.expect_err("another type").kind(),
        ] {
            assert_eq!(error, ErrorKind::Unreadable);
        }
        // What cannot be decoded can be looked at.
        let id = receipt.effect_id().expect("an identity");
        let stored = executor.inspect(&id).await.expect("an answer").expect("recorded").effect.outcome;
        let OutcomeBody::Payload(payload) = stored.expect("an outcome").body else { panic!("a payload") };
        assert_eq!((&*payload.codec, payload.bytes.first()), ("json/1", Some(&b'{')));
        assert!(String::from_utf8_lossy(&payload.bytes).contains(r#""number":7"#));
        // So it is with refusals, which are in the same encoding.
        let declined = || "declined".to_owned();
        let refused = same(&scope, declined(), 5, ran.clone()).await.expect_err("refused");
        assert!(matches!(refused.error(), Some(PayError::Declined { code }) if code == "insufficient_funds"));
        let refused = renamed(&scope, declined(), 5, ran.clone()).await.expect_err("refused all the same");
        assert_eq!((refused.kind(), refused.error().is_none()), (ErrorKind::Refused, true));
        // In doubt then, in doubt now.
        let escaped = same(&scope, "lost".to_owned(), 5, ran.clone()).await.expect_err("in doubt");
        assert_eq!(escaped.kind(), ErrorKind::Escaped);
        let mismatch = same(&scope, paid, 6, ran.clone()).await.expect_err("another amount");
        assert_eq!(mismatch.kind(), ErrorKind::Mismatch);
        assert_eq!(ran.load(Ordering::SeqCst), 0, "nothing was performed on {}", place.name());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_row_of_the_first_release_goes_on_as_it_would_have() {
    for place in places().await {
        let ledger = open(&place, Duration::ZERO).await;
        let (executor, scope, receipt) = scope(&ledger);
        let provider = Scripted::forgetful([]);
        let run = scope.run(format!("acme/{:0>16}", "three")).expect("a run");
        let node = run.node("ship").expect("a node");

        let twice = sent(&scope, "twice".into(), provider.clone()).await.expect("replayed");
        let id = receipt.effect_id().expect("an identity");
        let history = executor.inspect(&id).await.expect("an answer").expect("recorded");
        assert_eq!((twice.number, history.effect.attempt, history.closed.len()), (2, 2, 1));
        assert_eq!(kept(&node, "in-a-run".into(), provider.clone()).await.expect("replayed").number, 1);
        // Claimed by a process that is gone.
        for order in ["escaped", "claimed"] {
            let error = kept(&scope, order.into(), provider.clone()).await.expect_err("in doubt");
            assert_eq!(error.kind(), ErrorKind::Escaped);
        }
        let handed = accepted(&scope, "a".into()).await.expect_err("accepted");
        assert_eq!((handed.kind(), handed.handle()), (ErrorKind::Accepted, Some("job-17")));
        let line: u32 = 3;
        assert_eq!(ship(&scope, "o".into(), line, provider.clone()).await.expect("replayed").number, 1);
        assert_eq!(provider.performed(), 0, "on {}", place.name());
        // Known not to have been performed: a new attempt, under the key that is stored.
        kept(&scope, "released".into(), provider.clone()).await.expect("performed");
        let id = receipt.effect_id().expect("an identity");
        let effect = executor.inspect(&id).await.expect("an answer").expect("recorded").effect;
        assert_eq!(
            (effect.state, effect.attempt, provider.keys()),
            (State::Completed, 2, vec![effect.provider_key.to_string()])
        );
    }
}

/// Rows of before the migration are found by the sweep, and the schema is migrated once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_the_first_release_are_forgotten_in_time() {
    for place in places().await {
        let later = open(&place, place::DAY * 31).await;
        let completed =
            place.texts("SELECT operation FROM effectual_effects WHERE state = 'completed'").await;
        let pass = sweep(&*later, &RetentionPolicy::default()).await.expect("a pass");
        assert_eq!(pass.forgotten, u64::try_from(completed.len()).expect("a few"), "on {}", place.name());
        let again = open(&place, Duration::ZERO).await;
        let (_, scope, _) = scope(&again);
        let ran = Ran::default();
        let expired = same(&scope, "paid".into(), 5, ran.clone()).await.expect_err("forgotten");
        assert_eq!((expired.kind(), ran.load(Ordering::SeqCst)), (ErrorKind::Expired, 0));
    }
}
