//! The main job on real input: an annotated function refunds a charge at a server that nobody here wrote, through a proxy that
//! loses answers after the server acted. The servers are shared, so a test's order is named like its own charge.

use std::{sync::Arc, time::Duration};

use effectual::{
    EffectContext, ErrorKind, Executor, Found, Ledger, Receipt, TenantScope, effect,
    ledger::record::State,
    provider::stripe::{CreateRefund, Refund, Stripe, StripeClient, StripeError},
    retry::RetryPolicy,
};
use effectual_tests::{
    charges::{self, SECRET},
    ledgers::{self, TestLedger},
    microburst::Microburst,
    servers,
};
use serde_json::json;

/// Stripe's class: sent again under the same key within the window.
#[effect(keying = business_identity, provider = Stripe)]
async fn refund(
    cx: &EffectContext,
    #[key] order: String,
    charge: String,
    #[skip] stripe: StripeClient,
) -> effectual::Result<Refund, StripeError> {
    let _ = order;
    Ok(stripe.refunds().create(cx, &CreateRefund::new(charge).amount(300)).await?)
}

/// For a server that does not deduplicate: looked up first.
#[effect(keying = business_identity, provider = Stripe, on_unknown = reconcile(find_refund))]
async fn refund_reconciled(
    cx: &EffectContext,
    #[key] order: String,
    charge: String,
    #[skip] stripe: StripeClient,
) -> effectual::Result<Refund, StripeError> {
    let _ = order;
    Ok(stripe.refunds().create(cx, &CreateRefund::new(charge).amount(300)).await?)
}

async fn find_refund(
    cx: &EffectContext,
    _order: String,
    charge: String,
    stripe: StripeClient,
) -> Result<Found<Refund, StripeError>, StripeError> {
    let found = stripe.refunds().find(&charge, cx.effect_id()).await?;
    Ok(found.map_or(Found::Absent, Found::Done))
}

/// For a server of which nothing is known: never sent again.
#[effect(keying = business_identity, provider = Stripe, on_unknown = hold)]
async fn refund_held(
    cx: &EffectContext,
    #[key] order: String,
    charge: String,
    #[skip] stripe: StripeClient,
) -> effectual::Result<Refund, StripeError> {
    let _ = order;
    Ok(stripe.refunds().create(cx, &CreateRefund::new(charge).amount(300)).await?)
}

struct Shop {
    executor: Executor,
    scope: TenantScope,
    receipt: Receipt,
    stripe: StripeClient,
}

fn client(url: &str) -> StripeClient {
    StripeClient::new(SECRET)
        .and_then(|stripe| stripe.with_base(url))
        .and_then(StripeClient::without_proxy)
        .expect("a client")
}

fn shop(ledger: &Arc<dyn Ledger>, url: &str) -> Shop {
    let stripe = client(url);
    let retry = RetryPolicy::default().base(Duration::from_millis(5));
    let executor = Executor::builder(ledger.clone())
        .retry(retry)
        .attempt_timeout(Duration::from_secs(2))
        .build()
        .expect("a valid set-up");
    let receipt = Receipt::new();
    let scope = executor.tenant("acme").expect("a tenant").with_receipt(&receipt);
    Shop { executor, scope, receipt, stripe }
}

/// Two answers are lost after the server acted.
async fn lose_two_answers(proxy: &Microburst) {
    proxy.rules(json!([{"times": 2, "response": {"abort_bytes": 0}}])).await;
}

async fn lose_one_answer(proxy: &Microburst) {
    proxy.rules(json!([{"times": 1, "response": {"abort_bytes": 0}}])).await;
}

fn keys_of_refunds(proxy: &Microburst) -> Vec<String> {
    let posts = proxy.arrivals().into_iter().filter(|arrival| arrival.method == "POST");
    posts.map(|arrival| arrival.idempotency_key.expect("every request has a key")).collect()
}

