//! The life of a call: `call` freezes it, `drive` claims, `perform` makes attempts and settles.

mod attached;
mod attempt;
mod background;
mod builder;
mod call;
mod callers;
mod claimed;
mod commit;
mod core;
mod drive;
mod durable;
mod erased;
mod handle;
mod held;
mod identified;
mod known;
mod listing;
mod look_up;
mod news;
mod outcomes;
mod perform;
mod poll;
mod progress;
mod receipt;
mod recovery;
mod resolve;
mod scope;
mod settings;
mod settle;
mod wait;
mod work;

#[doc(hidden)]
pub use self::{
    attached::{AttachedCall, Attachment, Turn},
    call::{
        attach, attach_recipe, call, call_recipe, call_recipe_reconciled, call_recipe_work, call_reconciled,
        call_work, secret_arguments,
    },
    durable::{Input, Recoverable, ResourceRef, Stored, Unreadable},
    scope::{Ordinals, Scope},
    work::Work,
};
pub use self::{
    builder::ExecutorBuilder,
    handle::{Drained, Executor},
    listing::{Census, Listing},
    outcomes::OutcomeCache,
    receipt::Receipt,
    recovery::{Recovery, RecoveryReport},
    resolve::{Resolution, ResolveError, ResolveErrorKind},
    scope::{EffectScope, NodeExecution, NodeScope, RunScope, TenantScope},
    settings::ConfigError,
};
pub(crate) use self::{held::Held, scope::sealed};
