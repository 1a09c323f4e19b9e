//! The typed front of a call: identity and fingerprint are frozen when the function is called; everything else happens on
//! a task of its own, so that a caller that goes away neither stops the effect nor loses its outcome.

use std::{future::Future, sync::Arc};

use tokio::sync::mpsc;
use tracing::Instrument as _;

use super::{
    attached::{Attachment, lend_look_up},
    drive::Call,
    durable::Input,
    erased::{Body, CallEnd, CallError, call_result},
    identified::Identified,
    progress::Progress,
    receipt::Receipt,
    scope::{EffectScope, NodeScope, Scope},
    work::Work,
};
use crate::{
    context::EffectContext,
    descriptor::{Descriptor, Keying, RecoveryClass},
    environment::{Gone, Task},
    error::{EffectError, ErrorKind},
    expansion,
    failure::{Failure, Found, Outcome},
    identity::{Arguments, EffectId, KeyFields, activity_recipe},
    telemetry,
};

/// A call with `keying = business_identity`.
#[doc(hidden)]
pub fn call<S, T, E, B, F>(
    scope: &S,
    descriptor: &'static Descriptor,
    key: KeyFields,
    mut arguments: Arguments,
    body: B,
) -> expansion::Call<T, E>
where
    S: EffectScope + ?Sized,
    T: Outcome,
    E: Failure,
    B: Fn(EffectContext) -> F + Send + Sync + 'static,
    F: Future<Output = crate::Result<T, E>> + Send + 'static,
{
    let scope = scope.__scope();
    let id = Identified::by_key(&scope.tenant, descriptor, key, &mut arguments);
    start(scope, descriptor, id, arguments, Work::new(body), None)
}

/// A call with `keying = business_identity` and `on_unknown = reconcile(path)`.
#[doc(hidden)]
pub fn call_reconciled<S, T, E, B, F, L, G>(
    scope: &S,
    descriptor: &'static Descriptor,
    key: KeyFields,
    mut arguments: Arguments,
    body: B,
    look_up: L,
) -> expansion::Call<T, E>
where
    S: EffectScope + ?Sized,
    T: Outcome,
    E: Failure,
    B: Fn(EffectContext) -> F + Send + Sync + 'static,
    F: Future<Output = crate::Result<T, E>> + Send + 'static,
    L: Fn(EffectContext) -> G + Send + Sync + 'static,
    G: Future<Output = std::result::Result<Found<T, E>, E>> + Send + 'static,
{
    let scope = scope.__scope();
    let id = Identified::by_key(&scope.tenant, descriptor, key, &mut arguments);
    start(scope, descriptor, id, arguments, Work::new(body).look_up(look_up), None)
}

/// A call with `keying = activity_recipe`; the ordinal is taken here, when the function is called.
#[doc(hidden)]
pub fn call_recipe<S, T, E, B, F>(
    scope: &S,
    descriptor: &'static Descriptor,
    arguments: Arguments,
    body: B,
) -> expansion::Call<T, E>
where
    S: NodeScope + ?Sized,
    T: Outcome,
    E: Failure,
    B: Fn(EffectContext) -> F + Send + Sync + 'static,
    F: Future<Output = crate::Result<T, E>> + Send + 'static,
{
    let id = Identified::from(recipe(scope, descriptor));
    start(scope.__scope(), descriptor, id, arguments, Work::new(body), None)
}

/// A call with `keying = activity_recipe` and `on_unknown = reconcile(path)`.
#[doc(hidden)]
pub fn call_recipe_reconciled<S, T, E, B, F, L, G>(
    scope: &S,
    descriptor: &'static Descriptor,
    arguments: Arguments,
    body: B,
    look_up: L,
) -> expansion::Call<T, E>
where
    S: NodeScope + ?Sized,
    T: Outcome,
    E: Failure,
    B: Fn(EffectContext) -> F + Send + Sync + 'static,
    F: Future<Output = crate::Result<T, E>> + Send + 'static,
    L: Fn(EffectContext) -> G + Send + Sync + 'static,
    G: Future<Output = std::result::Result<Found<T, E>, E>> + Send + 'static,
{
    let id = Identified::from(recipe(scope, descriptor));
    start(scope.__scope(), descriptor, id, arguments, Work::new(body).look_up(look_up), None)
}

