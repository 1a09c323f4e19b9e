//! Stripe's v1 API: payment intents, charges, refunds and customers.
//!
//! Every create call writes the effect's digest into the new object's metadata, under `effectual_effect`: that is how a
//! look-up finds the object of one effect. Stripe's lists show an object at once; its search does not, and is not used.
//! Behind something that shows objects later, say so with [`Profile::with_settle_delay`](crate::Profile::with_settle_delay):
//! "absent" counts only once it has passed.
//!
//! Requests name the version of the API that this adapter was written against, [`API_VERSION`], whatever the account's own;
//! [`StripeClient::with_api_version`] names another.
//!
//! The client sends what the effect said and nothing else: no default is filled in, so that a later attempt sends the
//! same bytes. Stripe compares them.
//!
//! ```no_run
//! # use effectual::{EffectContext, provider::stripe::{CreateRefund, Refund, StripeClient, StripeError}};
//! # async fn body(cx: &EffectContext, stripe: StripeClient, charge: String) -> Result<Refund, StripeError> {
//! stripe.refunds().create(cx, &CreateRefund::new(charge).amount(500)).await
//! # }
//! ```

mod charges;
mod client;
mod customers;
mod error;
mod form;
mod list;
mod look_up;
mod payment_intents;
mod refunds;

pub use self::{
    charges::{Charge, Charges, CreateCharge},
    client::StripeClient,
    customers::{CreateCustomer, Customer, Customers},
    error::StripeError,
    look_up::{Stripe, StripeObject},
    payment_intents::{CreatePaymentIntent, PaymentError, PaymentIntent, PaymentIntents},
    refunds::{CreateRefund, Refund, Refunds},
};

/// The version of Stripe's API that requests name unless the client is told another.
pub const API_VERSION: &str = "2025-12-15.clover";

/// The name in an object's metadata that holds the digest of the effect that created it, in hexadecimal.
pub const EFFECT_METADATA: &str = "effectual_effect";
