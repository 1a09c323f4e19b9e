//! The HTTP adapter against a provider that misbehaves byte by byte.
#![forbid(unsafe_code)]

#[path = "http_adapter/script.rs"]
mod script;
#[path = "http_adapter/setup.rs"]
mod setup;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use effectual::{
    ErrorKind, Failure, Profile, SendRefused, Verdict,
    provider::{
        KeyPlace,
        http::{HttpErrorKind, Secret},
    },
};
use script::{Script, Step, cut, say};
use setup::{client, client_of, post, setup};

const CANARY: &str = "canary-4242";

#[tokio::test]
async fn f07_whatever_is_lost_after_the_request_left_is_unknown_and_never_failed() {
    let dead = "http://127.0.0.1:1/elsewhere";
    let long = "x".repeat(1001);
    for (step, kind) in [
        (Step::Silence, HttpErrorKind::Timeout),
        (Step::Close, HttpErrorKind::Cut),
        (Step::Say("HTTP/1.1 20".to_owned()), HttpErrorKind::Cut),
        (say(408, &[], ""), HttpErrorKind::Answered),
        (say(409, &[], ""), HttpErrorKind::Answered),
        (say(425, &[], ""), HttpErrorKind::Answered),
        (say(500, &[], ""), HttpErrorKind::Answered),
        (say(502, &[], ""), HttpErrorKind::Answered),
        (say(503, &[], ""), HttpErrorKind::Answered),
        (cut(200, "{}"), HttpErrorKind::Cut),
        (cut(400, "{}"), HttpErrorKind::Cut),
        (cut(429, ""), HttpErrorKind::Cut),
        (say(302, &[("Location", dead)], ""), HttpErrorKind::Redirected),
        (say(307, &[("Location", dead)], ""), HttpErrorKind::Redirected),
        (say(200, &[], &long), HttpErrorKind::TooLarge),
        (say(422, &[], &long), HttpErrorKind::TooLarge),
    ] {
        let (setup, script) = (setup(1), Script::start([step]).await);
        let client = client(&script.url()).with_timeout(Duration::from_millis(300));
        let error = setup.call(1, post(&client)).await.expect_err("no answer");
        assert_eq!(error.kind(), ErrorKind::Escaped, "{kind:?}");
        let http = error.into_error().expect("the adapter's own error");
        assert_eq!((http.kind(), http.verdict()), (kind, Verdict::Unknown));
        assert_eq!(script.asked().len(), 1, "{kind:?}");
    }
}

