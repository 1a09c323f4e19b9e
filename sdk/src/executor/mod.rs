//! The life of a call: claim, perform, settle.

pub(crate) mod core;
mod held;
mod scope;

pub use self::scope::{EffectScope, NodeExecution, NodeScope, RunScope, Scope, TenantScope};
pub(crate) use self::{held::Held, scope::sealed};