async fn three_arrivals_one_refund(ledger: TestLedger, part: &str) {
    let (Some(url), Some(proxy)) = (servers::stripe_mock(part), servers::microburst(part)) else { return };
    let charge = charges::at_stripe_mock(&url).await;
    let proxy = Microburst::in_front_of(&proxy, &url).await;
    lose_two_answers(&proxy).await;
    let shop = shop(&ledger.ledger, &proxy.url());

    let done =
        refund(&shop.scope, charge.clone(), charge.clone(), shop.stripe.clone()).await.expect("refunded");

    let keys = keys_of_refunds(&proxy);
    assert_eq!(keys.len(), 3, "three arrivals");
    assert!(keys.iter().all(|key| *key == keys[0]), "with one key: {keys:?}");
    let at_the_provider = client(&url).refunds().list(&charge).await.expect("the provider's list");
    assert_eq!(at_the_provider, std::slice::from_ref(&done), "one refund");
    let id = shop.receipt.effect_id().expect("an identity");
    let history = shop.executor.inspect(&id).await.expect("the ledger answers").expect("recorded");
    assert_eq!((history.effect.attempt, &*history.effect.provider_key), (3, keys[0].as_str()));
    assert!(history.effect.outcome.expect("an outcome").provider_replay, "marked as the provider's replay");

    let again = refund(&shop.scope, charge.clone(), charge, shop.stripe.clone()).await.expect("replayed");
    assert_eq!(again, done);
    assert_eq!(keys_of_refunds(&proxy).len(), 3, "a replay asks nobody");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn golden_on_sqlite() {
    three_arrivals_one_refund(ledgers::sqlite().await, "golden on SQLite").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn golden_on_postgres() {
    let Some(ledger) = ledgers::postgres("golden on PostgreSQL").await else { return };
    three_arrivals_one_refund(ledger, "golden on PostgreSQL").await;
}

/// The control: the same losses, and a fresh key each time, as without this library. The provider performs three.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn golden_negative_control_a_fresh_key_each_time() {
    let part = "golden, negative control";
    let (Some(url), Some(proxy)) = (servers::stripe_mock(part), servers::microburst(part)) else { return };
    let charge = charges::at_stripe_mock(&url).await;
    let proxy = Microburst::in_front_of(&proxy, &url).await;
    lose_two_answers(&proxy).await;
    let ledger = ledgers::memory();
    let shop = shop(&ledger.ledger, &proxy.url());
    let mut answered = 0;
    while answered == 0 {
        // Another identity each time is another key each time.
        let fresh = format!("{charge}-{}", keys_of_refunds(&proxy).len());
        let call = refund_held(&shop.scope, fresh, charge.clone(), shop.stripe.clone()).await;
        answered += u32::from(call.is_ok());
    }
    let keys = keys_of_refunds(&proxy);
    assert_eq!(keys.iter().collect::<std::collections::HashSet<_>>().len(), 3);
    assert_eq!(client(&url).refunds().list(&charge).await.expect("the provider's list").len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn golden_reconcile_at_a_provider_without_idempotency() {
    let part = "golden, reconcile";
    let (Some(url), Some(proxy)) = (servers::localstripe(part), servers::microburst(part)) else { return };
    let (charge, _) = charges::at_localstripe(&url).await;
    let proxy = Microburst::in_front_of(&proxy, &url).await;
    lose_one_answer(&proxy).await;
    let ledger = ledgers::sqlite().await;
    let shop = shop(&ledger.ledger, &proxy.url());
    let call = || refund_reconciled(&shop.scope, charge.clone(), charge.clone(), shop.stripe.clone());
    let done = call().await.expect("found at the provider");
    assert_eq!(call().await.expect("replayed"), done);
    assert_eq!(keys_of_refunds(&proxy).len(), 1, "sent once");
    assert_eq!(client(&url).refunds().list(&charge).await.expect("the provider's list"), [done]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn golden_hold_at_a_provider_without_idempotency() {
    let part = "golden, hold";
    let (Some(url), Some(proxy)) = (servers::localstripe(part), servers::microburst(part)) else { return };
    let (charge, _) = charges::at_localstripe(&url).await;
    let proxy = Microburst::in_front_of(&proxy, &url).await;
    lose_one_answer(&proxy).await;
    let ledger = ledgers::sqlite().await;
    let shop = shop(&ledger.ledger, &proxy.url());
    for _ in 0..2 {
        let call = refund_held(&shop.scope, charge.clone(), charge.clone(), shop.stripe.clone()).await;
        assert_eq!(call.expect_err("unknown").kind(), ErrorKind::Escaped);
    }
    assert_eq!(keys_of_refunds(&proxy).len(), 1, "sent once");
    assert_eq!(client(&url).refunds().list(&charge).await.expect("the provider's list").len(), 1);
    let id = shop.receipt.effect_id().expect("an identity");
    let history = shop.executor.inspect(&id).await.expect("the ledger answers").expect("recorded");
    assert_eq!(history.effect.state, State::Escaped);
}
