//! Payment intents, the version of the API, and lists that show an object late.

use std::time::{Duration, Instant};

use effectual::{
    EffectContext, EffectId, ErrorKind, Executor, Found, LookUp, MemoryLedger, Provider, Receipt, effect,
    provider::stripe::{
        API_VERSION, CreatePaymentIntent, CreateRefund, PaymentIntent, Refund, Stripe, StripeClient,
        StripeError, StripeObject,
    },
    retry::RetryPolicy,
};
use effectual_tests::{charges, servers};
use serde_json::{Value, json};

use crate::{
    declared::{Shop, client, reconciled_refund},
    script::{Script, Step, say},
};

#[effect(keying = business_identity, provider = Stripe)]
async fn pay_order(
    cx: &EffectContext,
    #[key] order: String,
    customer: String,
    payment_method: String,
    #[skip] stripe: StripeClient,
) -> effectual::Result<PaymentIntent, StripeError> {
    let intent = CreatePaymentIntent::new(700, "usd")
        .customer(customer)
        .payment_method(payment_method)
        .payment_method_type("card")
        .metadata("order", order)
        .confirm_off_session();
    Ok(stripe.payment_intents().create(cx, &intent).await?)
}

#[effect(keying = business_identity, provider = Stripe)]
async fn refund_payment(
    cx: &EffectContext,
    #[key] intent: String,
    #[skip] stripe: StripeClient,
) -> effectual::Result<Refund, StripeError> {
    Ok(stripe.refunds().create(cx, &CreateRefund::of_payment_intent(intent).amount(200)).await?)
}

fn intent(id: &str, status: &str, error: Value, mark: &str) -> Value {
    json!({
        "id": id, "object": "payment_intent", "amount": 700, "currency": "usd", "created": 1, "status": status,
        "client_secret": "canary", "last_payment_error": error, "metadata": { "effectual_effect": mark },
    })
}

fn page(objects: &[Value]) -> Step {
    say(200, &[], &json!({ "object": "list", "data": objects, "has_more": false }).to_string())
}

async fn pay(shop: &Shop) -> effectual::Result<PaymentIntent, StripeError> {
    pay_order(&shop.scope, "o-1".into(), "cus_1".into(), "pm_1".into(), shop.client.clone()).await
}

#[tokio::test]
async fn an_intent_is_sent_with_what_was_asked_for_and_stored_without_its_secret() {
    let script =
        Script::start([say(200, &[], &intent("pi_1", "succeeded", Value::Null, "").to_string())]).await;
    let shop = Shop::new(&script.url(), 1);
    let paid = pay(&shop).await.expect("paid");
    assert_eq!((paid.id.as_str(), paid.status.as_str(), paid.failed()), ("pi_1", "succeeded", false));
    assert!(!serde_json::to_string(&paid).expect("stored").contains("canary"));
    let digest = shop.receipt.effect_id().expect("an effect").to_string().split_off("acme/".len());
    let asked = &script.asked()[0];
    assert!(asked.head.starts_with("POST /v1/payment_intents HTTP/1.1\r\n"), "{}", asked.head);
    let expected = format!(
        "amount=700&currency=usd&customer=cus_1&payment_method=pm_1&payment_method_types%5B%5D=card&confirm=true\
         &off_session=true&metadata%5Beffectual_effect%5D={digest}&metadata%5Border%5D=o-1"
    );
    assert_eq!(asked.body, expected);
}

#[tokio::test]
async fn a_declined_confirmation_is_a_refusal() {
    let decline = r#"{"error":{"type":"card_error","code":"card_declined","decline_code":"lost_card",
        "payment_intent":{"id":"pi_1","status":"requires_payment_method"}}}"#;
    let script = Script::start([say(402, &[], decline)]).await;
    let shop = Shop::new(&script.url(), 3);
    for _ in 0..2 {
        let error = pay(&shop).await.expect_err("declined");
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert_eq!(error.error().and_then(StripeError::decline_code), Some("lost_card"));
    }
    assert_eq!(script.asked().len(), 1);
}

