//! Against stripe-stateful-mock, which stores and replays, and localstripe, which does neither.

use effectual::{EffectId, ErrorKind};
use effectual_tests::{charges, microburst::Microburst, recorder::Recorder, servers};

use crate::declared::{Shop, charge_order, reconciled_refund, refund_order};

/// A name that no other run of the tests uses: the servers are shared, and keep what they saw.
fn unique() -> String {
    format!("t{}", uuid::Uuid::new_v4().simple())
}

fn absent() -> EffectId {
    EffectId::parse(format!("acme/{}", "00".repeat(32))).expect("an effect id")
}

#[tokio::test]
async fn a_charge_and_its_refund_are_made_once_and_found_by_their_marks() {
    let Some(url) = servers::stripe_mock("Stripe: charge, refund, find") else { return };
    let (shop, order) = (Shop::new(&url, 2), unique());
    let call = || charge_order(&shop.scope, order.clone(), "tok_visa".to_owned(), shop.client.clone());
    let charge = call().await.expect("a charge");
    assert_eq!(call().await.expect("the stored outcome"), charge);

    let number = u64::from_str_radix(&order[1..16], 16).expect("a number");
    let refund =
        refund_order(&shop.scope, number, charge.id.clone(), shop.client.clone()).await.expect("a refund");
    assert_eq!(refund.charge.as_deref(), Some(charge.id.as_str()));
    let id = shop.receipt.effect_id().expect("an effect");
    let refunds = shop.client.refunds();
    assert_eq!(refunds.list(&charge.id).await.expect("a list"), std::slice::from_ref(&refund));
    assert_eq!(refunds.find(&charge.id, &id).await.expect("an answer"), Some(refund));
    assert_eq!(refunds.find(&charge.id, &absent()).await.expect("an answer"), None);
    let read = shop.client.charges().retrieve(&charge.id).await.expect("the charge");
    assert_eq!(read.amount_refunded, 500);
    assert_eq!(shop.client.charges().retrieve("ch_none").await.expect_err("none").status(), Some(404));
}

#[tokio::test]
async fn a_decline_is_refused_and_a_busy_server_is_asked_again() {
    let Some(url) = servers::stripe_mock("Stripe: declines and 429") else { return };
    let recorder = Recorder::in_front_of(&url);
    let shop = Shop::new(&recorder.url(), 3);
    let call = |source: String| charge_order(&shop.scope, unique(), source, shop.client.clone());
    let error = call("tok_chargeDeclined".to_owned()).await.expect_err("declined");
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(error.error().and_then(|stripe| stripe.decline_code()), Some("generic_decline"));

    call(format!("tok_429|tok_visa|{}", unique())).await.expect("the second attempt");
    let arrivals = recorder.arrivals();
    assert_eq!(arrivals.len(), 3);
    assert_eq!(arrivals[1].idempotency_key, arrivals[2].idempotency_key);
    assert_ne!(arrivals[0].idempotency_key, arrivals[1].idempotency_key);
}

#[tokio::test]
async fn a_replayed_500_is_looked_up_and_not_sent_for_ever() {
    let Some(url) = servers::stripe_mock("Stripe: a replayed 500") else { return };
    let recorder = Recorder::in_front_of(&url);
    let shop = Shop::new(&recorder.url(), 2);
    let source = format!("tok_500|{}", unique());
    let error = charge_order(&shop.scope, unique(), source, shop.client.clone())
        .await
        .expect_err("never known to fail");
    assert_eq!(error.kind(), ErrorKind::Escaped);
    let methods: Vec<_> = recorder.arrivals().into_iter().map(|arrival| arrival.method).collect();
    assert_eq!(&methods[..3], ["POST", "POST", "GET"], "sent, replayed, looked up: {methods:?}");
}

#[tokio::test]
async fn a_provider_without_idempotency_is_asked_before_anything_is_sent_again() {
    let Some(url) = servers::localstripe("Stripe: reconcile") else { return };
    let Some(proxy) = servers::microburst("Stripe: reconcile") else { return };
    let proxy = Microburst::in_front_of(&proxy, &url).await;
    let shop = Shop::new(&proxy.url(), 3);
    let (charge, customer) = charges::at_localstripe(&url).await;
    assert_eq!(shop.client.charges().list(&customer).await.expect("a list").len(), 1);
    proxy.rules(serde_json::json!([{"times":1,"response":{"abort_bytes":0}}])).await;
    let refund = reconciled_refund(&shop.scope, 1, charge.clone(), shop.client.clone()).await.expect("found");
    let refunds = shop.client.refunds().list(&charge).await.expect("a list");
    assert_eq!(refunds, [refund], "performed at the provider: 1");
}
