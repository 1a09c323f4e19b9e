//! Every line of the general rule and of the bundled profiles' own rules, as a table.

use super::*;
use AnswerMeaning::{KeyInFlight, KeyReused, NotPerformed, NotPerformedRetry, Performed, Refused, Unknown};

fn bundled(name: &str) -> Profile {
    Profile::bundled(name).expect("bundled")
}

/// A profile that documents nothing of its answers.
fn plain() -> Profile {
    Profile::undocumented("plain", "2026-11-30")
}

fn meaning(profile: &Profile, status: u16, body: &str) -> AnswerMeaning {
    profile.judge(&Answer::new(status).body(body.as_bytes())).meaning
}

#[test]
fn the_general_rule_reads_every_status() {
    for status in 100..=599 {
        let expected = match status {
            200..=299 => Performed,
            429 => NotPerformedRetry,
            401 | 403 | 404 | 405 | 407 => NotPerformed,
            408 | 409 | 425 => Unknown,
            400..=499 => Refused,
            _ => Unknown,
        };
        assert_eq!(meaning(&plain(), status, ""), expected, "{status}");
    }
}

#[test]
fn a_meaning_becomes_a_verdict() {
    let verdict = |status| plain().judge(&Answer::new(status)).failure();
    assert_eq!(verdict(200), None);
    assert_eq!(verdict(202), None);
    assert_eq!(verdict(301), Some(Verdict::Unknown));
    assert_eq!(verdict(401), Some(Verdict::NotPerformed { retry: false }));
    assert_eq!(verdict(422), Some(Verdict::Refused));
    assert_eq!(verdict(429), Some(Verdict::NotPerformed { retry: true }));
    assert_eq!(verdict(503), Some(Verdict::Unknown));
    for means in [KeyInFlight, KeyReused] {
        let profile = plain().with_answer(AnswerRule::new(means).status(400));
        assert_eq!(profile.judge(&Answer::new(400)).failure(), Some(Verdict::Unknown));
    }
}

