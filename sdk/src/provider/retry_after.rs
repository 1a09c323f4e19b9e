//! How long a provider asks us to wait.

use std::time::{Duration, SystemTime};

use super::answer::Answer;
use crate::clock;

/// The longest wait that is taken from an answer: a provider's mistake must not put an effect off for ever.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads `retry-after-ms`, or else `Retry-After` as seconds or as a date. What cannot be read counts as absent, a date in
/// the past as no wait, and everything is bounded by [`RETRY_AFTER_MAX`].
pub(super) fn retry_after(answer: &Answer<'_>) -> Option<Duration> {
    let milliseconds = answer.value_of("retry-after-ms").and_then(number).map(Duration::from_millis);
    let wait = milliseconds.or_else(|| {
        let value = answer.value_of("retry-after")?;
        number(value).map(Duration::from_secs).or_else(|| until(answer, value))
    })?;
    Some(wait.min(RETRY_AFTER_MAX))
}

/// Digits only: a sign or a fraction is no delay. One too large for the type is as large as they come.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

/// By the provider's own clock where the answer has its date: ours may differ.
fn until(answer: &Answer<'_>, date: &str) -> Option<Duration> {
    let date = httpdate::parse_http_date(date).ok()?;
    let own = || SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(clock::wall_ms()).unwrap_or(0));
    let now = answer.value_of("date").and_then(|now| httpdate::parse_http_date(now).ok()).unwrap_or_else(own);
    Some(date.duration_since(now).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(headers: &[(&str, &str)]) -> Option<Duration> {
        let answer =
            headers.iter().fold(Answer::new(429), |answer, (name, value)| answer.header(name, value));
        retry_after(&answer)
    }

    #[test]
    fn every_spelling_is_read_and_bounded() {
        let seconds = |count| Some(Duration::from_secs(count));
        for (value, expected) in [
            ("0", seconds(0)),
            ("7", seconds(7)),
            (" 7 ", seconds(7)),
            ("86401", Some(RETRY_AFTER_MAX)),
            ("99999999999999999999999999", Some(RETRY_AFTER_MAX)),
            ("-1", None),
            ("+1", None),
            ("1.5", None),
            ("", None),
            ("soon", None),
        ] {
            assert_eq!(wait(&[("Retry-After", value)]), expected, "{value}");
        }
        assert_eq!(
            wait(&[("retry-after-ms", "250"), ("Retry-After", "7")]),
            Some(Duration::from_millis(250))
        );
        assert_eq!(wait(&[("retry-after-ms", "x"), ("Retry-After", "7")]), seconds(7));
        assert_eq!(wait(&[]), None);
    }

    #[test]
    fn a_date_counts_from_the_providers_own_clock() {
        let date = ("Date", "Mon, 30 Nov 2026 12:00:00 GMT");
        assert_eq!(
            wait(&[date, ("Retry-After", "Mon, 30 Nov 2026 12:01:30 GMT")]),
            Some(Duration::from_secs(90))
        );
        assert_eq!(wait(&[date, ("Retry-After", "Mon, 30 Nov 2026 11:00:00 GMT")]), Some(Duration::ZERO));
        assert_eq!(wait(&[date, ("Retry-After", "Fri, 30 Nov 2096 12:00:00 GMT")]), Some(RETRY_AFTER_MAX));
        assert_eq!(wait(&[("Retry-After", "Sun, 06 Nov 1994 08:49:37 GMT")]), Some(Duration::ZERO));
    }
}
