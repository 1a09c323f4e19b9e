//! What only the PostgreSQL ledger can get wrong. What every ledger owes is in the conformance suite.

mod changes;
mod checks;
mod claims;
mod migrating;
mod opening;
mod outages;
mod pooled;
mod removal;
mod told;
mod unsettled;

use std::sync::atomic::{AtomicU64, Ordering};

use effectual::{
    EffectId, Keying, Ledger, PostgresLedger, RecoveryClass, RunId,
    identity::ArgumentDigest,
    ledger::{
        Change, Changed, Claim, ClaimRequest, Owner,
        change::Ended,
        record::{AttemptToken, AttemptVerdict, EffectRecord, OutcomeBody, OutcomeKind, Payload, Place},
    },
};
use effectual_tests::{database::PostgresDatabase, servers};
use sqlx::{Connection, PgConnection};

/// A database of its own, or `None` where there is no server.
async fn database(part: &str) -> Option<PostgresDatabase> {
    let server = servers::postgres(&format!("postgres: {part}"))?;
    Some(PostgresDatabase::create(&server).await)
}

async fn ledger(database: &PostgresDatabase) -> PostgresLedger {
    PostgresLedger::connect(database.url()).await.expect("a ledger")
}

/// A connection past the ledger.
async fn raw(database: &PostgresDatabase) -> PgConnection {
    PgConnection::connect(&database.url()).await.expect("a connection")
}

async fn execute(connection: &mut PgConnection, sql: impl sqlx::SqlSafeStr) {
    sqlx::raw_sql(sql).execute(connection).await.expect("raw SQL");
}

async fn number(connection: &mut PgConnection, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(connection).await.expect("a number")
}

fn id(name: &str) -> EffectId {
    EffectId::parse(format!("acme/{}", blake3::hash(name.as_bytes()).to_hex())).expect("a valid effect id")
}

fn token() -> AttemptToken {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    AttemptToken(u128::from(NEXT.fetch_add(1, Ordering::Relaxed)).to_be_bytes())
}

fn run(name: &str) -> RunId {
    RunId::parse(format!("acme/{name:0>16}")).expect("a valid run id")
}

fn request(name: &str) -> ClaimRequest {
    let amount = ArgumentDigest {
        name: "amount".into(),
        digest: *blake3::hash(b"5").as_bytes(),
        key_id: Some("k1".into()),
    };
    ClaimRequest {
        id: id(name),
        operation: "refund".into(),
        keying: Keying::BusinessIdentity,
        key_version: 1,
        identities: effectual::ledger::identities::Identities::default(),
        readable: Some("order=…1042".into()),
        provider: Some("stripe".into()),
        provider_key: format!("key of {name}").into(),
        fingerprints: [amount].into(),
        input: None,
        class: RecoveryClass::Resend,
        can_perform: true,
        can_look_up: false,
        can_poll: false,
        resend_window_ms: Some(86_400_000),
        resend_quiet_ms: None,
        token: token(),
        lease_ms: 60_000,
        attempt_timeout_ms: 10_000,
        place: Place::default(),
    }
}

fn in_run(name: &str, by: &str) -> ClaimRequest {
    let place = Place {
        run: Some(run(by)),
        node: Some("charge".parse().expect("a valid node")),
        invocation: Some("i:1".parse().expect("a valid invocation")),
    };
    ClaimRequest { place, ..request(name) }
}

async fn win(ledger: &PostgresLedger, request: &ClaimRequest) -> EffectRecord {
    match ledger.claim(request).await {
        Ok(Claim::Won { record, .. }) => std::sync::Arc::unwrap_or_clone(record),
        other => panic!("not won: {other:?}"),
    }
}

async fn apply(ledger: &PostgresLedger, owner: &Owner, change: &Change) -> EffectRecord {
    match ledger.change(owner, change).await {
        Ok(Changed::Applied(record)) => std::sync::Arc::unwrap_or_clone(record),
        other => panic!("not applied: {other:?}"),
    }
}

fn ended(verdict: AttemptVerdict) -> Ended {
    Ended {
        verdict,
        class: None,
        send_digest: Some([7; 32]),
        key_taken: true,
        first_send_ago_ms: Some(1_000),
        acts_for_ms: 5_000,
    }
}

fn settle(bytes: &[u8]) -> Change {
    Change::Settle {
        ended: ended(AttemptVerdict::Performed),
        kind: OutcomeKind::Success,
        body: OutcomeBody::Payload(Payload { codec: "json/1".into(), bytes: bytes.to_vec() }),
        provider_replay: false,
        conclusive: false,
        retain_ms: 86_400_000,
    }
}
