//! The life of a call: `call` freezes it, `drive` claims, `perform` makes attempts and settles.

mod attempt;
mod background;
mod builder;
mod call;
mod claimed;
mod core;
mod drive;
mod erased;
mod handle;
mod held;
mod identified;
mod look_up;
mod perform;
mod progress;
mod receipt;
mod scope;
mod settings;
mod wait;

pub use self::{
    builder::ExecutorBuilder,
    handle::{Drained, Executor},
    receipt::Receipt,
    scope::{EffectScope, NodeExecution, NodeScope, RunScope, TenantScope},
    settings::ConfigError,
};
#[doc(hidden)]
pub use self::{
    call::{call, call_recipe, call_recipe_reconciled, call_reconciled},
    scope::Scope,
};
pub(crate) use self::{held::Held, scope::sealed};
