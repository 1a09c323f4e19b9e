#![doc = include_str!("../docs/identity.md")]

mod by_digest;
mod canonical;
mod containers;
mod effect_id;
mod fingerprint;
pub mod ids;
mod json;
mod keying;
mod leaves;
mod readable;
mod secret;
mod traits;

pub(crate) use by_digest::ByDigest;
pub use canonical::Encoder;
pub use effect_id::EffectId;
pub use fingerprint::{ArgumentDigest, Arguments, FingerprintError, mismatches};
pub use ids::{InvalidId, InvocationId, NodeId, RunId, Tenant};
pub use keying::{KeyFields, RecipePlace, activity_recipe, business_identity};
pub use secret::{FingerprintKey, InvalidFingerprintKey};
pub use traits::{Fingerprint, Identity};
