//! The effects under test, and an executor to call them in.

use std::{sync::Arc, time::Duration};

use effectual::{
    EffectContext, Executor, Found, Ledger, MemoryLedger, Receipt, TenantScope, effect,
    provider::stripe::{
        Charge, CreateCharge, CreateRefund, Refund, Stripe, StripeClient, StripeError, StripeObject,
    },
    retry::RetryPolicy,
};

#[effect(keying = business_identity, provider = Stripe)]
pub(crate) async fn refund_order(
    cx: &EffectContext,
    #[key] order: u64,
    charge: String,
    #[skip] stripe: StripeClient,
) -> effectual::Result<Refund, StripeError> {
    let _ = order;
    Ok(stripe.refunds().create(cx, &CreateRefund::new(charge).amount(500)).await?)
}

#[effect(keying = business_identity, provider = Stripe, on_unknown = reconcile(look_for_refund))]
pub(crate) async fn reconciled_refund(
    cx: &EffectContext,
    #[key] order: u64,
    charge: String,
    #[skip] stripe: StripeClient,
) -> effectual::Result<Refund, StripeError> {
    let _ = order;
    Ok(stripe.refunds().create(cx, &CreateRefund::new(charge).amount(300)).await?)
}

async fn look_for_refund(
    cx: &EffectContext,
    _order: u64,
    charge: String,
    stripe: StripeClient,
) -> Result<Found<Refund, StripeError>, StripeError> {
    Ok(match stripe.refunds().find(&charge, cx.effect_id()).await? {
        Some(refund) => Found::Done(refund),
        None => Found::Absent,
    })
}

#[effect(keying = business_identity, provider = Stripe)]
pub(crate) async fn charge_order(
    cx: &EffectContext,
    #[key] order: String,
    source: String,
    #[skip] stripe: StripeClient,
) -> effectual::Result<Charge, StripeError> {
    let _ = order;
    Ok(stripe.charges().create(cx, &CreateCharge::new(1000, "usd").source(source)).await?)
}

pub(crate) struct Shop {
    pub(crate) executor: Executor,
    pub(crate) scope: TenantScope,
    pub(crate) receipt: Receipt,
    pub(crate) client: StripeClient,
}

impl Shop {
    /// An executor whose calls make this many attempts, with a provider that can be asked about charges.
    pub(crate) fn new(base: &str, attempts: u32) -> Self {
        let client = client(base);
        let retry = RetryPolicy::default().attempts_max(attempts).base(Duration::from_millis(1));
        let executor = Executor::builder(Arc::new(MemoryLedger::new()) as Arc<dyn Ledger>)
            .attempt_timeout(Duration::from_secs(1))
            .retry(retry)
            .provider(Stripe::new(client.clone()).creates("charge_order", StripeObject::Charge))
            .build()
            .expect("an executor");
        let receipt = Receipt::new();
        let scope = executor.tenant("acme").expect("a tenant").with_receipt(&receipt);
        Self { executor, scope, receipt, client }
    }

    /// Whether an attempt of the last call, or its outcome, is marked as the provider's replay.
    pub(crate) async fn provider_replay(&self) -> bool {
        let id = self.receipt.effect_id().expect("a call has ended");
        let history =
            self.executor.inspect(&id).await.expect("the ledger answers").expect("the effect is there");
        history.effect.outcome.is_some_and(|outcome| outcome.provider_replay)
    }
}

pub(crate) fn client(base: &str) -> StripeClient {
    StripeClient::new("sk_test_canary")
        .and_then(|client| client.with_base(base))
        .and_then(StripeClient::without_proxy)
        .expect("a client")
}
