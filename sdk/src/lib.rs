//! Makes an external action safe to retry.

pub mod identity;

pub use effectual_macros::{Fingerprint, Identity};
pub use identity::{EffectId, Fingerprint, Identity, InvocationId, NodeId, RunId, Tenant};

/// What the attribute and the derives name. Not part of the public interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::identity::{
        ArgumentDigest, Arguments, Encoder, Fingerprint, FingerprintError, Identity, KeyFields, RecipePlace,
        activity_recipe, business_identity, mismatches,
    };
}
