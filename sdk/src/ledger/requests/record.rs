//! What is kept of a request.

use std::fmt;

use crate::{identity::Tenant, ledger::record::LedgerTime};

/// Separates these digests from every other that the library makes.
const DOMAIN: &str = "effectual idempotency record v1";

/// Which record: a tenant, an endpoint and the digest of all three of its parts. The caller's key itself is nowhere kept.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RecordKey {
    tenant: Tenant,
    endpoint: String,
    digest: [u8; 32],
}

impl RecordKey {
    /// The record of a caller's key at an endpoint, which is a method and a route template such as `POST /runs`.
    #[must_use]
    pub fn new(tenant: Tenant, endpoint: impl Into<String>, caller_key: &[u8]) -> Self {
        let endpoint = endpoint.into();
        let mut hasher = blake3::Hasher::new_derive_key(DOMAIN);
        for part in [tenant.as_str().as_bytes(), endpoint.as_bytes(), caller_key] {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        Self { tenant, endpoint, digest: *hasher.finalize().as_bytes() }
    }

    /// A record that is read back.
    #[must_use]
    pub fn stored(tenant: Tenant, endpoint: String, digest: [u8; 32]) -> Self {
        Self { tenant, endpoint, digest }
    }

    /// Whose record it is.
    #[must_use]
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// The endpoint.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The digest of tenant, endpoint and caller's key: the row's key.
    #[must_use]
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }
}

impl fmt::Debug for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither the digest, which stands for the key, nor the endpoint, which may be a path.
        f.debug_struct("RecordKey").field("tenant", &self.tenant).finish_non_exhaustive()
    }
}

/// A final answer as it is given again.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredResponse {
    /// The HTTP status.
    pub status: u16,
    /// Names in lower case, values as they were, in their order.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Byte for byte.
    pub body: Vec<u8>,
}

impl fmt::Debug for StoredResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = format_args!("{} bytes", self.body.len());
        f.debug_struct("StoredResponse")
            .field("status", &self.status)
            .field("body", &body)
            .finish_non_exhaustive()
    }
}

/// Why an answer that was given cannot be given again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Absence {
    /// Its body is over the limit.
    TooLarge,
    /// Its body is a stream.
    Streamed,
    /// It belongs to another principal of the tenant. Never stored.
    OtherPrincipal,
}

impl Absence {
    /// The name that a store keeps.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::Streamed => "streamed",
            Self::OtherPrincipal => "other_principal",
        }
    }

    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn parse(name: &str) -> Option<Self> {
        [Self::TooLarge, Self::Streamed].into_iter().find(|absence| absence.as_str() == name)
    }
}

/// Where a request stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestState {
    /// It is running, or its process is gone.
    Pending {
        /// Until when its owner is authorised.
        lease_until: LedgerTime,
    },
    /// It was answered, and an equal request gets the same answer.
    Final(StoredResponse),
    /// It was answered, and the answer is not kept.
    Unavailable(Absence),
    /// It ended without a final answer: an equal request runs again.
    Retryable,
}

impl RequestState {
    /// The name that a store keeps.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Pending { .. } => "pending",
            Self::Final(_) => "final",
            Self::Unavailable(_) => "unavailable",
            Self::Retryable => "retryable",
        }
    }
}

/// One row.
#[derive(Clone, PartialEq, Eq)]
pub struct RequestRecord {
    /// Which record.
    pub key: RecordKey,
    /// The digest of what was asked.
    pub fingerprint: [u8; 32],
    /// The digest of who asked, where the host names principals.
    pub principal: Option<[u8; 32]>,
    /// Where it stands.
    pub state: RequestState,
    /// Raised by every run.
    pub fence: i64,
    /// The running or last owner's own mark.
    pub token: [u8; 16],
    /// Whether an earlier run under this fingerprint may have acted: its digest then outlasts an answer that is not kept.
    pub ran_before: bool,
    /// When the current run began.
    pub started_at: LedgerTime,
    /// When it ended.
    pub ended_at: Option<LedgerTime>,
    /// From when on the record counts as absent.
    pub retain_until: LedgerTime,
    /// Raised by every write.
    pub revision: i64,
}

impl fmt::Debug for RequestRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestRecord")
            .field("key", &self.key)
            .field("state", &self.state)
            .field("fence", &self.fence)
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}
