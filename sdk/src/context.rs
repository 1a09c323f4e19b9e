//! What a body sees of its effect.

#[cfg(test)]
mod tests;
mod transaction;

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

pub(crate) use self::transaction::{Slot, StillLent};
pub use self::transaction::{Transaction, TransactionRefused};
use crate::{
    clock::{Moment, Until},
    executor::{EffectScope, Held, NodeScope, Ordinals, Scope, sealed::Sealed},
    identity::{EffectId, RecipePlace},
    ledger::{EffectTransaction, LedgerError, LedgerErrorKind},
    provider::{SendPermit, SendRefused},
};

/// The body's view of its effect, written `cx: &EffectContext`. Callers pass an [`EffectScope`] instead.
///
/// Effects that the body calls take it as their scope.
pub struct EffectContext {
    pub(crate) attempt: Arc<Attempt>,
    scope: Scope,
    /// They restart with each attempt.
    ordinals: Ordinals,
}

/// One attempt as it goes on; read by the executor when the body has ended.
pub(crate) struct Attempt {
    pub(crate) held: Arc<Held>,
    pub(crate) number: u32,
    pub(crate) provider_key: Arc<str>,
    /// After this much of the claim the provider's window may be over.
    pub(crate) resend_until: Option<Until>,
    /// What an attempt in doubt sent under this key.
    pub(crate) sent_before: Option<[u8; 32]>,
    /// A look-up may ask and must not act.
    pub(crate) look_up: bool,
    /// The transaction of an attempt that may have one.
    pub(crate) transaction: Option<Slot>,
    key_taken: AtomicBool,
    provider_replay: AtomicBool,
    accepted: AtomicBool,
    sends: Mutex<Sends>,
}

/// What an attempt let through to the provider.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sends {
    pub(crate) first: Option<Moment>,
    pub(crate) last: Option<Moment>,
    pub(crate) digest: Option<[u8; 32]>,
}

impl Attempt {
    pub(crate) fn new(held: Arc<Held>, number: u32, provider_key: Arc<str>) -> Self {
        Self {
            held,
            number,
            provider_key,
            resend_until: None,
            sent_before: None,
            look_up: false,
            transaction: None,
            key_taken: AtomicBool::new(false),
            provider_replay: AtomicBool::new(false),
            accepted: AtomicBool::new(false),
            sends: Mutex::default(),
        }
    }

    pub(crate) fn key_taken(&self) -> bool {
        self.key_taken.load(Ordering::Relaxed)
    }

    pub(crate) fn provider_replay(&self) -> bool {
        self.provider_replay.load(Ordering::Relaxed)
    }

    pub(crate) fn accepted(&self) -> bool {
        self.accepted.load(Ordering::Relaxed)
    }

    /// The transaction that the body opened, once the body is gone.
    pub(crate) fn take_transaction(
        self: &mut Arc<Self>,
    ) -> Result<Option<Box<dyn EffectTransaction>>, StillLent> {
        match Arc::get_mut(self) {
            Some(own) => Ok(own.transaction.as_mut().and_then(Slot::take)),
            None => self.transaction.as_ref().map_or(Ok(None), Slot::try_take),
        }
    }

    pub(crate) fn sends(&self) -> Sends {
        *self.sends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks and counts in one step: two requests of one body that are sent at once cannot both be the first.
    fn permit(&self, digest: Option<[u8; 32]>) -> Result<SendPermit, SendRefused> {
        if rule!(LookUpDoesNotSend) && self.look_up {
            return Err(SendRefused::LookUp);
        }
        if self.transaction.is_some() {
            return Err(SendRefused::Transactional);
        }
        let mut sends = self.sends.lock().unwrap_or_else(PoisonError::into_inner);
        if rule!(OneSendInAnAttempt) && digest.is_some() && sends.digest.is_some() {
            return Err(SendRefused::SecondSend);
        }
        if rule!(ResendIsTheSameRequest)
            && matches!((digest, self.sent_before), (Some(now), Some(before)) if now != before)
        {
            return Err(SendRefused::ChangedRequest);
        }
        if rule!(WindowAtThePermit) && self.resend_until.is_some_and(|until| until.is_past()) {
            return Err(SendRefused::WindowOver);
        }
        self.held.may_send()?;
        let now = Moment::now();
        sends.first.get_or_insert(now);
        sends.last = Some(now);
        sends.digest = sends.digest.or(digest);
        Ok(SendPermit(()))
    }
}

impl EffectContext {
    pub(crate) fn new(attempt: Arc<Attempt>, outer: &Scope) -> Self {
        let scope = outer.inside(attempt.transaction.is_some());
        Self { attempt, scope, ordinals: Ordinals::default() }
    }