/// A call of an effect that can be polled or finished without its caller.
#[doc(hidden)]
pub fn call_work<S, T, E>(
    scope: &S,
    descriptor: &'static Descriptor,
    key: KeyFields,
    mut arguments: Arguments,
    work: Work,
    input: Option<Input>,
) -> expansion::Call<T, E>
where
    S: EffectScope + ?Sized,
    T: Outcome,
    E: Failure,
{
    let scope = scope.__scope();
    let id = Identified::by_key(&scope.tenant, descriptor, key, &mut arguments);
    start(scope, descriptor, id, arguments, work, input)
}

/// The same with `keying = activity_recipe`.
#[doc(hidden)]
pub fn call_recipe_work<S, T, E>(
    scope: &S,
    descriptor: &'static Descriptor,
    arguments: Arguments,
    work: Work,
    input: Option<Input>,
) -> expansion::Call<T, E>
where
    S: NodeScope + ?Sized,
    T: Outcome,
    E: Failure,
{
    let id = Identified::from(recipe(scope, descriptor));
    start(scope.__scope(), descriptor, id, arguments, work, input)
}

/// A call of an effect whose body runs in the caller's task.
#[doc(hidden)]
pub fn attach<S, T, E>(
    scope: &S,
    descriptor: &'static Descriptor,
    key: KeyFields,
    mut arguments: Arguments,
) -> Attachment<T, E>
where
    S: EffectScope + ?Sized,
    T: Outcome,
    E: Failure,
{
    let scope = scope.__scope();
    let id = Identified::by_key(&scope.tenant, descriptor, key, &mut arguments);
    start_attached(scope, descriptor, id, arguments)
}

/// The same with `keying = activity_recipe`.
#[doc(hidden)]
pub fn attach_recipe<S, T, E>(
    scope: &S,
    descriptor: &'static Descriptor,
    arguments: Arguments,
) -> Attachment<T, E>
where
    S: NodeScope + ?Sized,
    T: Outcome,
    E: Failure,
{
    let id = Identified::from(recipe(scope, descriptor));
    start_attached(scope.__scope(), descriptor, id, arguments)
}

/// The arguments of a call with a secret among them: no argument yet, and the keys of the scope's executor.
#[doc(hidden)]
pub fn secret_arguments<S: EffectScope + ?Sized>(scope: &S) -> Arguments {
    Arguments::keyed(scope.__scope().core.fingerprint_keys.clone())
}

fn recipe<S: NodeScope + ?Sized>(scope: &S, descriptor: &Descriptor) -> EffectId {
    debug_assert_eq!(descriptor.keying, Keying::ActivityRecipe);
    let place = scope.__recipe_place();
    let ordinal = scope.__ordinals().take();
    let scope = scope.__scope();
    let provider = descriptor.provider.map(|provider| provider.name);
    activity_recipe(&scope.tenant, &place, ordinal, provider, descriptor.operation)
}

/// Freezes the call; the future that is returned borrows nothing and starts when it is first polled.
fn start<T: Outcome, E: Failure>(
    scope: &Scope,
    descriptor: &'static Descriptor,
    identified: Identified,
    arguments: Arguments,
    work: Work,
    input: Option<Input>,
) -> expansion::Call<T, E> {
    let call = Frozen::new(scope, descriptor, identified, arguments, work, input);
    expansion::Call::new(async move { call.spawn().end().await })
}

fn start_attached<T: Outcome, E: Failure>(
    scope: &Scope,
    descriptor: &'static Descriptor,
    identified: Identified,
    arguments: Arguments,
) -> Attachment<T, E> {
    let (turns, turns_of_caller) = mpsc::unbounded_channel();
    // Only a function that the attribute names is the caller's to ask.
    let asks = descriptor.on_unknown == Some(RecoveryClass::Reconcile);
    let look_up = asks.then(|| lend_look_up(turns.clone()));
    let work = Work::attached(Body::Attached(turns), look_up);
    let call = Frozen::new(scope, descriptor, identified, arguments, work, None);
    Attachment::new(call, turns_of_caller)
}

