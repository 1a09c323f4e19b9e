//! Makes an external action safe to retry.

mod clock;
mod context;
pub mod descriptor;
mod error;
pub mod executor;
mod failure;
pub mod identity;
pub mod ledger;
pub mod provider;
#[cfg(feature = "test-util")]
pub mod testing;

pub use context::EffectContext;
pub use descriptor::{Keying, RecoveryClass};
pub use error::{EffectError, ErrorKind, ProviderCalled};
pub use executor::{EffectScope, NodeExecution, NodeScope, RunScope, TenantScope};
pub use failure::{Argument, Failure, Found, Nested, Never, OrFail, Outcome, Verdict};
pub use identity::{EffectId, Fingerprint, Identity, InvocationId, NodeId, RunId, Tenant};
#[cfg(feature = "sqlite")]
pub use ledger::sqlite::SqliteLedger;
pub use ledger::{Ledger, LedgerError, LedgerErrorKind, MemoryLedger};
pub use provider::{LookUp, Profile, Provider, SendPermit, SendRefused};

/// What an effect returns: its value, or an [`EffectError`] around its own error type.
pub type Result<T, E> = std::result::Result<T, EffectError<E>>;
