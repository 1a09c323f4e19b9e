//! What a careful engineer would write for one kind of effect: a row that says that it is claimed, and its outcome in the
//! same row. No more than that: one owner, no recovery, no versions, no look-up, no retention, no witness.

pub(crate) mod postgres;
pub(crate) mod queue;
pub(crate) mod sqlite;
pub(crate) mod tables;

use std::time::{SystemTime, UNIX_EPOCH};

/// What the row of a claim holds.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    pub(crate) digest: [u8; 32],
    pub(crate) token: [u8; 16],
    pub(crate) fingerprint: [u8; 32],
    pub(crate) provider_key: String,
    pub(crate) now: i64,
}

/// How long a claim authorises, in milliseconds.
pub(crate) const LEASE_MS: i64 = 60_000;

/// How long an outcome is kept, in milliseconds.
pub(crate) const RETAIN_MS: i64 = 400 * 86_400_000;

impl Claim {
    pub(crate) fn of(key: u64) -> Self {
        let digest = digest(key);
        Self {
            digest,
            token: *uuid::Uuid::new_v4().as_bytes(),
            fingerprint: *blake3::hash(&key.to_be_bytes()).as_bytes(),
            provider_key: uuid::Builder::from_custom_bytes(digest[..16].try_into().expect("16 bytes"))
                .into_uuid()
                .to_string(),
            now: now(),
        }
    }
}

/// The outcome of an effect.
#[derive(Debug, Clone)]
pub(crate) struct Settle {
    pub(crate) digest: [u8; 32],
    pub(crate) token: [u8; 16],
    pub(crate) payload: Vec<u8>,
    pub(crate) now: i64,
}

impl Settle {
    pub(crate) fn of(claim: &Claim, key: u64) -> Self {
        Self { digest: claim.digest, token: claim.token, payload: key.to_string().into_bytes(), now: now() }
    }
}

/// The identity of a key's effect.
pub(crate) fn digest(key: u64) -> [u8; 32] {
    *blake3::hash(format!("acme/order/{key}").as_bytes()).as_bytes()
}

pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    i64::try_from(since.as_millis()).expect("a clock before the year 292,000,000")
}
