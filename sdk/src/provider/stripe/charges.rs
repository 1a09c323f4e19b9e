//! Charges.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    client::StripeClient,
    error::StripeError,
    form::Form,
    list::{Listed, null_as_default},
};
use crate::{context::EffectContext, identity::EffectId};

const PATH: &str = "/v1/charges";

/// A charge to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateCharge {
    amount: u64,
    currency: String,
    customer: Option<String>,
    source: Option<String>,
    description: Option<String>,
    metadata: BTreeMap<String, String>,
}

impl CreateCharge {
    /// A charge over this amount, in the smallest unit of the currency, such as 500 of `usd`.
    #[must_use]
    pub fn new(amount: u64, currency: impl Into<String>) -> Self {
        let (customer, source, description) = (None, None, None);
        Self { amount, currency: currency.into(), customer, source, description, metadata: BTreeMap::new() }
    }

    /// Charges this customer.
    #[must_use]
    pub fn customer(mut self, customer: impl Into<String>) -> Self {
        self.customer = Some(customer.into());
        self
    }

    /// Charges this card or token. A token that is made afresh for each attempt makes another request of it, which Stripe
    /// refuses under the same key: make it outside the effect.
    #[must_use]
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// A text for the account's owner.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Adds a line of metadata.
    #[must_use]
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(name.into(), value.into());
        self
    }
}

/// A charge, as far as it is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Charge {
    /// `ch_…`
    pub id: String,
    /// In the smallest unit of the currency.
    pub amount: u64,
    /// How much of it was refunded, in the smallest unit of the currency.
    #[serde(default)]
    pub amount_refunded: u64,
    /// In lower case, such as `usd`.
    pub currency: String,
    /// In seconds since the Unix epoch, by Stripe's clock.
    pub created: i64,
    /// `succeeded`, `pending` or `failed`.
    #[serde(default)]
    pub status: Option<String>,
    /// The customer who was charged.
    #[serde(default)]
    pub customer: Option<String>,
    /// Why it failed.
    #[serde(default)]
    pub failure_code: Option<String>,
    /// Its metadata, with the effect's own mark.
    #[serde(default, deserialize_with = "null_as_default")]
    pub metadata: BTreeMap<String, String>,
}

impl Charge {
    /// Whether it is the record of a refusal: Stripe keeps declined charges too.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.status.as_deref() == Some("failed")
    }
}

impl Listed for Charge {
    const PATH: &'static str = PATH;

    fn place(&self) -> (&str, i64) {
        (&self.id, self.created)
    }

    fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    fn failed(&self) -> bool {
        Charge::failed(self)
    }
}

/// The charges of an account.
#[derive(Debug, Clone, Copy)]
pub struct Charges<'a>(pub(super) &'a StripeClient);

impl Charges<'_> {
    /// Makes a charge, marked as this effect's.
    ///
    /// # Errors
    /// [`StripeError`], whose verdict says what is known.
    ///
    /// # Cancel safety
    /// As [`EffectRequest::send`](crate::provider::http::EffectRequest::send).
    pub async fn create(&self, cx: &EffectContext, charge: &CreateCharge) -> Result<Charge, StripeError> {
        let form = Form::default()
            .field("amount", charge.amount)
            .field("currency", &charge.currency)
            .maybe("customer", charge.customer.as_ref())
            .maybe("source", charge.source.as_ref())
            .maybe("description", charge.description.as_ref())
            .metadata(&charge.metadata);
        self.0.create(cx, PATH, form).await
    }

    /// One charge.
    ///
    /// # Errors
    /// [`StripeError`], which says nothing of any effect; status 404 where there is no such charge.
    ///
    /// # Cancel safety
    /// May be dropped at any point.
    pub async fn retrieve(&self, id: &str) -> Result<Charge, StripeError> {
        self.0.one(id).await
    }

    /// All charges of a customer.
    ///
    /// # Errors
    /// [`StripeError`], which says nothing of any effect.
    ///
    /// # Cancel safety
    /// May be dropped at any point.
    pub async fn list(&self, customer: &str) -> Result<Vec<Charge>, StripeError> {
        self.0.all(&[("customer", customer)]).await
    }

    /// The charge of a customer that an effect made: for a `reconcile` function. It may be the record of a refusal:
    /// see [`Charge::failed`]. `None` means that there was none when the question was put.
    ///
    /// # Errors
    /// [`StripeError`]: not known.
    ///
    /// # Cancel safety
    /// May be dropped at any point.
    pub async fn find(&self, customer: &str, effect: &EffectId) -> Result<Option<Charge>, StripeError> {
        self.0.find(&[("customer", customer)], effect, None).await
    }
}
