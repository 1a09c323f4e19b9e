//! Claims, raw connections and processes.

use std::path::{Path, PathBuf};

use effectual::{
    EffectId, Keying, Ledger, RecoveryClass, SqliteLedger,
    identity::ArgumentDigest,
    ledger::{
        Change, Claim, ClaimRequest,
        change::Ended,
        record::{AttemptToken, AttemptVerdict, EffectRecord, OutcomeBody, OutcomeKind, Payload, Place},
    },
};
pub(crate) use effectual_tests::process::{Process, tell, told};
use sqlx::{ConnectOptions, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::TempDir;

pub(crate) const LONG_MS: i64 = 600_000;

pub(crate) fn scratch() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("effects.db");
    (directory, path)
}

pub(crate) async fn open(path: &Path) -> SqliteLedger {
    SqliteLedger::open(path).await.expect("a ledger opens")
}

pub(crate) fn id(number: u64) -> EffectId {
    EffectId::parse(format!("acme/{number:064x}")).expect("a valid effect id")
}

pub(crate) fn request(number: u64, token: u64) -> ClaimRequest {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes[8..].copy_from_slice(&token.to_be_bytes());
    ClaimRequest {
        id: id(number),
        operation: "refund-order".into(),
        keying: Keying::BusinessIdentity,
        key_version: 1,
        identities: effectual::ledger::identities::Identities::default(),
        readable: Some("order=…1042".into()),
        provider: None,
        provider_key: format!("key-{number}").into(),
        fingerprints: [ArgumentDigest { name: "amount".into(), digest: [1; 32], key_id: None }].into(),
        input: None,
        class: RecoveryClass::Hold,
        can_perform: true,
        can_look_up: false,
        can_poll: false,
        resend_window_ms: None,
        resend_quiet_ms: None,
        token: AttemptToken(bytes),
        lease_ms: LONG_MS,
        attempt_timeout_ms: 1_000,
        place: Place::default(),
    }
}

pub(crate) fn success(bytes: Vec<u8>) -> Change {
    let ended = Ended {
        verdict: AttemptVerdict::Performed,
        class: None,
        send_digest: None,
        key_taken: true,
        first_send_ago_ms: None,
        acts_for_ms: 0,
    };
    let body = OutcomeBody::Payload(Payload { codec: "json/1".into(), bytes });
    let kind = OutcomeKind::Success;
    Change::Settle { ended, kind, body, provider_replay: false, conclusive: false, retain_ms: LONG_MS }
}

pub(crate) async fn win(ledger: &SqliteLedger, number: u64) -> EffectRecord {
    match ledger.claim(&request(number, 0)).await.expect("a claim is answered") {
        Claim::Won { record, .. } => std::sync::Arc::unwrap_or_clone(record),
        claim => panic!("expected to win, got {claim:?}"),
    }
}

/// A connection of somebody else to the same file.
pub(crate) async fn raw(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).connect().await.expect("a connection")
}

pub(crate) async fn execute(conn: &mut SqliteConnection, sql: &'static str) -> sqlx::Result<()> {
    sqlx::raw_sql(sql).execute(conn).await.map(drop)
}

pub(crate) async fn count(conn: &mut SqliteConnection, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(conn).await.expect("a count")
}
