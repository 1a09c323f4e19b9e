//! Refunds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    client::StripeClient,
    error::StripeError,
    form::Form,
    list::{Listed, null_as_default},
};
use crate::{context::EffectContext, identity::EffectId};

const PATH: &str = "/v1/refunds";

/// A refund to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateRefund {
    of: (&'static str, String),
    amount: Option<u64>,
    reason: Option<String>,
    metadata: BTreeMap<String, String>,
}

impl CreateRefund {
    /// A refund of all that is left of a charge.
    #[must_use]
    pub fn new(charge: impl Into<String>) -> Self {
        Self::of("charge", charge.into())
    }

    /// A refund of all that is left of the payment that an intent led to.
    #[must_use]
    pub fn of_payment_intent(intent: impl Into<String>) -> Self {
        Self::of("payment_intent", intent.into())
    }

    fn of(what: &'static str, id: String) -> Self {
        Self { of: (what, id), amount: None, reason: None, metadata: BTreeMap::new() }
    }

    /// A part of it, in the smallest unit of its currency.
    #[must_use]
    pub fn amount(mut self, amount: u64) -> Self {
        self.amount = Some(amount);
        self
    }

    /// Why: one of the texts that Stripe knows, such as `requested_by_customer`.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Adds a line of metadata.
    #[must_use]
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(name.into(), value.into());
        self
    }
}

/// A refund, as far as it is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Refund {
    /// `re_…`
    pub id: String,
    /// In the smallest unit of the currency.
    pub amount: u64,
    /// The charge that it is of.
    #[serde(default)]
    pub charge: Option<String>,
    /// The payment intent that it is of.
    #[serde(default)]
    pub payment_intent: Option<String>,
    /// In lower case, such as `usd`.
    pub currency: String,
    /// In seconds since the Unix epoch, by Stripe's clock.
    pub created: i64,
    /// `pending`, `succeeded`, `failed`, …
    #[serde(default)]
    pub status: Option<String>,
    /// Why it was made.
    #[serde(default)]
    pub reason: Option<String>,
    /// Its metadata, with the effect's own mark.
    #[serde(default, deserialize_with = "null_as_default")]
    pub metadata: BTreeMap<String, String>,
}

impl Listed for Refund {
    const PATH: &'static str = PATH;

    fn place(&self) -> (&str, i64) {
        (&self.id, self.created)
    }

    fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }
}

/// The refunds of an account.
#[derive(Debug, Clone, Copy)]
pub struct Refunds<'a>(pub(super) &'a StripeClient);

impl Refunds<'_> {
    /// Makes a refund, marked as this effect's.
    ///
    /// # Errors
    /// [`StripeError`], whose verdict says what is known.
    ///
    /// # Cancel safety
    /// As [`EffectRequest::send`](crate::provider::http::EffectRequest::send).
    pub async fn create(&self, cx: &EffectContext, refund: &CreateRefund) -> Result<Refund, StripeError> {
        let form = Form::default()
            .field(refund.of.0, &refund.of.1)
            .maybe("amount", refund.amount)
            .maybe("reason", refund.reason.as_ref())
            .metadata(&refund.metadata);
        self.0.create(cx, PATH, form).await
    }

    /// All refunds of a charge.
    ///
    /// # Errors
    /// [`StripeError`], which says nothing of any effect.
    ///
    /// # Cancel safety
    /// May be dropped at any point.
    pub async fn list(&self, charge: &str) -> Result<Vec<Refund>, StripeError> {
        self.0.all(&[("charge", charge)]).await
    }

    /// The refund of a charge that an effect made: for a `reconcile` function. `None` means that there was none when the
    /// question was put.
    ///
    /// # Errors
    /// [`StripeError`]: not known.
    ///
    /// # Cancel safety
    /// May be dropped at any point.
    pub async fn find(&self, charge: &str, effect: &EffectId) -> Result<Option<Refund>, StripeError> {
        self.0.find(&[("charge", charge)], effect, None).await
    }
}
