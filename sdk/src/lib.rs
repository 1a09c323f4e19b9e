#![doc = include_str!("docs/index.md")]

#[macro_use]
mod rules;

mod clock;
mod context;
pub mod descriptor;
pub mod docs;
mod environment;
mod error;
pub mod executor;
mod expansion;
mod failure;
#[cfg(feature = "tower")]
pub mod idempotency_key;
pub mod identity;
pub mod ledger;
pub mod provider;
pub mod regions;
pub mod retention;
pub mod retry;
mod secret;
#[cfg(test)]
mod simulation;
pub mod telemetry;
#[cfg(feature = "test-util")]
pub mod testing;
#[cfg(feature = "axum")]
pub mod witness;

pub use context::{EffectContext, Transaction, TransactionRefused};
pub use descriptor::{Keying, RecoveryClass};
pub use effectual_macros::{Failure, Fingerprint, Identity, effect};
pub use error::{EffectError, ErrorKind, ProviderCalled};
pub use executor::{
    Census, ConfigError, Drained, EffectScope, Executor, ExecutorBuilder, Listing, NodeExecution, NodeScope,
    OutcomeCache, Receipt, Recovery, RecoveryReport, Resolution, ResolveError, ResolveErrorKind, RunScope,
    TenantScope,
};
pub use expansion::{Attached, Call};
pub use failure::{Argument, Failure, Found, Nested, Never, OrFail, Outcome, Polled, Verdict};
pub use identity::{EffectId, Fingerprint, Identity, InvocationId, NodeId, RunId, Tenant};
#[cfg(feature = "postgres")]
pub use ledger::postgres::PostgresLedger;
#[cfg(feature = "sqlite")]
pub use ledger::sqlite::SqliteLedger;
pub use ledger::{Ledger, LedgerError, LedgerErrorKind, MemoryLedger, TransactionalLedger, resolution::By};
pub use provider::{LookUp, Poll, Profile, Provider, SendPermit, SendRefused};
pub use secret::Secret;

/// What an effect returns: its value, or an [`EffectError`] around its own error type.
pub type Result<T, E> = std::result::Result<T, EffectError<E>>;

/// What the attribute and the derives name. Not part of the public interface.
#[doc(hidden)]
pub mod __private {
    pub use inventory;

    pub use crate::{
        Argument, EffectContext, EffectError, EffectScope, Failure, Found, Keying, NodeScope, Outcome,
        RecoveryClass, Result, Verdict,
        descriptor::{Descriptor, ProviderRef, Registered},
        executor::{
            Input, Recoverable, ResourceRef, Stored, Unreadable, Work, attach, attach_recipe, call,
            call_recipe, call_recipe_reconciled, call_recipe_work, call_reconciled, call_work,
            secret_arguments,
        },
        expansion::{
            AsKey, Attached, Call, Delay, DurableArgument, LookedUp, PolledReturn, Returned,
            attached_argument, looked_up, owned, polled, receiver, returned,
        },
        identity::{
            ArgumentDigest, Arguments, Encoder, Fingerprint, FingerprintError, Identity, KeyFields,
            RecipePlace, activity_recipe, business_identity, mismatches,
        },
    };
}

/// The code in the README is compiled.
#[cfg(all(doctest, feature = "sqlite", feature = "stripe"))]
#[doc = include_str!("../../README.md")]
struct Readme;
