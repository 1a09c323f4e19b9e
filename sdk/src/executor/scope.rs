//! Where a call is made: a tenant, perhaps a run, perhaps a node of it.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use super::{core::Core, receipt::Receipt};
use crate::{
    identity::{InvalidId, InvocationId, NodeId, RecipePlace, RunId, Tenant},
    ledger::record::Place,
};

/// Where an effect can be called: a tenant outside any run, a run, a node, or the body of another effect.
///
/// Implemented by [`TenantScope`], [`RunScope`], [`NodeExecution`] and [`EffectContext`](crate::EffectContext); sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a place where an effect can be called",
    label = "pass `&executor.tenant(…)?`, `&….run(…)?`, `&….node(…)?`, or the body's own `cx`",
    note = "the parameter is written `cx: &EffectContext` in the function; callers pass a scope"
)]
pub trait EffectScope: sealed::Sealed + Send + Sync {
    #[doc(hidden)]
    fn __scope(&self) -> &Scope;
}

/// Where an effect with `keying = activity_recipe` can be called: in a node, or in the body of another effect.
#[diagnostic::on_unimplemented(
    message = "`{Self}` names no node, and `keying = activity_recipe` derives the identity from one",
    label = "pass `&executor.tenant(…)?.run(…)?.node(…)?`, or the body's own `cx`",
    note = "outside a run, use `keying = business_identity` with the `#[key]` arguments that name the business operation"
)]
pub trait NodeScope: EffectScope {
    #[doc(hidden)]
    fn __recipe_place(&self) -> RecipePlace;

    #[doc(hidden)]
    fn __ordinals(&self) -> &Ordinals;
}

pub(crate) mod sealed {
    #[doc(hidden)]
    pub trait Sealed {}
}

/// What every scope has in it. Not part of the public interface.
#[doc(hidden)]
#[derive(Clone)]
pub struct Scope {
    pub(crate) core: Arc<Core>,
    pub(crate) tenant: Tenant,
    pub(crate) place: Place,
    pub(crate) receipt: Option<Receipt>,
    /// Inside a body whose SQL commits with its outcome: effects of their own cannot be a part of that.
    pub(crate) in_transaction: bool,
}

/// The ordinals of a node's execution, or of an attempt, from 0. Not part of the public interface.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Ordinals(AtomicU64);

impl Ordinals {
    /// Taken when the annotated function is called, not when its future is first polled.
    pub(crate) fn take(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

impl Scope {
    pub(crate) fn new(core: Arc<Core>, tenant: Tenant) -> Self {
        Self { core, tenant, place: Place::default(), receipt: None, in_transaction: false }
    }

    /// The scope of an effect's body.
    pub(crate) fn inside(&self, in_transaction: bool) -> Self {
        Self { receipt: None, in_transaction, ..self.clone() }
    }
}

macro_rules! scope {
    ($name:ident) => {
        impl sealed::Sealed for $name {}
        impl EffectScope for $name {
            fn __scope(&self) -> &Scope {
                &self.0
            }
        }
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("tenant", &self.0.tenant)
                    .field("place", &self.0.place)
                    .finish_non_exhaustive()
            }
        }
    };
}

macro_rules! receipt {
    ($name:ident, $scope:tt) => {
        impl $name {
            /// The same scope; a call in it also fills `receipt`.
            #[must_use]
            pub fn with_receipt(mut self, receipt: &Receipt) -> Self {
                self.$scope.receipt = Some(receipt.clone());
                self
            }
        }
    };
}

receipt!(TenantScope, 0);
receipt!(RunScope, 0);
receipt!(NodeExecution, scope);

/// A tenant, outside any run: an operator's route, a scheduled job.
#[derive(Clone)]
pub struct TenantScope(pub(crate) Scope);
scope!(TenantScope);

/// A run of a workflow.
#[derive(Clone)]
pub struct RunScope(Scope, RunId);
scope!(RunScope);

/// One execution of a node. Ordinals count from 0 here: make a new one each time the node is executed.
#[derive(Clone)]
pub struct NodeExecution {
    scope: Scope,
    place: RecipePlace,
    ordinals: Arc<Ordinals>,
}

impl TenantScope {
    /// A run of this tenant. Takes a [`RunId`], or its text `<tenant>/<opaque>`, with 16 to 128 of `A-Z a-z 0-9 . _ ~ -`
    /// behind the tenant; [`RunId::mint`] makes a new one. Whatever goes on with a run names it by the same id.
    ///
    /// # Errors
    /// [`InvalidId`] if the text is no run id or names another tenant.
    pub fn run<R>(&self, run: R) -> Result<RunScope, InvalidId>
    where
        R: TryInto<RunId>,
        InvalidId: From<R::Error>,
    {
        let run = run.try_into()?;
        if run.tenant() != &self.0.tenant {
            return Err(InvalidId::new("run id", "a run of the scope's own tenant"));
        }
        let place = Place { run: Some(run.clone()), ..Place::default() };
        Ok(RunScope(Scope { place, ..self.0.clone() }, run))
    }
}

impl RunScope {
    /// A new execution of a node of this run. Takes a [`NodeId`], or its text: 1 to 128 of `A-Z a-z 0-9 . _ ~ : -`.
    ///
    /// # Errors
    /// [`InvalidId`] if the text is no node id.
    pub fn node<N>(&self, node: N) -> Result<NodeExecution, InvalidId>
    where
        N: TryInto<NodeId>,
        InvalidId: From<N::Error>,
    {
        let node = node.try_into()?;
        let place = RecipePlace::Node { run: self.1.clone(), node: node.clone() };
        let in_scope = Place { node: Some(node), ..self.0.place.clone() };
        let scope = Scope { place: in_scope, ..self.0.clone() };
        Ok(NodeExecution { scope, place, ordinals: Arc::default() })
    }
}

impl NodeExecution {
    /// The same execution under the host's own id of it, which the witness shows.
    ///
    /// # Errors
    /// [`InvalidId`] if the text is no invocation id.
    pub fn invocation<I>(mut self, invocation: I) -> Result<Self, InvalidId>
    where
        I: TryInto<InvocationId>,
        InvalidId: From<I::Error>,
    {
        self.scope.place.invocation = Some(invocation.try_into()?);
        Ok(self)
    }
}

impl sealed::Sealed for NodeExecution {}

impl EffectScope for NodeExecution {
    fn __scope(&self) -> &Scope {
        &self.scope
    }
}

impl NodeScope for NodeExecution {
    fn __recipe_place(&self) -> RecipePlace {
        self.place.clone()
    }

    fn __ordinals(&self) -> &Ordinals {
        &self.ordinals
    }
}

impl std::fmt::Debug for NodeExecution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeExecution").field("place", &self.place).finish_non_exhaustive()
    }
}

impl From<std::convert::Infallible> for InvalidId {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}