    /// The idempotency key for the provider: the same on every attempt of this effect.
    #[must_use]
    pub fn idempotency_key(&self) -> &str {
        self.attempt.key_taken.store(true, Ordering::Relaxed);
        &self.attempt.provider_key
    }

    /// Which effect this is.
    #[must_use]
    pub fn effect_id(&self) -> &EffectId {
        self.attempt.held.id()
    }

    /// The number of this attempt, from 1. Counts on over calls and processes.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt.number
    }

    /// The fence of the claim: of two executors the one with the lower number has lost.
    #[must_use]
    pub fn fence(&self) -> i64 {
        self.attempt.held.fence()
    }

    /// How much of the lease is left, counted from before the claim or its last confirmed renewal was sent. Zero once
    /// it has ended.
    #[must_use]
    pub fn remaining_lease(&self) -> Duration {
        self.attempt.held.remaining()
    }

    /// Leave to send a request now. Ask immediately before the bytes are written, for every request that changes
    /// something at the provider.
    ///
    /// # Errors
    /// [`SendRefused`]: nothing may be sent. The end of such an attempt is *not performed*, subject to doubt.
    pub fn send_permit(&self) -> Result<SendPermit, SendRefused> {
        self.attempt.permit(None)
    }

    /// [`send_permit`](Self::send_permit) for an adapter that knows the bytes: `digest` covers what the provider compares
    /// under one key (method, path and body). Refuses a second request in one attempt, and one that differs from what an
    /// attempt in doubt sent, unless the doubt's class is `rerun`.
    ///
    /// # Errors
    /// [`SendRefused`]: nothing may be sent.
    pub fn begin_send(&self, digest: [u8; 32]) -> Result<SendPermit, SendRefused> {
        self.attempt.permit(Some(digest))
    }

    /// Whether an adapter has sent this attempt's request.
    #[cfg(feature = "http")]
    pub(crate) fn has_sent(&self) -> bool {
        self.attempt.sends().digest.is_some()
    }

    /// Says that the provider marked its answer as a replay of the one that it had stored for our key.
    pub fn mark_provider_replay(&self) {
        self.attempt.provider_replay.store(true, Ordering::Relaxed);
    }

    /// Stores the handle of an action that the provider accepted and has not finished (a job, batch or resource id),
    /// before it returns. From then on nothing is submitted again. `poll_after` is when it is worth asking, from now. The body
    /// then returns any unknown error, and the call asks by the handle, with `poll = path` or
    /// [`Provider::poll`](crate::Provider::poll), until the job ends or its time is over; then, or where there is nothing to ask
    /// with, the caller gets [`ErrorKind::Accepted`](crate::ErrorKind::Accepted).
    ///
    /// # Errors
    /// [`LedgerError`]: the handle was not stored. Return an unknown end.
    ///
    /// # Cancel safety
    /// The handle may or may not be stored.
    pub async fn accepted(&self, handle: impl Into<String>, poll_after: Duration) -> Result<(), LedgerError> {
        if self.attempt.transaction.is_some() {
            let context =
                "what commits with its outcome is not accepted and finished later; no handle was stored";
            return Err(LedgerError::new(LedgerErrorKind::Unsupported, context));
        }
        self.attempt.held.accept(handle.into(), poll_after).await?;
        self.attempt.accepted.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Sealed for EffectContext {}

impl EffectScope for EffectContext {
    fn __scope(&self) -> &Scope {
        &self.scope
    }
}

impl NodeScope for EffectContext {
    fn __recipe_place(&self) -> RecipePlace {
        RecipePlace::Effect(self.effect_id().clone())
    }

    fn __ordinals(&self) -> &Ordinals {
        &self.ordinals
    }
}

impl std::fmt::Debug for EffectContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EffectContext")
            .field("effect_id", self.effect_id())
            .field("attempt", &self.attempt.number)
            .finish_non_exhaustive()
    }
}
