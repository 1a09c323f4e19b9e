//! The Stripe adapter: against a scripted server for what Stripe says, and against two servers that behave like it.
#![forbid(unsafe_code)]

#[path = "stripe/declared.rs"]
mod declared;
#[path = "stripe/look_up.rs"]
mod look_up;
#[path = "stripe/payments.rs"]
mod payments;
#[path = "http_adapter/script.rs"]
mod script;
#[path = "stripe/servers.rs"]
mod servers;

use declared::{Shop, refund_order};
use effectual::{ErrorKind, Failure, Verdict, provider::stripe::API_VERSION};
use script::{Script, Step, say};

const REFUND: &str = r#"{"id":"re_1","object":"refund","amount":500,"charge":"ch_1","currency":"usd","created":1,
    "status":"succeeded","metadata":{}}"#;

#[tokio::test]
async fn a_refund_is_sent_with_its_key_its_mark_and_nothing_that_was_not_asked_for() {
    let script = Script::start([say(200, &[], REFUND)]).await;
    let shop = Shop::new(&script.url(), 1);
    let refund =
        refund_order(&shop.scope, 1, "ch_1".to_owned(), shop.client.clone()).await.expect("a refund");
    assert_eq!((refund.id.as_str(), refund.amount), ("re_1", 500));
    let id = shop.receipt.effect_id().expect("an effect").to_string();
    let (_, digest) = id.split_once('/').expect("a tenant");
    let asked = &script.asked()[0];
    assert!(asked.head.starts_with("POST /v1/refunds HTTP/1.1\r\n"), "{}", asked.head);
    assert_eq!(asked.body, format!("charge=ch_1&amount=500&metadata%5Beffectual_effect%5D={digest}"));
    assert_eq!(asked.header("content-type"), Some("application/x-www-form-urlencoded"));
    assert_eq!(asked.header("authorization"), Some("Bearer sk_test_canary"));
    assert_eq!(asked.header("stripe-version"), Some(API_VERSION));
    assert_eq!(asked.header("idempotency-key").map(str::len), Some(36));
}

#[tokio::test]
async fn a_key_in_use_is_sent_again_and_a_changed_request_is_never_a_refusal() {
    let in_use =
        say(409, &[], r#"{"error":{"type":"invalid_request_error","code":"idempotency_key_in_use"}}"#);
    let script = Script::start([in_use, say(200, &[("Idempotent-Replayed", "true")], REFUND)]).await;
    let shop = Shop::new(&script.url(), 3);
    refund_order(&shop.scope, 1, "ch_1".to_owned(), shop.client.clone())
        .await
        .expect("the first one's answer");
    let asked = script.asked();
    assert_eq!(asked[0].header("idempotency-key"), asked[1].header("idempotency-key"));
    assert!(shop.provider_replay().await);

    let changed = say(400, &[], r#"{"error":{"type":"idempotency_error","message":"canary"}}"#);
    let script = Script::start([changed]).await;
    let shop = Shop::new(&script.url(), 1);
    let error =
        refund_order(&shop.scope, 1, "ch_1".to_owned(), shop.client.clone()).await.expect_err("unknown");
    assert_eq!(error.kind(), ErrorKind::Escaped);
    assert!(!format!("{error} {error:?} {:?}", shop.client).contains("canary"));
}

#[tokio::test]
async fn a_decline_replays_as_the_same_typed_error() {
    let decline = r#"{"error":{"type":"card_error","code":"card_declined","decline_code":"lost_card",
        "message":"canary"}}"#;
    let script = Script::start([say(402, &[], decline)]).await;
    let shop = Shop::new(&script.url(), 3);
    for _ in 0..2 {
        let error =
            refund_order(&shop.scope, 1, "ch_1".to_owned(), shop.client.clone()).await.expect_err("declined");
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(!format!("{error} {error:?}").contains("canary"));
        let stripe = error.into_error().expect("Stripe's error");
        assert_eq!((stripe.status(), stripe.error_type()), (Some(402), Some("card_error")));
        assert_eq!((stripe.decline_code(), stripe.message()), (Some("lost_card"), Some("canary")));
        assert_eq!(stripe.verdict(), Verdict::Refused);
    }
    assert_eq!(script.asked().len(), 1);
}

#[tokio::test]
async fn should_retry_is_obeyed() {
    let body = r#"{"error":{"type":"invalid_request_error","code":"lock_timeout"}}"#;
    for (status, value, kind) in [
        (429, "false", ErrorKind::Failed),
        (400, "true", ErrorKind::Escaped),
        (400, "false", ErrorKind::Refused),
    ] {
        let script = Script::start([say(status, &[("Stripe-Should-Retry", value)], body)]).await;
        let shop = Shop::new(&script.url(), if status == 429 { 3 } else { 1 });
        let error =
            refund_order(&shop.scope, 1, "ch_1".to_owned(), shop.client.clone()).await.expect_err("no");
        assert_eq!((error.kind(), script.asked().len()), (kind, 1), "{status} {value}");
    }
}

#[tokio::test]
async fn a_lost_answer_is_never_failed() {
    for step in [Step::Close, Step::Silence] {
        let script = Script::start([step]).await;
        let shop = Shop::new(&script.url(), 1);
        let error =
            refund_order(&shop.scope, 1, "ch_1".to_owned(), shop.client.clone()).await.expect_err("lost");
        assert_eq!((error.kind(), script.asked().len()), (ErrorKind::Escaped, 1));
    }
}
