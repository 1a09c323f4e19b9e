//! Payment intents.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    client::StripeClient,
    error::StripeError,
    form::Form,
    list::{Listed, null_as_default},
};
use crate::{context::EffectContext, identity::EffectId};

const PATH: &str = "/v1/payment_intents";

/// A payment intent to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatePaymentIntent {
    amount: u64,
    currency: String,
    customer: Option<String>,
    payment_method: Option<String>,
    payment_method_types: Vec<String>,
    confirm: bool,
    off_session: bool,
    return_url: Option<String>,
    metadata: BTreeMap<String, String>,
}

impl CreatePaymentIntent {
    /// An intent over this amount, in the smallest unit of the currency, such as 500 of `usd`. Nothing is charged before it
    /// is confirmed.
    #[must_use]
    pub fn new(amount: u64, currency: impl Into<String>) -> Self {
        Self {
            amount,
            currency: currency.into(),
            customer: None,
            payment_method: None,
            payment_method_types: Vec::new(),
            confirm: false,
            off_session: false,
            return_url: None,
            metadata: BTreeMap::new(),
        }
    }

    /// Of this customer.
    #[must_use]
    pub fn customer(mut self, customer: impl Into<String>) -> Self {
        self.customer = Some(customer.into());
        self
    }

    /// Pays with this method, `pm_…`. One that is made afresh for each attempt makes another request of it, which Stripe
    /// refuses under the same key: make it outside the effect.
    #[must_use]
    pub fn payment_method(mut self, payment_method: impl Into<String>) -> Self {
        self.payment_method = Some(payment_method.into());
        self
    }

    /// Allows a kind of method, such as `card`. Where none is named, those of the account's settings are allowed; if some
    /// of them redirect the customer, Stripe asks for a [`return_url`](Self::return_url) when it is confirmed.
    #[must_use]
    pub fn payment_method_type(mut self, kind: impl Into<String>) -> Self {
        self.payment_method_types.push(kind.into());
        self
    }

    /// Confirms it in the same request: the payment is made, or declined, by this effect.
    #[must_use]
    pub fn confirm(mut self) -> Self {
        self.confirm = true;
        self
    }

    /// Confirms it while the customer is away, so that a request for authentication is a decline.
    #[must_use]
    pub fn confirm_off_session(mut self) -> Self {
        self.off_session = true;
        self.confirm()
    }

    /// Where the customer comes back to from a redirect.
    #[must_use]
    pub fn return_url(mut self, url: impl Into<String>) -> Self {
        self.return_url = Some(url.into());
        self
    }

    /// Adds a line of metadata.
    #[must_use]
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(name.into(), value.into());
        self
    }

    fn form(&self) -> Form {
        let mut form = Form::default()
            .field("amount", self.amount)
            .field("currency", &self.currency)
            .maybe("customer", self.customer.as_ref())
            .maybe("payment_method", self.payment_method.as_ref());
        for kind in &self.payment_method_types {
            form = form.field("payment_method_types[]", kind);
        }
        form.maybe("confirm", self.confirm.then_some(true))
            .maybe("off_session", self.off_session.then_some(true))
            .maybe("return_url", self.return_url.as_ref())
            .metadata(&self.metadata)
    }
}

/// A payment intent, as far as it is read. Its client secret is not: it is a credential, and outcomes are stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PaymentIntent {
    /// `pi_…`
    pub id: String,
    /// In the smallest unit of the currency.
    pub amount: u64,
    /// In lower case, such as `usd`.
    pub currency: String,
    /// In seconds since the Unix epoch, by Stripe's clock.
    pub created: i64,
    /// `succeeded`, `processing`, `requires_action`, `requires_payment_method`, …
    pub status: String,
    /// The customer who pays.
    #[serde(default)]
    pub customer: Option<String>,
    /// The method that it is paid with.
    #[serde(default)]
    pub payment_method: Option<String>,
    /// Why the last confirmation failed.
    #[serde(default)]
    pub last_payment_error: Option<PaymentError>,
    /// Its metadata, with the effect's own mark.
    #[serde(default, deserialize_with = "null_as_default")]
    pub metadata: BTreeMap<String, String>,
}

/// Why a confirmation failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PaymentError {
    /// Stripe's code, such as `card_declined`.
    #[serde(default)]
    pub code: Option<String>,
    /// The card issuer's reason, such as `insufficient_funds`.
    #[serde(default)]
    pub decline_code: Option<String>,
    /// The charge that was declined.
    #[serde(default)]
    pub charge: Option<String>,
}

impl PaymentIntent {
    /// Whether its last confirmation was declined, and it waits for another method or was given up: Stripe keeps such
    /// intents too.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.last_payment_error.is_some()
            && matches!(self.status.as_str(), "requires_payment_method" | "canceled")
    }
}

impl Listed for PaymentIntent {
    const PATH: &'static str = PATH;

    fn place(&self) -> (&str, i64) {
        (&self.id, self.created)
    }

    fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    fn failed(&self) -> bool {
        PaymentIntent::failed(self)
    }
}

/// The payment intents of an account.
#[derive(Debug, Clone, Copy)]
pub struct PaymentIntents<'a>(pub(super) &'a StripeClient);

impl PaymentIntents<'_> {
    /// Makes a payment intent, marked as this effect's. It may come back in a state that is no end, such as
    /// `requires_action`: see [`PaymentIntent::status`].
    ///
    /// # Errors
    /// [`StripeError`], whose verdict says what is known; a decline is refused.
    ///
    /// # Cancel safety
    /// As [`EffectRequest::send`](crate::provider::http::EffectRequest::send).
    pub async fn create(
        &self,
        cx: &EffectContext,
        intent: &CreatePaymentIntent,
    ) -> Result<PaymentIntent, StripeError> {
        self.0.create(cx, PATH, intent.form()).await
    }

    /// One payment intent.
    ///
    /// # Errors
    /// [`StripeError`], which says nothing of any effect; status 404 where there is no such intent.
    ///
    /// # Cancel safety
    /// May be dropped at any point.
    pub async fn retrieve(&self, id: &str) -> Result<PaymentIntent, StripeError> {
        self.0.one(id).await
    }

    /// All payment intents of a customer.
    ///
    /// # Errors
    /// [`StripeError`], which says nothing of any effect.
    ///
    /// # Cancel safety
    /// May be dropped at any point.
    pub async fn list(&self, customer: &str) -> Result<Vec<PaymentIntent>, StripeError> {
        self.0.all(&[("customer", customer)]).await
    }

    /// The payment intent of a customer that an effect made: for a `reconcile` function. It may be the record of a refusal:
    /// see [`PaymentIntent::failed`]. `None` means that there was none when the question was put.
    ///
    /// # Errors
    /// [`StripeError`]: not known.
    ///
    /// # Cancel safety
    /// May be dropped at any point.
    pub async fn find(
        &self,
        customer: &str,
        effect: &EffectId,
    ) -> Result<Option<PaymentIntent>, StripeError> {
        self.0.find(&[("customer", customer)], effect, None).await
    }
}