/// A call that is frozen and has not begun.
pub(super) struct Frozen {
    receipt: Option<Receipt>,
    descriptor: &'static Descriptor,
    id: EffectId,
    prepared: Result<Box<Call>, CallError>,
}

/// A call whose task runs.
pub(super) struct Running {
    receipt: Option<Receipt>,
    descriptor: &'static Descriptor,
    id: EffectId,
    /// The task, or the end of a call that took none.
    task: Result<(Task<CallEnd>, Arc<Progress>), CallEnd>,
}

impl Frozen {
    fn new(
        scope: &Scope,
        descriptor: &'static Descriptor,
        identified: Identified,
        arguments: Arguments,
        work: Work,
        input: Option<Input>,
    ) -> Self {
        let id = identified.id.clone();
        let prepared = prepare(scope, descriptor, identified, arguments, work, input);
        Self { receipt: scope.receipt.clone(), descriptor, id, prepared }
    }

    /// Starts the call's task, in the caller's span, unless its outcome is kept in memory.
    pub(super) fn spawn(self) -> Running {
        let Self { receipt, descriptor, id, prepared } = self;
        let task = match prepared {
            Err(error) => Err(error.into()),
            Ok(call) => {
                let span = telemetry::call_span(descriptor.operation);
                match span.in_scope(|| call.end_from_cache()) {
                    Some(end) => Err(end),
                    None => {
                        let (progress, core) = (call.progress.clone(), call.scope.core.clone());
                        // A task is moved several times, until it is there.
                        Ok((core.runtime.spawn(Box::pin(call.run()).instrument(span)), progress))
                    }
                }
            }
        };
        Running { receipt, descriptor, id, task }
    }
}

impl Running {
    /// Waits for the call's end.
    pub(super) async fn end<T: Outcome, E: Failure>(self) -> crate::Result<T, E> {
        let Self { receipt, descriptor, id, task } = self;
        let end = match task {
            Ok((task, progress)) => {
                task.await.unwrap_or_else(|gone| lost(&progress, gone == Gone::Panicked).into())
            }
            Err(end) => {
                // A loop over such calls must not keep its thread from other tasks.
                tokio::task::coop::consume_budget().await;
                end
            }
        };
        if let Some(receipt) = &receipt {
            let replayed = matches!(
                end,
                CallEnd::Success { replayed: true, .. } | CallEnd::Refusal { replayed: true, .. }
            );
            receipt.fill(id.clone(), replayed);
        }
        call_result(end).map_err(|error: EffectError<E>| error.with_effect(descriptor.operation, id))
    }
}

fn prepare(
    scope: &Scope,
    descriptor: &'static Descriptor,
    identified: Identified,
    arguments: Arguments,
    work: Work,
    input: Option<Input>,
) -> Result<Box<Call>, CallError> {
    let config = |text: String| CallError::new(ErrorKind::Config).detail(text);
    if scope.in_transaction {
        let inside = "it is called in the body of a transactional effect, with whose outcome it could not commit: call it \
            before or after that effect";
        return Err(config(inside.to_owned()));
    }
    let settings = scope.core.settings(descriptor).map_err(|error| config(error.to_string()))?;
    let fingerprints = arguments.finish().map_err(|error| config(error.to_string()))?;
    let input = input.map(Input::finish).transpose().map_err(config)?;
    Ok(Box::new(Call::new(scope.clone(), settings, identified, fingerprints.into(), work, input)))
}

/// The call's task is gone: with the runtime that the executor was built in, or because dropping an argument panicked.
fn lost(progress: &Progress, panicked: bool) -> CallError {
    let text = if panicked {
        "the call's own task panicked"
    } else {
        "the runtime that the executor was built in has been shut down"
    };
    if progress.may_have_performed() {
        return CallError::new(ErrorKind::Escaped).detail(text);
    }
    CallError::new(ErrorKind::Config)
        .detail(format!("{text}; build the executor in a runtime that has a timer and outlives its calls"))
}
