//! What can be done for an effect, without its types: performing it, looking it up, asking by its handle.

use std::{future::Future, sync::Arc};

use super::erased::{Body, LookUpBody, PollBody, body_end, look_up_end, poll_end};
use crate::{
    context::EffectContext,
    failure::{Failure, Found, Outcome, Polled},
};

/// The functions of one effect over arguments that they hold. Not part of the public interface.
#[doc(hidden)]
#[derive(Clone)]
pub struct Work {
    pub(crate) body: Body,
    pub(crate) look_up: Option<LookUpBody>,
    pub(crate) poll: Option<PollBody>,
}

impl Work {
    /// A body that runs on a task of its own.
    pub fn new<T, E, B, F>(body: B) -> Self
    where
        T: Outcome,
        E: Failure,
        B: Fn(EffectContext) -> F + Send + Sync + 'static,
        F: Future<Output = crate::Result<T, E>> + Send + 'static,
    {
        let body = Body::Own(Arc::new(move |cx| {
            let running = body(cx);
            Box::pin(async move { body_end(running.await) })
        }));
        Self { body, look_up: None, poll: None }
    }

    pub(crate) fn attached(body: Body, look_up: Option<LookUpBody>) -> Self {
        Self { body, look_up, poll: None }
    }

    /// Nothing but what the provider answers by itself.
    pub(crate) fn absent() -> Self {
        Self { body: Body::Absent, look_up: None, poll: None }
    }

    /// With the function that `reconcile(path)` names.
    #[must_use]
    pub fn look_up<T, E, L, G>(mut self, look_up: L) -> Self
    where
        T: Outcome,
        E: Failure,
        L: Fn(EffectContext) -> G + Send + Sync + 'static,
        G: Future<Output = std::result::Result<Found<T, E>, E>> + Send + 'static,
    {
        self.look_up = Some(Arc::new(move |cx| {
            let asking = look_up(cx);
            Box::pin(async move { look_up_end(asking.await) })
        }));
        self
    }

    /// With the function that `poll = path` names.
    #[must_use]
    pub fn poll<T, E, P, G>(mut self, poll: P) -> Self
    where
        T: Outcome,
        E: Failure,
        P: Fn(EffectContext, String) -> G + Send + Sync + 'static,
        G: Future<Output = std::result::Result<Polled<T, E>, E>> + Send + 'static,
    {
        self.poll = Some(Arc::new(move |cx, handle| {
            let asking = poll(cx, handle);
            Box::pin(async move { poll_end(asking.await) })
        }));
        self
    }
}
