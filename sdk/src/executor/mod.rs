//! The life of a call: claim, perform, settle.

pub(crate) mod core;
mod held;
mod scope;

pub(crate) use self::{held::Held, scope::sealed};
pub use self::scope::{EffectScope, NodeExecution, NodeScope, RunScope, Scope, TenantScope};
