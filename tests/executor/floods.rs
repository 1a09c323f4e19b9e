//! Many callers at once. What they wait is counted in batches, not in seconds.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use effectual::{
    EffectContext, EffectId, ErrorKind, Executor, Keying, Ledger, LedgerError, LedgerErrorKind,
    PostgresLedger, RecoveryClass, SqliteLedger, effect,
    ledger::{
        Claim, ClaimRequest, WhenFull,
        identities::Identities,
        record::{AttemptToken, Place},
    },
};
use effectual_tests::{
    database::{PostgresDatabase, SqliteFile},
    servers,
    wait::until_true,
};
use tokio::task::JoinSet;

/// As many as one commit carries at the most.
const BATCH: usize = 256;

const FLOOD: usize = 20 * BATCH;

#[effect(keying = business_identity, on_unknown = hold)]
async fn order(_cx: &EffectContext, #[key] order: u64) -> effectual::Result<u64, effectual::Never> {
    Ok(order)
}

effectual_tests::on_each_ledger!(a_tenants_flood_delays_no_other_tenants_claim);

fn request(tenant: &str, number: usize) -> ClaimRequest {
    ClaimRequest {
        id: EffectId::parse(format!("{tenant}/{}", blake3::hash(&number.to_be_bytes()).to_hex()))
            .expect("an id"),
        operation: "order".into(),
        keying: Keying::BusinessIdentity,
        key_version: 1,
        identities: Identities::default(),
        readable: None,
        provider: None,
        provider_key: format!("key-{number}").into(),
        fingerprints: [].into(),
        input: None,
        class: RecoveryClass::Hold,
        can_perform: true,
        can_look_up: false,
        can_poll: false,
        resend_window_ms: None,
        resend_quiet_ms: None,
        token: AttemptToken((number as u128).to_be_bytes()),
        lease_ms: 600_000,
        attempt_timeout_ms: 1_000,
        place: Place::default(),
    }
}

/// When the ledger stored the claim, in milliseconds of its clock.
async fn stored_at(ledger: &dyn Ledger, request: &ClaimRequest) -> i64 {
    match ledger.claim(request).await.expect("an answer") {
        Claim::Won { record, .. } => record.started_at,
        other => panic!("not won: {other:?}"),
    }
}

async fn a_tenants_flood_delays_no_other_tenants_claim(ledger: Arc<dyn Ledger>) {
    let answered = Arc::<AtomicUsize>::default();
    let mut flood = JoinSet::new();
    for number in 0..FLOOD {
        let (ledger, answered) = (Arc::clone(&ledger), Arc::clone(&answered));
        flood.spawn(async move {
            let stored = stored_at(&*ledger, &request("acme", number)).await;
            answered.fetch_add(1, Ordering::SeqCst);
            stored
        });
    }
    until_true(|| answered.load(Ordering::SeqCst) > 0).await;
    let asked = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_millis();
    let asked = i64::try_from(asked).expect("a time");
    let own = stored_at(&*ledger, &request("bolt", FLOOD)).await;
    let flood = flood.join_all().await;
    // Of two writers each has a batch under way, and each may have another before the one with the claim is stored.
    let passed = flood.into_iter().filter(|stored| (asked + 1..own).contains(stored)).count();
    assert!(passed <= 6 * BATCH, "{passed} of the flood were stored first");
}

async fn refuses_what_finds_no_room(ledger: impl Ledger) {
    let executor = Executor::builder(ledger).build().expect("an executor");
    let mut calls = JoinSet::new();
    for number in 0..500 {
        let scope = executor.tenant("acme").expect("a tenant");
        calls.spawn(async move { (number, order(&scope, number).await) });
    }
    let (mut done, mut refused) = (0, Vec::new());
    for (number, end) in calls.join_all().await {
        match end {
            Ok(_) => done += 1,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Ledger, "{error}");
                let source =
                    std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<LedgerError>());
                assert_eq!(source.map(LedgerError::kind), Some(LedgerErrorKind::Overloaded), "{error}");
                refused.push(number);
            }
        }
    }
    assert!(done > 0 && !refused.is_empty(), "{done} of 500 found room");
    let scope = executor.tenant("acme").expect("a tenant");
    for number in refused {
        order(&scope, number).await.expect("nothing of it was started, and there is room now");
    }
}

#[tokio::test]
async fn sqlite_refuses_what_finds_no_room() {
    let file = SqliteFile::new();
    let ledger = SqliteLedger::builder(file.path()).waiting_max(3).when_full(WhenFull::Refuse);
    refuses_what_finds_no_room(ledger.open().await.expect("a ledger")).await;
}

#[tokio::test]
async fn postgres_refuses_what_finds_no_room() {
    let Some(server) = servers::postgres("a full queue on PostgreSQL") else { return };
    let database = PostgresDatabase::create(&server).await;
    let ledger = PostgresLedger::builder(database.url()).waiting_max(3).when_full(WhenFull::Refuse);
    refuses_what_finds_no_room(ledger.connect().await.expect("a ledger")).await;
}