#[tokio::test]
async fn f07_a_lost_answer_is_asked_for_again_under_the_same_key_and_bytes() {
    let replayed = say(200, &[("idempotent-replayed", "true")], "{}");
    let (setup, script) = (setup(3), Script::start([Step::Close, cut(200, "{"), replayed]).await);
    assert_eq!(setup.call(1, post(&client(&script.url()))).await.expect("the replay"), 200);
    let asked = script.asked();
    assert_eq!(asked.len(), 3);
    for one in &asked {
        assert_eq!(one.header("idempotency-key"), asked[0].header("idempotency-key"));
        assert_eq!((one.head.as_str(), one.body.as_str()), (asked[0].head.as_str(), r#"{"amount":500}"#));
        assert!(one.head.starts_with("POST /things?kind=a HTTP/1.1\r\n"), "{}", one.head);
    }
    assert_eq!(asked[0].header("idempotency-key").map(str::len), Some(36));
    assert!(setup.provider_replay().await, "f53: the replay is marked");
}

#[tokio::test]
async fn no_connection_is_not_performed_and_retried() {
    let setup = setup(2);
    let tries = Arc::new(AtomicUsize::new(0));
    let (counted, body) = (tries.clone(), post(&client("http://127.0.0.1:1")));
    let error = setup
        .call(1, move |cx| {
            counted.fetch_add(1, Ordering::SeqCst);
            body(cx)
        })
        .await
        .expect_err("nobody listens");
    assert_eq!((error.kind(), tries.load(Ordering::SeqCst)), (ErrorKind::Failed, 2));
    let http = error.into_error().expect("the adapter's own error");
    assert_eq!(http.kind(), HttpErrorKind::NoConnection);
    assert!(http.to_string().contains("refused"), "{http}");
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_carries_the_key_nowhere() {
    let elsewhere = Script::start([say(200, &[], "{}")]).await;
    let location = format!("{}/elsewhere", elsewhere.url());
    let (setup, script) = (setup(1), Script::start([say(308, &[("Location", &location)], "")]).await);
    let error = setup.call(1, post(&client(&script.url()))).await.expect_err("a redirect");
    assert_eq!(error.error().and_then(effectual::provider::http::HttpError::status), Some(308));
    assert_eq!(elsewhere.asked().len(), 0);
}

#[tokio::test]
async fn an_attempt_sends_once() {
    let (setup, script) = (setup(1), Script::start([say(200, &[], "{}"), say(200, &[], "{}")]).await);
    let client = client(&script.url());
    let error = setup
        .call(1, move |cx| {
            let client = client.clone();
            async move {
                client.post("/first").send(&cx).await?;
                Ok(client.post("/second").header("Idempotency-Key", "own").send(&cx).await?.status())
            }
        })
        .await
        .expect_err("a second request");
    assert_eq!(error.kind(), ErrorKind::Escaped, "the first was performed");
    let kind = error.error().map(effectual::provider::http::HttpError::kind);
    assert_eq!(kind, Some(HttpErrorKind::Permit(SendRefused::SecondSend)));
    assert_eq!(script.asked().len(), 1);
}

#[tokio::test]
async fn f11_a_re_send_that_differs_is_refused_before_the_network() {
    let (setup, script) = (setup(3), Script::start([Step::Close, say(200, &[], "{}")]).await);
    let client = client(&script.url());
    let error = setup
        .call(1, move |cx| {
            let client = client.clone();
            async move {
                let body = serde_json::json!({ "made_at_attempt": cx.attempt() });
                Ok(client.post("/things").json(&body).send(&cx).await?.status())
            }
        })
        .await
        .expect_err("another request");
    assert_eq!(error.kind(), ErrorKind::Escaped);
    let kind = error.error().map(effectual::provider::http::HttpError::kind);
    assert_eq!(kind, Some(HttpErrorKind::Permit(SendRefused::ChangedRequest)));
    assert_eq!(script.asked().len(), 1);
}

#[tokio::test]
async fn a_key_that_the_caller_set_needs_to_be_asked_for() {
    let (setup, script) = (setup(1), Script::start([say(200, &[], "{}")]).await);
    for (order, respect) in [(1, false), (2, true)] {
        let client = client(&script.url());
        let end = setup
            .call(order, move |cx| {
                let client = client.clone();
                async move {
                    let request = client.post("/things").header("idempotency-key", CANARY);
                    let request = if respect { request.respect_existing_key() } else { request };
                    Ok(request.send(&cx).await?.status())
                }
            })
            .await;
        if respect {
            assert_eq!(end.expect("sent"), 200);
        } else {
            let error = end.expect_err("refused");
            assert_eq!((error.kind(), script.asked().len()), (ErrorKind::Failed, 0));
            let said = error.into_error().expect("the adapter's own error").to_string();
            assert!(said.contains("`Idempotency-Key`") && said.contains("respect_existing_key"), "{said}");
            assert!(!said.contains(CANARY));
        }
    }
    assert_eq!(script.asked()[0].header("idempotency-key"), Some(CANARY));
}

#[tokio::test]
async fn the_key_goes_into_a_body_field_where_the_profile_says_so() {
    let profile = Profile::undocumented("keyed", "2026-11-30")
        .with_key_place(KeyPlace::BodyField("idempotency_key".to_owned()));
    let (setup, script) = (setup(1), Script::start([say(200, &[], "{}")]).await);
    setup.call(1, post(&client_of(profile, &script.url()))).await.expect("sent");
    let asked = &script.asked()[0];
    let body: serde_json::Value = serde_json::from_str(&asked.body).expect("JSON");
    assert_eq!(body["idempotency_key"].as_str().map(str::len), Some(36));
    assert_eq!(body["amount"], 500);
    assert_eq!(asked.header("idempotency-key"), None);
}

#[tokio::test]
async fn a_refusal_is_stored_and_replays_as_the_same_error() {
    let (setup, script) = (setup(3), Script::start([say(422, &[], r#"{"why":"canary-4242"}"#)]).await);
    let mut errors = Vec::new();
    for replayed in [false, true] {
        let error = setup.call(1, post(&client(&script.url()))).await.expect_err("a refusal");
        assert_eq!((error.kind(), error.replayed()), (ErrorKind::Refused, replayed));
        assert!(!format!("{error} {error:?}").contains(CANARY));
        errors.push(error.into_error().expect("the adapter's own error"));
    }
    assert_eq!(errors[0], errors[1]);
    assert_eq!((errors[0].status(), errors[0].body()), (Some(422), r#"{"why":"canary-4242"}"#));
    assert_eq!(script.asked().len(), 1);
}

#[tokio::test]
async fn a_rejected_credential_is_not_stored() {
    let (setup, script) = (setup(3), Script::start([say(401, &[], ""), say(200, &[], "{}")]).await);
    let body = post(&client(&script.url()));
    let error = setup.call(1, body).await.expect_err("rejected");
    assert_eq!((error.kind(), script.asked().len()), (ErrorKind::Failed, 1));
    assert_eq!(setup.call(1, post(&client(&script.url()))).await.expect("a new credential"), 200);
}

#[tokio::test]
async fn a_busy_provider_is_obeyed() {
    let busy = say(429, &[("Retry-After", "3600")], "");
    let (setup, script) = (setup(3), Script::start([busy]).await);
    let error = setup.call(1, post(&client(&script.url()))).await.expect_err("busy");
    assert_eq!(error.kind(), ErrorKind::RetryLater);
    let wait = error.retry_after().expect("a delay");
    assert!((Duration::from_secs(3590)..=Duration::from_secs(3600)).contains(&wait), "{wait:?}");
    let again = setup.call(1, post(&client(&script.url()))).await.expect_err("still busy");
    assert_eq!((again.kind(), script.asked().len()), (ErrorKind::RetryLater, 1));

    let soon = say(429, &[("retry-after-ms", "1")], "");
    let script = Script::start([soon, say(200, &[], "{}")]).await;
    assert_eq!(setup.call(2, post(&client(&script.url()))).await.expect("the second attempt"), 200);
}

#[tokio::test]
async fn a_refusal_after_a_lost_answer_is_no_outcome_unless_it_is_the_stored_one() {
    for (headers, kind) in
        [(&[][..], ErrorKind::Escaped), (&[("Idempotent-Replayed", "true")][..], ErrorKind::Refused)]
    {
        let (setup, script) = (setup(2), Script::start([Step::Close, say(402, headers, "{}")]).await);
        let error = setup.call(1, post(&client(&script.url()))).await.expect_err("refused");
        assert_eq!((error.kind(), script.asked().len()), (kind, 2));
    }
}

#[tokio::test]
async fn a_stored_unknown_is_not_sent_again() {
    let replayed = say(500, &[("Idempotent-Replayed", "true")], "");
    let (setup, script) = (setup(5), Script::start([say(500, &[], ""), replayed]).await);
    let error = setup.call(1, post(&client(&script.url()))).await.expect_err("unknown");
    assert_eq!((error.kind(), script.asked().len()), (ErrorKind::Escaped, 2));
}

#[tokio::test]
async fn a_success_that_cannot_be_read_is_never_failed() {
    let (setup, script) = (setup(1), Script::start([say(200, &[], r#"{"id":"canary-4242"}"#)]).await);
    let client = client(&script.url());
    let error = setup
        .call(1, move |cx| {
            let client = client.clone();
            async move { client.post("/things").send(&cx).await?.json::<Vec<u64>>() }
        })
        .await
        .expect_err("no list");
    assert_eq!(error.kind(), ErrorKind::Escaped);
    let http = error.into_error().expect("the adapter's own error");
    assert_eq!(http.kind(), HttpErrorKind::Undecodable);
    assert!(!format!("{http} {http:?}").contains(CANARY));
}

#[tokio::test]
async fn a_202_is_left_to_the_caller() {
    let (setup, script) = (setup(1), Script::start([say(202, &[], "{}")]).await);
    assert_eq!(setup.call(1, post(&client(&script.url()))).await.expect("accepted"), 202);
}

#[tokio::test]
async fn a_question_carries_no_key_and_says_nothing_of_the_effect() {
    let script = Script::start([say(200, &[], "[1]"), say(404, &[], ""), say(422, &[], "")]).await;
    let client = client(&script.url()).with_bearer(&Secret::new(CANARY)).expect("a header");
    let answer = client.get("/things").query("a b", "c&d").send().await.expect("an answer");
    assert_eq!(answer.json::<Vec<u64>>().expect("a list"), [1]);
    for status in [404, 422] {
        let error = client.get("/things").send().await.expect_err("no success");
        assert_eq!((error.status(), error.verdict()), (Some(status), Verdict::Unknown));
    }
    let nobody = client.with_base("http://127.0.0.1:1").expect("a base");
    let error = nobody.get("/things").send().await.expect_err("nobody");
    assert_eq!((error.kind(), error.verdict()), (HttpErrorKind::NoConnection, Verdict::Unknown));
    let asked = script.asked();
    assert!(asked[0].head.starts_with("GET /things?a+b=c%26d HTTP/1.1\r\n"), "{}", asked[0].head);
    assert_eq!(asked[0].header("authorization"), Some("Bearer canary-4242"));
    assert_eq!((asked.len(), asked[0].header("idempotency-key")), (3, None));
}
