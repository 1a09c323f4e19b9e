//! Customers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    client::StripeClient,
    error::StripeError,
    form::Form,
    list::{Listed, null_as_default},
};
use crate::{context::EffectContext, identity::EffectId};

const PATH: &str = "/v1/customers";

/// A customer to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreateCustomer {
    email: Option<String>,
    name: Option<String>,
    description: Option<String>,
    source: Option<String>,
    metadata: BTreeMap<String, String>,
}

impl CreateCustomer {
    /// A customer of whom nothing is said.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The e-mail address.
    #[must_use]
    pub fn email(mut self, email: impl Into<String>) -> Self {
        self.email = Some(email.into());
        self
    }

    /// The name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// A text for the account's owner.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// The card or token that is charged.
    #[must_use]
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Adds a line of metadata.
    #[must_use]
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(name.into(), value.into());
        self
    }
}

/// A customer, as far as it is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Customer {
    /// `cus_…`
    pub id: String,
    /// In seconds since the Unix epoch, by Stripe's clock.
    pub created: i64,
    /// The e-mail address.
    #[serde(default)]
    pub email: Option<String>,
    /// The name.
    #[serde(default)]
    pub name: Option<String>,
    /// A text for the account's owner.
    #[serde(default)]
    pub description: Option<String>,
    /// Its metadata, with the effect's own mark.
    #[serde(default, deserialize_with = "null_as_default")]
    pub metadata: BTreeMap<String, String>,
}

impl Listed for Customer {
    const PATH: &'static str = PATH;

    fn place(&self) -> (&str, i64) {
        (&self.id, self.created)
    }

    fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }
}

/// The customers of an account.
#[derive(Debug, Clone, Copy)]
pub struct Customers<'a>(pub(super) &'a StripeClient);

impl Customers<'_> {
    /// Makes a customer, marked as this effect's.
    ///
    /// # Errors
    /// [`StripeError`], whose verdict says what is known.
    ///
    /// # Cancel safety
    /// As [`EffectRequest::send`](crate::provider::http::EffectRequest::send).
    pub async fn create(
        &self,
        cx: &EffectContext,
        customer: &CreateCustomer,
    ) -> Result<Customer, StripeError> {
        let form = Form::default()
            .maybe("email", customer.email.as_ref())
            .maybe("name", customer.name.as_ref())
            .maybe("description", customer.description.as_ref())
            .maybe("source", customer.source.as_ref())
            .metadata(&customer.metadata);
        self.0.create(cx, PATH, form).await
    }

    /// The customer with this e-mail address that an effect made: for a `reconcile` function. `None` means that there was
    /// none when the question was put.
    ///
    /// # Errors
    /// [`StripeError`]: not known.
    ///
    /// # Cancel safety
    /// May be dropped at any point.
    pub async fn find(&self, email: &str, effect: &EffectId) -> Result<Option<Customer>, StripeError> {
        self.0.find(&[("email", email)], effect, None).await
    }
}
