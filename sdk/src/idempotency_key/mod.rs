//! The caller's side: an HTTP request that is sent again under its `Idempotency-Key` is answered again, and not run
//! again. What it promises, and what it leaves to you, is on the page [`http`](crate::docs::http).
//!
//! ```
//! # #[cfg(feature = "sqlite")]
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! use effectual::{SqliteLedger, Tenant, idempotency_key::IdempotencyKeyLayer};
//!
//! let ledger = SqliteLedger::open("effects.db").await?;
//! // Your authentication, outside this layer, puts the tenant into the request's extensions.
//! let tenant = |extensions: &http::Extensions| extensions.get::<Tenant>().cloned();
//! let layer = IdempotencyKeyLayer::builder(ledger.requests(), tenant).required(true).build()?;
//! # let _ = layer; Ok(())
//! # }
//! ```
//!
//! Without a source of the tenant there is no layer:
//!
//! ```compile_fail,E0061
//! # use effectual::idempotency_key::{IdempotencyKeyLayer, MemoryRequests};
//! let layer = IdempotencyKeyLayer::builder(MemoryRequests::new()).build();
//! ```

mod answer;
#[cfg(feature = "axum")]
mod axum;
mod body;
mod builder;
mod drive;
mod fingerprint;
mod json;
mod keeper;
mod key;
mod keyed;
mod layer;
mod refusal;
mod service;
mod settings;
mod shared;
mod waiters;

pub use self::{
    answer::{ErrorCode, Streamed},
    body::ResponseBody,
    builder::IdempotencyKeyBuilder,
    keyed::{KeyedRequest, RequestTx},
    layer::IdempotencyKeyLayer,
    refusal::{Refusal, RefusalKind},
    service::{IdempotencyKeyService, ResponseFuture},
    settings::SettingsError,
};
pub use crate::ledger::requests::{MemoryRequests, RequestStore};

/// What the fuzz targets call. Not part of the public interface.
#[doc(hidden)]
pub mod fuzzing {
    use super::{json, key};

    /// Whether header lines are one key of the grammar.
    #[must_use]
    pub fn is_key(lines: &[&[u8]], is_quoted_accepted: bool) -> Option<bool> {
        key::parse(lines.iter().copied(), is_quoted_accepted).map(|key| key.is_some()).ok()
    }

    /// Canonical JSON; `None` for what is no JSON.
    #[must_use]
    pub fn canonical_json(text: &[u8]) -> Option<Vec<u8>> {
        json::canonical(text)
    }
}
