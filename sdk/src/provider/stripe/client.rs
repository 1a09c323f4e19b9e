//! The client: one account's access to the API.

use std::{fmt, time::Duration};

use serde::de::DeserializeOwned;

use super::{
    API_VERSION, charges::Charges, customers::Customers, error::StripeError, form::Form,
    payment_intents::PaymentIntents, refunds::Refunds,
};
use crate::{
    context::EffectContext,
    provider::{
        Profile, Provider,
        http::{HttpClient, Secret},
        stripe::Stripe,
    },
};

const BASE: &str = "https://api.stripe.com";

/// A client of Stripe's v1 API. Cheap to clone: pass it to effects as a skipped argument. Shows its key nowhere.
#[derive(Clone)]
pub struct StripeClient {
    pub(super) http: HttpClient,
}

impl StripeClient {
    /// A client with this secret key, read by the bundled profile.
    ///
    /// # Errors
    /// [`StripeError`], not sent: the key cannot be sent in a header, or TLS cannot be set up.
    pub fn new(secret: impl Into<Secret>) -> Result<Self, StripeError> {
        Self::with_profile(secret, Stripe::profile())
    }

    /// [`new`](Self::new) with another profile, for facts that have changed. Give the same one to the executor.
    ///
    /// # Errors
    /// As [`new`](Self::new), or the profile contradicts itself.
    pub fn with_profile(secret: impl Into<Secret>, profile: Profile) -> Result<Self, StripeError> {
        let http = HttpClient::new(profile, BASE)?.with_bearer(&secret.into())?;
        Self { http }.with_api_version(API_VERSION)
    }

    /// Uses another address than `https://api.stripe.com`: a test server.
    ///
    /// # Errors
    /// [`StripeError`], not sent: it is not an `http` or `https` address without credentials, query and fragment.
    pub fn with_base(self, base: &str) -> Result<Self, StripeError> {
        Ok(Self { http: self.http.with_base(base)? })
    }

    /// Asks for this version of the API instead of [`API_VERSION`]. A version that changes between attempts may change what
    /// Stripe compares; fields that it has renamed are not read.
    ///
    /// # Errors
    /// [`StripeError`], not sent: it cannot be sent in a header.
    pub fn with_api_version(self, version: &str) -> Result<Self, StripeError> {
        Ok(Self { http: self.http.with_header("stripe-version", version)? })
    }

    /// Acts for this connected account. Stripe keeps keys by account.
    ///
    /// # Errors
    /// [`StripeError`], not sent: it cannot be sent in a header.
    pub fn with_account(self, account: &str) -> Result<Self, StripeError> {
        Ok(Self { http: self.http.with_header("stripe-account", account)? })
    }

    /// How long a whole exchange may take; see [`HttpClient::with_timeout`].
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { http: self.http.with_timeout(timeout) }
    }

    /// Ignores the proxy that the environment names.
    ///
    /// # Errors
    /// [`StripeError`], not sent: TLS cannot be set up.
    pub fn without_proxy(self) -> Result<Self, StripeError> {
        Ok(Self { http: self.http.without_proxy()? })
    }

    /// Payment intents.
    #[must_use]
    pub fn payment_intents(&self) -> PaymentIntents<'_> {
        PaymentIntents(self)
    }

    /// Charges.
    #[must_use]
    pub fn charges(&self) -> Charges<'_> {
        Charges(self)
    }

    /// Refunds.
    #[must_use]
    pub fn refunds(&self) -> Refunds<'_> {
        Refunds(self)
    }

    /// Customers.
    #[must_use]
    pub fn customers(&self) -> Customers<'_> {
        Customers(self)
    }

    pub(super) async fn create<T: DeserializeOwned>(
        &self,
        cx: &EffectContext,
        path: &str,
        form: Form,
    ) -> Result<T, StripeError> {
        let fields = form.for_effect(cx.effect_id())?;
        let answer = self.http.post(path).form(fields).send(cx).await?;
        Ok(answer.json()?)
    }
}

impl fmt::Debug for StripeClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StripeClient").field("http", &self.http).finish_non_exhaustive()
    }
}
