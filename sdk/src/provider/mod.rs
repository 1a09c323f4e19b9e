//! Providers: what is known of the other side, and how it is told one effect from the next.

mod answer;
mod bundled;
#[cfg(feature = "http")]
pub mod http;
mod key;
mod overrides;
mod profile;
mod retry_after;
mod send;
#[cfg(feature = "stripe")]
pub mod stripe;
mod verdict;

use std::time::SystemTime;

use async_trait::async_trait;

#[cfg(feature = "stripe")]
use self::verdict::is_code;
pub use self::{
    answer::Answer,
    key::KeyForm,
    profile::{AnswerMeaning, AnswerRule, FailedFirst, InFlightMeaning, KeyPlace, Profile, ProfileError},
    retry_after::RETRY_AFTER_MAX,
    verdict::AnswerVerdict,
};
pub use send::{SendPermit, SendRefused};

use crate::{
    failure::{Found, Polled},
    identity::EffectId,
};

/// A provider, as an effect names it: `#[effect(…, provider = Stripe)]`.
///
/// The type carries the name and the profile. A value of it, given to
/// [`ExecutorBuilder::provider`](crate::ExecutorBuilder::provider), can also be asked what happened to an effect.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a provider",
    label = "`provider = …` names a type that implements `Provider`",
    note = "implement `effectual::Provider` for it: its pinned name, and the profile of what it documents"
)]
#[async_trait]
pub trait Provider: Send + Sync + 'static {
    /// The provider's name. Stored with each effect and part of a recipe's identity: never change it.
    const NAME: &'static str;

    /// What the provider documents, as dated data.
    #[must_use]
    fn profile() -> Profile;

    /// Asks the provider whether it performed an effect. [`Found::Done`] holds what the effect would have returned, as
    /// JSON; [`Found::Refused`] what its error would have been.
    ///
    /// [`Found::Absent`] must be the truth as of the call's start, but for [`Profile::settle_delay`].
    ///
    /// The default answer is [`Found::Unknown`].
    ///
    /// # Cancel safety
    /// The future may be dropped at any point; it must not change anything at the provider.
    async fn look_up(&self, request: &LookUp<'_>) -> Found<serde_json::Value, serde_json::Value> {
        let _ = request;
        Found::Unknown
    }

    /// Asks the provider by the handle of an action that it accepted, as
    /// [`EffectContext::accepted`](crate::EffectContext::accepted) stored it. [`Polled::Done`] holds what the effect would
    /// have returned, as JSON; [`Polled::Failed`] what its error would have been. Asked by one at a time, under a claim.
    ///
    /// The default answer is [`Polled::Unsupported`]: callers then get the handle.
    ///
    /// # Cancel safety
    /// The future may be dropped at any point; it must not change anything at the provider.
    async fn poll(&self, request: &Poll<'_>) -> Polled<serde_json::Value, serde_json::Value> {
        let _ = request;
        Polled::Unsupported
    }
}

/// What a provider is asked about an action that it accepted.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Poll<'a> {
    /// The provider's job, batch or resource id.
    pub handle: &'a str,
    /// The provider key that was presented.
    pub key: &'a str,
    /// Which effect.
    pub effect_id: &'a EffectId,
    /// The operation's name.
    pub operation: &'a str,
}

impl<'a> Poll<'a> {
    /// A question about one handle.
    #[must_use]
    pub fn new(handle: &'a str, key: &'a str, effect_id: &'a EffectId, operation: &'a str) -> Self {
        Self { handle, key, effect_id, operation }
    }
}

/// What a look-up is asked.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct LookUp<'a> {
    /// The provider key that was presented.
    pub key: &'a str,
    /// Which effect.
    pub effect_id: &'a EffectId,
    /// The operation's name.
    pub operation: &'a str,
    /// When the effect was first claimed, by the ledger's clock, which may differ from the provider's; `None` if not
    /// known. Nothing older can be the effect's doing.
    pub since: Option<SystemTime>,
}

impl<'a> LookUp<'a> {
    /// A question about one effect.
    #[must_use]
    pub fn new(key: &'a str, effect_id: &'a EffectId, operation: &'a str) -> Self {
        Self { key, effect_id, operation, since: None }
    }

    /// The same question about an effect that was first claimed at this moment.
    #[must_use]
    pub fn since(mut self, moment: SystemTime) -> Self {
        self.since = Some(moment);
        self
    }
}

/// [`Provider`] without its constant, so that providers of several types can be kept together.
#[async_trait]
pub(crate) trait DynProvider: Send + Sync {
    async fn look_up_dyn(&self, request: &LookUp<'_>) -> Found<serde_json::Value, serde_json::Value>;
    async fn poll_dyn(&self, request: &Poll<'_>) -> Polled<serde_json::Value, serde_json::Value>;
}

#[async_trait]
impl<P: Provider> DynProvider for P {
    async fn look_up_dyn(&self, request: &LookUp<'_>) -> Found<serde_json::Value, serde_json::Value> {
        self.look_up(request).await
    }

    async fn poll_dyn(&self, request: &Poll<'_>) -> Polled<serde_json::Value, serde_json::Value> {
        self.poll(request).await
    }
}