#[test]
fn the_bundled_rules_read_the_providers_codes() {
    for (profile, status, body, expected) in [
        ("stripe", 400, r#"{"error":{"type":"idempotency_error"}}"#, KeyReused),
        ("stripe", 409, r#"{"error":{"code":"idempotency_key_in_use"}}"#, KeyInFlight),
        ("stripe", 409, r#"{"error":{"type":"invalid_request_error"}}"#, Unknown),
        ("stripe", 402, r#"{"error":{"type":"card_error","code":"card_declined"}}"#, Refused),
        ("stripe", 424, r#"{"error":{"type":"api_error"}}"#, Unknown),
        ("stripe", 400, "<html>", Unknown),
        ("stripe", 400, r#"{"error":{"type":"idempot"#, Unknown),
        ("stripe", 400, r#"{"message":"of a gateway"}"#, Unknown),
        ("stripe", 404, "<html>", NotPerformed),
        ("stripe-v2", 400, r#"{"error":{"type":"idempotency_error"}}"#, KeyReused),
        ("resend", 409, r#"{"name":"invalid_idempotent_request"}"#, KeyReused),
        ("resend", 409, r#"{"name":"concurrent_idempotent_requests"}"#, KeyInFlight),
        ("resend", 409, "{}", Unknown),
        ("resend", 422, r#"{"name":"validation_error"}"#, Refused),
        ("square", 400, r#"{"errors":[{"code":"IDEMPOTENCY_KEY_REUSED"}]}"#, KeyReused),
        ("square", 400, r#"{"errors":[{"code":"CARD_DECLINED"}]}"#, Refused),
        ("adyen", 422, r#"{"errorCode":"704"}"#, KeyInFlight),
        ("adyen", 409, r#"{"errorCode":"704"}"#, KeyInFlight),
        ("adyen", 503, r#"{"errorCode":"703"}"#, KeyInFlight),
        ("paypal", 409, r#"{"details":[{"issue":"PREVIOUS_REQUEST_IN_PROGRESS"}]}"#, KeyInFlight),
        ("paypal", 422, r#"{"details":[{"issue":"INSTRUMENT_DECLINED"}]}"#, Refused),
        ("paypal", 422, r#"{"details":[{"issue":"OTHER"}]}"#, Unknown),
        ("checkout", 409, "", KeyInFlight),
        ("shopify", 200, r#"{"data":{"x":{"userErrors":[]}}}"#, Performed),
        (
            "shopify",
            200,
            r#"{"data":{"x":{"userErrors":[{"code":"IDEMPOTENCY_CONCURRENT_REQUEST"}]}}}"#,
            KeyInFlight,
        ),
        (
            "shopify",
            200,
            r#"{"data":{"x":{"userErrors":[{"code":"IDEMPOTENCY_KEY_PARAMETER_MISMATCH"}]}}}"#,
            KeyReused,
        ),
        ("azure", 409, "", KeyInFlight),
        ("azure", 400, "", Unknown),
    ] {
        assert_eq!(meaning(&bundled(profile), status, body), expected, "{profile} {status} {body}");
    }
}

#[test]
fn a_header_decides_where_the_profile_says_so_but_never_over_a_success() {
    let retry = |status, value| {
        let answer = Answer::new(status).header("stripe-should-retry", value);
        let answer = answer.body(br#"{"error":{"type":"invalid_request_error"}}"#);
        bundled("stripe").judge(&answer).meaning
    };
    assert_eq!(retry(429, "true"), NotPerformedRetry);
    assert_eq!(retry(429, "false"), NotPerformed);
    assert_eq!(retry(400, "true"), Unknown);
    assert_eq!(retry(400, "false"), Refused);
    assert_eq!(retry(500, "false"), Unknown);
    assert_eq!(retry(200, "true"), Performed);
    let transient = Answer::new(422).header("Transient-Error", "true").body(b"{}");
    assert_eq!(bundled("adyen").judge(&transient).meaning, Unknown);
}

#[test]
fn a_replay_is_the_stored_answer_only_where_the_profile_says_so() {
    let judge = |profile: &Profile, status, body: &'static str| {
        profile.judge(&Answer::new(status).header("idempotent-replayed", "true").body(body.as_bytes()))
    };
    let stripe = bundled("stripe");
    for (status, meaning) in [(200, Performed), (402, Refused), (404, NotPerformed), (500, Unknown)] {
        let verdict = judge(&stripe, status, r#"{"error":{"type":"card_error"}}"#);
        assert_eq!((verdict.meaning, verdict.provider_replay), (meaning, true), "{status}");
    }
    assert!(!judge(&stripe, 400, r#"{"error":{"type":"idempotency_error"}}"#).provider_replay);
    assert!(!stripe.judge(&Answer::new(200)).provider_replay);
    for failed_first in [FailedFirst::Reexecuted, FailedFirst::Undocumented] {
        let other = stripe.clone().with_failed_first(failed_first);
        assert!(judge(&other, 200, "").provider_replay);
        assert!(!judge(&other, 402, "{}").provider_replay);
    }
    assert!(!judge(&plain(), 200, "").provider_replay, "no marker is known");
}

#[test]
fn the_wait_comes_from_the_answer_or_else_from_the_profile() {
    let checkout = bundled("checkout");
    let wait = |answer: Answer<'_>| checkout.judge(&answer).retry_after.map(|wait| wait.as_secs());
    assert_eq!(wait(Answer::new(409)), Some(30));
    assert_eq!(wait(Answer::new(409).header("retry-after", "40")), Some(40));
    assert_eq!(wait(Answer::new(429)), None);
    assert_eq!(wait(Answer::new(429).header("retry-after", "3")), Some(3));
    assert_eq!(wait(Answer::new(503).header("retry-after", "3")), Some(3));
    assert_eq!(
        wait(Answer::new(400).header("retry-after", "3")),
        None,
        "a final refusal has no next attempt"
    );
}

#[test]
fn only_a_text_that_looks_like_a_code_is_shown() {
    let code = |body: &str| bundled("stripe").judge(&Answer::new(402).body(body.as_bytes())).code;
    assert_eq!(code(r#"{"error":{"code":"card_declined"}}"#), Some("card_declined".to_owned()));
    assert_eq!(
        code(r#"{"error":{"code":"Jane Doe, 4242","type":"card_error"}}"#),
        Some("card_error".to_owned())
    );
    assert_eq!(code("{}"), None);
}

#[test]
fn the_first_rule_that_fits_counts_and_overrides_come_first() {
    let profile = bundled("paypal").with_answer(AnswerRule::new(Refused).status(422));
    assert_eq!(meaning(&profile, 422, "{}"), Refused);
    let performed = plain().with_answer(AnswerRule::new(Performed).status(409));
    assert_eq!(meaning(&performed, 409, ""), Performed);
}
