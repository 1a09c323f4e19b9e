//! Look-ups by metadata: what counts as found, absent and not known.

use std::time::{Duration, UNIX_EPOCH};

use effectual::{
    EffectId, Found, LookUp, Provider,
    provider::stripe::{Refund, Stripe, StripeError, StripeObject},
};
use serde_json::{Value, json};

use crate::{
    declared::client,
    script::{Script, Step, cut, say},
};

fn effect() -> EffectId {
    EffectId::parse(format!("acme/{}", "ab".repeat(32))).expect("an effect id")
}

fn object(id: &str, created: i64, ours: bool) -> Value {
    let mark = if ours { "ab".repeat(32) } else { "another".to_owned() };
    json!({
        "id": id, "amount": 5, "currency": "usd", "created": created, "metadata": { "effectual_effect": mark },
    })
}

fn failed(charge: &Value) -> Value {
    let mut charge = charge.clone();
    charge["status"] = json!("failed");
    charge["failure_code"] = json!("card_declined");
    charge
}

fn page(objects: &[Value], has_more: bool) -> Step {
    say(200, &[], &json!({ "object": "list", "data": objects, "has_more": has_more }).to_string())
}

/// Asks about an operation that creates `object`, or about one of which nothing is known.
async fn ask(script: &Script, object: Option<StripeObject>) -> Found<Value, Value> {
    let stripe = Stripe::new(client(&script.url()));
    let stripe = match object {
        Some(object) => stripe.creates("operation", object),
        None => stripe,
    };
    let since = UNIX_EPOCH + Duration::from_secs(100_000);
    stripe.look_up(&LookUp::new("key", &effect(), "operation").since(since)).await
}

#[tokio::test]
async fn the_list_is_read_until_the_mark_is_found() {
    let pages = [page(&[object("re_9", 5, false)], true), page(&[object("re_8", 9, true)], true)];
    let script = Script::start(pages).await;
    let Found::Done(value) = ask(&script, Some(StripeObject::Refund)).await else { panic!("it is there") };
    assert_eq!(serde_json::from_value::<Refund>(value).expect("a refund").id, "re_8");
    let heads: Vec<_> = script.asked().into_iter().map(|asked| asked.head).collect();
    assert!(heads[0].starts_with("GET /v1/refunds?limit=100 "), "{}", heads[0]);
    assert!(heads[1].starts_with("GET /v1/refunds?limit=100&starting_after=re_9 "), "{}", heads[1]);
}

#[tokio::test]
async fn absent_needs_the_list_read_to_its_end() {
    let other = || object("re_9", 200_000, false);
    let script = Script::start([page(&[other()], true), page(&[], false)]).await;
    assert_eq!(ask(&script, Some(StripeObject::Refund)).await, Found::Absent);
    assert_eq!(script.asked().len(), 2);

    for second in [
        Step::Close,
        cut(200, r#"{"data":[],"has_more":false}"#),
        say(500, &[], ""),
        say(404, &[], ""),
        say(200, &[], r#"{"data":[]}"#),
        say(200, &[], r#"{"data":[{"id":"re_8"}],"has_more":false}"#),
        page(&[], true),
    ] {
        let script = Script::start([page(&[other()], true), second]).await;
        assert_eq!(ask(&script, Some(StripeObject::Refund)).await, Found::Unknown);
    }
}

#[tokio::test]
async fn a_list_in_falling_order_is_left_where_it_is_older_than_the_effect() {
    let first = page(&[object("re_9", 99_000, false), object("re_8", 90_000, false)], true);
    let script = Script::start([first]).await;
    assert_eq!(ask(&script, Some(StripeObject::Refund)).await, Found::Absent);

    let rising = page(&[object("re_1", 90_000, false), object("re_2", 99_000, false)], true);
    let script = Script::start([rising, page(&[object("re_3", 100_000, true)], false)]).await;
    assert!(matches!(ask(&script, Some(StripeObject::Refund)).await, Found::Done(_)));
}

#[tokio::test]
async fn of_an_operation_that_it_was_not_told_of_it_never_says_absent() {
    let empty = || page(&[], false);
    let script = Script::start([empty(), empty(), empty(), empty()]).await;
    assert_eq!(ask(&script, None).await, Found::Unknown);
    let paths = script.asked().iter().map(|asked| asked.head[..14].to_owned()).collect::<Vec<_>>();
    assert_eq!(paths, ["GET /v1/refund", "GET /v1/charge", "GET /v1/custom", "GET /v1/paymen"]);
    let customer = page(&[object("cus_1", 1, true)], false);
    let script = Script::start([empty(), empty(), customer]).await;
    assert!(matches!(ask(&script, None).await, Found::Done(_)));
    assert_eq!(Stripe::default().look_up(&LookUp::new("key", &effect(), "operation")).await, Found::Unknown);
}

#[tokio::test]
async fn a_declined_charge_is_a_refusal_unless_another_one_went_through() {
    let charge = object("ch_1", 1, true);
    let script = Script::start([page(&[failed(&charge)], false)]).await;
    let Found::Refused(value) = ask(&script, Some(StripeObject::Charge)).await else { panic!("declined") };
    let error: StripeError = serde_json::from_value(value).expect("the effect's own error");
    assert_eq!((error.code(), error.charge()), (Some("card_declined"), Some("ch_1")));

    let script = Script::start([page(&[failed(&charge), object("ch_2", 1, true)], false)]).await;
    let Found::Done(value) = ask(&script, Some(StripeObject::Charge)).await else { panic!("charged") };
    assert_eq!(value["id"], "ch_2");
}
