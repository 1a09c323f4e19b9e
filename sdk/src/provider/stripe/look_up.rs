//! The provider type, and asking Stripe what happened to an effect.

use std::collections::HashMap;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;

use super::{
    charges::Charge, client::StripeClient, customers::Customer, error::StripeError, list::Listed,
    payment_intents::PaymentIntent, refunds::Refund,
};
use crate::{
    failure::Found,
    provider::{LookUp, Profile, Provider},
};

/// Stripe's v1 API, as an effect names it: `#[effect(…, provider = Stripe)]`.
///
/// A value of it with a client, given to the executor, finds what an effect made by the mark in its metadata. It
/// says "absent" only of operations that it was told of with [`creates`](Self::creates): of others it cannot know that they
/// leave a mark. The effect must return the object itself ([`PaymentIntent`], [`Charge`], [`Refund`] or [`Customer`]) and have
/// [`StripeError`] as its error.
#[derive(Debug, Clone, Default)]
pub struct Stripe {
    client: Option<StripeClient>,
    operations: HashMap<String, StripeObject>,
}

/// What an operation creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StripeObject {
    /// A refund.
    Refund,
    /// A charge.
    Charge,
    /// A customer.
    Customer,
    /// A payment intent.
    PaymentIntent,
}

impl StripeObject {
    const ALL: [Self; 4] = [Self::Refund, Self::Charge, Self::Customer, Self::PaymentIntent];
}

impl Stripe {
    /// Stripe, asked through this client.
    #[must_use]
    pub fn new(client: StripeClient) -> Self {
        Self { client: Some(client), operations: HashMap::new() }
    }

    /// Says what an operation creates through this adapter's client, and has always created: only then does a missing
    /// mark mean that the effect was not performed.
    #[must_use]
    pub fn creates(mut self, operation: impl Into<String>, object: StripeObject) -> Self {
        self.operations.insert(operation.into(), object);
        self
    }
}

#[async_trait]
impl Provider for Stripe {
    const NAME: &'static str = "stripe";

    fn profile() -> Profile {
        Profile::bundled("stripe").expect("a test reads every bundled profile")
    }

    async fn look_up(&self, request: &LookUp<'_>) -> Found<Value, Value> {
        let Some(client) = &self.client else { return Found::Unknown };
        match self.operations.get(request.operation) {
            Some(object) => ask(client, request, *object).await,
            None => {
                for object in StripeObject::ALL {
                    if let found @ (Found::Done(_) | Found::Refused(_)) = ask(client, request, object).await {
                        return found;
                    }
                }
                Found::Unknown
            }
        }
    }
}

async fn ask(client: &StripeClient, request: &LookUp<'_>, object: StripeObject) -> Found<Value, Value> {
    match object {
        StripeObject::Refund => found(find::<Refund>(client, request).await, |_| None),
        StripeObject::Customer => found(find::<Customer>(client, request).await, |_| None),
        StripeObject::Charge => found(find::<Charge>(client, request).await, |charge| {
            charge.failed().then(|| StripeError::of_failed_charge(charge))
        }),
        StripeObject::PaymentIntent => {
            found(find::<PaymentIntent>(client, request).await, StripeError::of_failed_intent)
        }
    }
}

async fn find<T: Listed>(client: &StripeClient, request: &LookUp<'_>) -> Result<Option<T>, StripeError> {
    client.find(&[], request.effect_id, request.since).await
}

fn found<T: Serialize>(
    asked: Result<Option<T>, StripeError>,
    refusal: impl Fn(&T) -> Option<StripeError>,
) -> Found<Value, Value> {
    let object = match asked {
        Ok(Some(object)) => object,
        Ok(None) => return Found::Absent,
        Err(_) => return Found::Unknown,
    };
    match refusal(&object) {
        Some(error) => serde_json::to_value(error).map_or(Found::Unknown, Found::Refused),
        None => serde_json::to_value(object).map_or(Found::Unknown, Found::Done),
    }
}
