//! What `#[derive(Failure)]` says of each shape of error.

use std::time::Duration;

use effectual::{Failure, Verdict};
use serde::{Deserialize, Serialize};

const DELAY: Duration = Duration::from_secs(7);
const RETRY: Verdict = Verdict::NotPerformed { retry: true };

#[derive(Debug, thiserror::Error, Serialize, Deserialize, Failure)]
enum MailError {
    #[error("no route")]
    #[failure(not_performed, retry)]
    NoRoute,
    #[error("disabled")]
    #[failure(not_performed)]
    Disabled,
    #[error("bounced")]
    #[failure(refused)]
    Bounced { code: u16 },
    #[error("busy")]
    #[failure(not_performed, retry, retry_after = delay)]
    Busy { reason: String, delay: Option<Duration> },
    #[error("throttled")]
    #[failure(not_performed, retry, retry_after = 1)]
    Throttled(u8, Duration),
    #[error("unavailable")]
    #[failure(unknown, retry_after = r#for)]
    Unavailable { r#for: Duration },
    #[error(transparent)]
    #[failure(transparent)]
    Http(#[from] HttpError),
    #[error("cut")]
    #[failure(transparent)]
    Cut { source: HttpError },
    #[error("timeout")]
    Timeout,
}

#[derive(Debug, Clone, thiserror::Error, Serialize, Deserialize, Failure)]
#[error("http")]
#[failure(not_performed, retry, retry_after = after)]
struct HttpError {
    after: Duration,
}

#[derive(Debug, thiserror::Error, Serialize, Deserialize, Failure)]
#[error("nothing said")]
struct Silent;

#[derive(Debug, thiserror::Error, Serialize, Deserialize, Failure)]
#[error("wrapped")]
#[failure(transparent)]
struct Wrapped(HttpError);

#[derive(Debug, thiserror::Error, Serialize, Deserialize, Failure)]
enum Impossible {}

mod facade {
    pub(crate) use effectual::__private;
}

#[derive(Debug, thiserror::Error, Serialize, Deserialize, Failure)]
#[error("by path")]
#[effectual(crate = self::facade)]
#[failure(refused)]
struct ByPath;

#[test]
fn each_variant_has_its_verdict() {
    let http = HttpError { after: DELAY };
    let cases = [
        (MailError::NoRoute, RETRY, None),
        (MailError::Disabled, Verdict::NotPerformed { retry: false }, None),
        (MailError::Bounced { code: 550 }, Verdict::Refused, None),
        (MailError::Busy { reason: "full".into(), delay: Some(DELAY) }, RETRY, Some(DELAY)),
        (MailError::Busy { reason: "full".into(), delay: None }, RETRY, None),
        (MailError::Throttled(1, DELAY), RETRY, Some(DELAY)),
        (MailError::Unavailable { r#for: DELAY }, Verdict::Unknown, Some(DELAY)),
        (MailError::Http(http.clone()), RETRY, Some(DELAY)),
        (MailError::Cut { source: http }, RETRY, Some(DELAY)),
        (MailError::Timeout, Verdict::Unknown, None),
    ];
    for (error, verdict, delay) in cases {
        assert_eq!((error.verdict(), error.retry_after()), (verdict, delay), "{error:?}");
    }
}

#[test]
fn a_struct_has_the_verdict_of_its_attribute() {
    assert_eq!((Silent.verdict(), Silent.retry_after()), (Verdict::Unknown, None));
    assert_eq!((ByPath.verdict(), ByPath.retry_after()), (Verdict::Refused, None));
    let wrapped = Wrapped(HttpError { after: DELAY });
    assert_eq!((wrapped.verdict(), wrapped.retry_after()), (RETRY, Some(DELAY)));
}

#[test]
fn an_error_without_variants_has_a_verdict() {
    fn is_failure<E: Failure>() {}
    is_failure::<Impossible>();
}
