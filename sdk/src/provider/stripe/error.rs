//! What Stripe says when it does not do as asked.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use super::{charges::Charge, payment_intents::PaymentIntent};
use crate::{
    failure::{Failure, Verdict},
    provider::{SendRefused, http::HttpError, is_code},
};

/// The error of the Stripe adapter. Can be stored, so that a refusal replays as the same value, its message with it.
///
/// Neither `Display` nor `Debug` shows the message: it may hold personal data, or the idempotency key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StripeError(Box<Inner>);

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Inner {
    http: HttpError,
    #[serde(default)]
    said: Option<Said>,
}

/// The error object of an answer.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Said {
    #[serde(rename = "type", default)]
    error_type: Option<String>,
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    decline_code: Option<String>,
    #[serde(default)]
    param: Option<String>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    charge: Option<String>,
}

#[derive(Deserialize)]
struct Envelope {
    error: Said,
}

impl StripeError {
    /// How the request ended, as HTTP; without the body.
    #[must_use]
    pub fn http(&self) -> &HttpError {
        &self.0.http
    }

    /// The status of the answer, where there was one.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.0.http.status()
    }

    /// Stripe's type of the error, such as `card_error`.
    #[must_use]
    pub fn error_type(&self) -> Option<&str> {
        self.0.said.as_ref()?.error_type.as_deref()
    }

    /// Stripe's code, such as `card_declined`.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.0.said.as_ref()?.code.as_deref()
    }

    /// The card issuer's reason, such as `insufficient_funds`.
    #[must_use]
    pub fn decline_code(&self) -> Option<&str> {
        self.0.said.as_ref()?.decline_code.as_deref()
    }

    /// The parameter that the error is about.
    #[must_use]
    pub fn param(&self) -> Option<&str> {
        self.0.said.as_ref()?.param.as_deref()
    }

    /// Stripe's own words. May hold personal data: do not log them.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.0.said.as_ref()?.message.as_deref()
    }

    /// The charge that was declined.
    #[must_use]
    pub fn charge(&self) -> Option<&str> {
        self.0.said.as_ref()?.charge.as_deref()
    }

    /// What a charge that Stripe declined says, as a look-up finds it.
    #[must_use]
    pub fn of_failed_charge(charge: &Charge) -> Self {
        let (code, charge) = (charge.failure_code.clone(), Some(charge.id.clone()));
        Self::declined(Said { code, charge, ..Said::default() })
    }

    /// What a payment intent whose confirmation Stripe declined says, as a look-up finds it; `None` where it
    /// [was not](PaymentIntent::failed).
    #[must_use]
    pub fn of_failed_intent(intent: &PaymentIntent) -> Option<Self> {
        let error = intent.last_payment_error.clone().filter(|_| intent.failed())?;
        let (code, decline_code, charge) = (error.code, error.decline_code, error.charge);
        Some(Self::declined(Said { code, decline_code, charge, ..Said::default() }))
    }

    fn declined(said: Said) -> Self {
        let said = Said { error_type: Some("card_error".to_owned()), ..said };
        Self(Box::new(Inner { http: HttpError::refused(402, said.code.as_deref()), said: Some(said) }))
    }
}

impl From<HttpError> for StripeError {
    fn from(http: HttpError) -> Self {
        let said = serde_json::from_str::<Envelope>(http.body()).ok().map(|envelope| envelope.error);
        Self(Box::new(Inner { http: http.without_body(), said }))
    }
}

impl From<SendRefused> for StripeError {
    fn from(refused: SendRefused) -> Self {
        HttpError::from(refused).into()
    }
}

impl fmt::Display for StripeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stripe: {}", self.0.http)?;
        let shown = [("type", self.error_type()), ("decline code", self.decline_code())];
        for (name, value) in shown {
            if let Some(value) = value.filter(|value| is_code(value)) {
                write!(f, " ({name} {value})")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for StripeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StripeError")
            .field("http", &self.0.http)
            .field("error_type", &self.error_type().filter(|text| is_code(text)))
            .field("decline_code", &self.decline_code().filter(|text| is_code(text)))
            .finish_non_exhaustive()
    }
}

impl std::error::Error for StripeError {}

impl Failure for StripeError {
    fn verdict(&self) -> Verdict {
        self.0.http.verdict()
    }

    fn retry_after(&self) -> Option<Duration> {
        self.0.http.retry_after()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{Answer, Profile};

    fn error(status: u16, body: &str) -> StripeError {
        let profile = Profile::bundled("stripe").expect("bundled");
        let read = profile.judge(&Answer::new(status).body(body.as_bytes()));
        let verdict = read.failure().expect("a failure");
        HttpError::answered(status, body.as_bytes(), read, verdict).into()
    }

    #[test]
    fn every_answer_has_its_verdict() {
        let body = |kind: &str| format!(r#"{{"error":{{"type":"{kind}"}}}}"#);
        let not_performed = |retry| Verdict::NotPerformed { retry };
        for (status, kind, verdict) in [
            (400, "invalid_request_error", Verdict::Refused),
            (400, "idempotency_error", Verdict::Unknown),
            (402, "card_error", Verdict::Refused),
            (401, "invalid_request_error", not_performed(false)),
            (403, "invalid_request_error", not_performed(false)),
            (404, "invalid_request_error", not_performed(false)),
            (409, "invalid_request_error", Verdict::Unknown),
            (424, "api_error", Verdict::Unknown),
            (429, "rate_limit_error", not_performed(true)),
            (500, "api_error", Verdict::Unknown),
        ] {
            assert_eq!(error(status, &body(kind)).verdict(), verdict, "{status} {kind}");
        }
    }

    #[test]
    fn a_refusal_is_stored_whole_and_shown_without_its_message() {
        let declined = error(
            402,
            r#"{"error":{"type":"card_error","code":"card_declined","decline_code":"insufficient_funds",
                "message":"canary","param":"canary","charge":"ch_1","payment_intent":{"id":"pi"}}}"#,
        );
        let stored = serde_json::to_string(&declined).expect("stored");
        let replayed: StripeError = serde_json::from_str(&stored).expect("replayed");
        assert_eq!(replayed, declined);
        assert_eq!(replayed.code(), Some("card_declined"));
        assert_eq!(replayed.decline_code(), Some("insufficient_funds"));
        assert_eq!((replayed.message(), replayed.charge()), (Some("canary"), Some("ch_1")));
        assert_eq!(replayed.http().body(), "");
        let shown = format!("{replayed} {replayed:?}");
        assert!(!shown.contains("canary"), "{shown}");
        assert!(shown.contains("status 402") && shown.contains("card_declined"), "{shown}");
    }

    #[test]
    fn a_text_in_the_place_of_a_code_is_not_shown() {
        let odd = error(402, r#"{"error":{"type":"can ary","code":"can ary","decline_code":"can ary"}}"#);
        assert!(!format!("{odd}{odd:?}").contains("can ary"));
    }
}
