//! The typed front of a call: identity and fingerprint are frozen when the function is called; everything else happens on
//! a task of its own, so that a caller that goes away neither stops the effect nor loses its outcome.

use std::{future::Future, sync::Arc};

use tracing::Instrument as _;

use super::{
    drive::Call,
    erased::{Body, CallEnd, CallError, LookUpBody, body_end, call_result, look_up_end},
    identified::Identified,
    progress::Progress,
    scope::{EffectScope, NodeScope, Scope},
};
use crate::{
    context::EffectContext,
    descriptor::{Descriptor, Keying},
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
    arguments: Arguments,
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
    let id = Identified::by_key(&scope.tenant, descriptor, &key);
    start(scope, descriptor, id, arguments, erase_body(body), None)
}

/// A call with `keying = business_identity` and `on_unknown = reconcile(path)`.
#[doc(hidden)]
pub fn call_reconciled<S, T, E, B, F, L, G>(
    scope: &S,
    descriptor: &'static Descriptor,
    key: KeyFields,
    arguments: Arguments,
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
    let id = Identified::by_key(&scope.tenant, descriptor, &key);
    start(scope, descriptor, id, arguments, erase_body(body), Some(erase_look_up(look_up)))
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
    start(scope.__scope(), descriptor, id, arguments, erase_body(body), None)
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
    start(scope.__scope(), descriptor, id, arguments, erase_body(body), Some(erase_look_up(look_up)))
}

fn recipe<S: NodeScope + ?Sized>(scope: &S, descriptor: &Descriptor) -> EffectId {
    debug_assert_eq!(descriptor.keying, Keying::ActivityRecipe);
    let place = scope.__recipe_place();
    let scope = scope.__scope();
    let provider = descriptor.provider.map(|provider| provider.name);
    activity_recipe(&scope.tenant, &place, scope.take_ordinal(), provider, descriptor.operation)
}

fn erase_body<T, E, B, F>(body: B) -> Body
where
    T: Outcome,
    E: Failure,
    B: Fn(EffectContext) -> F + Send + Sync + 'static,
    F: Future<Output = crate::Result<T, E>> + Send + 'static,
{
    Arc::new(move |cx| {
        let running = body(cx);
        Box::pin(async move { body_end(running.await) })
    })
}

fn erase_look_up<T, E, L, G>(look_up: L) -> LookUpBody
where
    T: Outcome,
    E: Failure,
    L: Fn(EffectContext) -> G + Send + Sync + 'static,
    G: Future<Output = std::result::Result<Found<T, E>, E>> + Send + 'static,
{
    Arc::new(move |cx| {
        let asking = look_up(cx);
        Box::pin(async move { look_up_end(asking.await) })
    })
}

/// Freezes the call; the future that is returned borrows nothing and starts when it is first polled.
fn start<T: Outcome, E: Failure>(
    scope: &Scope,
    descriptor: &'static Descriptor,
    identified: Identified,
    arguments: Arguments,
    body: Body,
    look_up: Option<LookUpBody>,
) -> expansion::Call<T, E> {
    let scope = scope.clone();
    let id = identified.id.clone();
    let prepared = prepare(&scope, descriptor, identified, arguments, body, look_up);
    expansion::Call::new(async move {
        let (end, replayed) = match prepared {
            Ok(call) => run(call, descriptor).await,
            Err(error) => (CallEnd::Error(*error), false),
        };
        if let Some(receipt) = &scope.receipt {
            receipt.fill(id.clone(), replayed);
        }
        call_result(end).map_err(|error: EffectError<E>| error.with_effect(descriptor.operation, id))
    })
}

fn prepare(
    scope: &Scope,
    descriptor: &'static Descriptor,
    identified: Identified,
    arguments: Arguments,
    body: Body,
    look_up: Option<LookUpBody>,
) -> Result<Call, Box<CallError>> {
    let config = |text: String| Box::new(CallError::new(ErrorKind::Config).detail(text));
    let settings = scope.core.settings(descriptor).map_err(|error| config(error.to_string()))?;
    let fingerprints = arguments.finish().map_err(|error| config(error.to_string()))?;
    Ok(Call::new(scope.clone(), settings, identified, fingerprints, body, look_up))
}

async fn run(call: Call, descriptor: &'static Descriptor) -> (CallEnd, bool) {
    let progress = call.progress.clone();
    let span = telemetry::call_span(descriptor.operation);
    let runtime = call.scope.core.runtime.clone();
    match runtime.spawn(call.run().instrument(span)).await {
        Ok(end) => {
            let replayed = matches!(
                end,
                CallEnd::Success { replayed: true, .. } | CallEnd::Refusal { replayed: true, .. }
            );
            (end, replayed)
        }
        Err(error) => (lost(&progress, error.is_panic()).into(), false),
    }
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