#[tokio::test]
async fn a_look_up_tells_a_declined_intent_from_one_that_was_never_confirmed() {
    let mark = "ab".repeat(32);
    let effect = EffectId::parse(format!("acme/{mark}")).expect("an effect id");
    let declined = json!({ "code": "card_declined", "decline_code": "lost_card", "charge": "ch_1" });
    for (status, error, refused) in [
        ("succeeded", Value::Null, false),
        ("requires_payment_method", Value::Null, false),
        ("requires_payment_method", declined.clone(), true),
        ("canceled", declined.clone(), true),
        // Declined once, and paid with another method since.
        ("succeeded", declined, false),
    ] {
        let script = Script::start([page(&[intent("pi_1", status, error, &mark)])]).await;
        let stripe = Stripe::new(client(&script.url())).creates("operation", StripeObject::PaymentIntent);
        match stripe.look_up(&LookUp::new("key", &effect, "operation")).await {
            Found::Refused(value) => {
                let error: StripeError = serde_json::from_value(value).expect("the effect's own error");
                let said = (error.code(), error.decline_code(), error.charge());
                assert_eq!(said, (Some("card_declined"), Some("lost_card"), Some("ch_1")));
                assert!(refused, "{status}");
            }
            Found::Done(value) => assert!(!refused && value["id"] == "pi_1", "{status}"),
            other => panic!("{status}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn the_intents_of_a_customer_are_listed_and_one_is_found_by_its_mark() {
    let mark = "ab".repeat(32);
    let effect = EffectId::parse(format!("acme/{mark}")).expect("an effect id");
    let ours = || {
        page(&[
            intent("pi_1", "processing", Value::Null, ""),
            intent("pi_2", "succeeded", Value::Null, &mark),
        ])
    };
    let script = Script::start([ours(), ours()]).await;
    let stripe = client(&script.url());
    let intents = stripe.payment_intents();
    assert_eq!(intents.list("cus_1").await.expect("a list").len(), 2);
    let found = intents.find("cus_1", &effect).await.expect("an answer");
    assert_eq!(found.map(|intent| intent.id).as_deref(), Some("pi_2"));
    let head = "GET /v1/payment_intents?limit=100&customer=cus_1 ";
    assert!(script.asked().iter().all(|asked| asked.head.starts_with(head)));
}

#[tokio::test]
async fn the_version_is_pinned_and_can_be_named() {
    let script = Script::start([page(&[]), page(&[])]).await;
    let stripe = client(&script.url());
    stripe.payment_intents().list("cus_1").await.expect("a list");
    let other = stripe.with_api_version("2026-05-27.dahlia").expect("a version");
    other.payment_intents().list("cus_1").await.expect("a list");
    let asked = script.asked();
    let versions: Vec<_> = asked.iter().map(|asked| asked.header("stripe-version")).collect();
    assert_eq!(versions, [Some(API_VERSION), Some("2026-05-27.dahlia")]);
    assert_eq!(asked[0].head.matches("stripe-version").count(), 1);
}

/// The list is empty when it is asked first: "absent" is believed only once attempt timeout and settle delay have passed, and
/// by then the refund is in the list.
#[tokio::test]
async fn what_a_list_shows_late_is_found_and_not_made_again() {
    let probe = Script::start([say(200, &[], crate::REFUND)]).await;
    let shop = Shop::new(&probe.url(), 1);
    reconciled_refund(&shop.scope, 1, "ch_1".to_owned(), shop.client.clone()).await.expect("a refund");
    let mark = shop.receipt.effect_id().expect("an effect").to_string().split_off("acme/".len());

    let refund = json!({ "id": "re_1", "amount": 300, "currency": "usd", "created": 1,
        "metadata": { "effectual_effect": mark } });
    let script = Script::start([Step::Close, page(&[]), page(&[refund])]).await;
    let (attempt_timeout, settle_delay) = (Duration::from_millis(300), Duration::from_millis(500));
    let executor = Executor::builder(MemoryLedger::new())
        .attempt_timeout(attempt_timeout)
        .retry(RetryPolicy::default().attempts_max(3).base(Duration::from_millis(1)))
        .profile(Stripe::profile().with_settle_delay(settle_delay))
        .build()
        .expect("an executor");
    let scope = executor.tenant("acme").expect("a tenant").with_receipt(&Receipt::new());
    let started = Instant::now();
    let found = reconciled_refund(&scope, 1, "ch_1".to_owned(), client(&script.url())).await.expect("found");
    assert_eq!(found.id, "re_1");
    let asked: Vec<_> = script.asked().iter().map(|asked| asked.head[..4].to_owned()).collect();
    assert_eq!(asked, ["POST", "GET ", "GET "]);
    assert!(started.elapsed() >= attempt_timeout + settle_delay, "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_payment_is_made_found_and_refunded_at_a_server() {
    let Some(url) = servers::localstripe("Stripe: payment intents") else { return };
    let shop = Shop::new(&url, 2);
    let (customer, card) = charges::card_at_localstripe(&url).await;
    let call =
        || pay_order(&shop.scope, customer.clone(), customer.clone(), card.clone(), shop.client.clone());
    let paid = call().await.expect("paid");
    assert_eq!(call().await.expect("the stored outcome"), paid);
    assert_eq!((paid.status.as_str(), paid.amount), ("succeeded", 700));
    let id = shop.receipt.effect_id().expect("an effect");

    let intents = shop.client.payment_intents();
    assert_eq!(intents.retrieve(&paid.id).await.expect("the intent"), paid);
    // This server's list knows no filter, and a look-up without a caller uses none.
    let stripe = Stripe::new(shop.client.clone()).creates("pay_order", StripeObject::PaymentIntent);
    let Found::Done(found) = stripe.look_up(&LookUp::new("key", &id, "pay_order")).await else {
        panic!("it is there")
    };
    assert_eq!(found["id"], paid.id.as_str());
    let refund = refund_payment(&shop.scope, paid.id.clone(), shop.client.clone()).await.expect("a refund");
    assert_eq!((refund.amount, refund.payment_intent), (200, Some(paid.id)));
}
