//! What an HTTP answer means for an attempt. Pure.

use std::time::Duration;

use super::{
    answer::{Answer, codes_at},
    profile::{AnswerMeaning, AnswerRule, FailedFirst, Profile},
    retry_after::retry_after,
};
use crate::failure::Verdict;

/// How a profile reads an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnswerVerdict {
    /// What it means.
    pub meaning: AnswerMeaning,
    /// How long to wait before the next attempt, where the answer or the profile says so. At the most
    /// [`RETRY_AFTER_MAX`](super::RETRY_AFTER_MAX).
    pub retry_after: Option<Duration>,
    /// Whether this is the answer that the provider had stored for our key. An adapter then calls
    /// [`mark_provider_replay`](crate::EffectContext::mark_provider_replay): a stored refusal answers the effect and
    /// not just the attempt, and a stored unknown is not changed by sending again.
    pub provider_replay: bool,
    /// The provider's error code, where the profile says where it is and it looks like one.
    pub code: Option<String>,
}

impl AnswerVerdict {
    /// What an error made of this answer says; `None` if the effect was performed.
    #[must_use]
    pub fn failure(&self) -> Option<Verdict> {
        match self.meaning {
            AnswerMeaning::Performed => None,
            AnswerMeaning::NotPerformedRetry => Some(Verdict::NotPerformed { retry: true }),
            AnswerMeaning::NotPerformed => Some(Verdict::NotPerformed { retry: false }),
            AnswerMeaning::Refused => Some(Verdict::Refused),
            AnswerMeaning::Unknown | AnswerMeaning::KeyInFlight | AnswerMeaning::KeyReused => {
                Some(Verdict::Unknown)
            }
        }
    }
}

impl Profile {
    /// Reads a whole answer to a request that carried our key: the first of the profile's rules that fits, else the
    /// general rule for its status.
    ///
    /// The general rule: 2xx is performed; 429 is not performed and worth another attempt; 401, 403, 404, 405 and 407
    /// are not performed; 408, 409, 425, 3xx and 5xx are unknown; every other 4xx is a final refusal, unless the profile
    /// reads codes and the body has none. A 202 counts as performed: the caller looks at
    /// the status where it means that the work has only begun.
    #[must_use]
    pub fn judge(&self, answer: &Answer<'_>) -> AnswerVerdict {
        let codes = self.codes(answer);
        let rule = self.answers.iter().find(|rule| rule.fits(answer, &codes));
        let meaning = match rule {
            Some(rule) => rule.means,
            None => match general(answer.status) {
                // The code that would have said more is missing: a gateway answered, or the body was damaged.
                AnswerMeaning::Refused if self.reads_codes() && codes.is_empty() => AnswerMeaning::Unknown,
                meaning => meaning,
            },
        };
        let final_end = matches!(meaning, AnswerMeaning::Performed | AnswerMeaning::Refused);
        let in_flight = if meaning == AnswerMeaning::KeyInFlight { self.in_flight_wait() } else { None };
        AnswerVerdict {
            meaning,
            retry_after: if final_end { None } else { retry_after(answer).or(in_flight) },
            provider_replay: self.is_replay(answer, meaning),
            code: codes.into_iter().find(|code| is_code(code)),
        }
    }

    fn reads_codes(&self) -> bool {
        self.answers.iter().any(|rule| rule.code.is_some())
    }

    fn codes(&self, answer: &Answer<'_>) -> Vec<String> {
        if self.error_code_at.is_empty() {
            return Vec::new();
        }
        let body = answer.json().unwrap_or_default();
        self.error_code_at.iter().flat_map(|path| codes_at(&body, path)).collect()
    }

    /// A marked failure is the stored answer to our key only where the provider stores failures.
    fn is_replay(&self, answer: &Answer<'_>, meaning: AnswerMeaning) -> bool {
        let marked = self.replay_marker.as_ref().is_some_and(|marker| answer.has(marker));
        marked
            && match meaning {
                AnswerMeaning::Performed => true,
                AnswerMeaning::KeyInFlight | AnswerMeaning::KeyReused => false,
                _ => self.failed_first == FailedFirst::Replayed,
            }
    }
}

impl AnswerRule {
    fn fits(&self, answer: &Answer<'_>, codes: &[String]) -> bool {
        let success = (200..300).contains(&answer.status);
        let named = self.status.is_some() || self.code.is_some();
        !(self.is_empty() || success && !named)
            && self.status.is_none_or(|status| status == answer.status)
            && self.code.as_ref().is_none_or(|code| codes.contains(code))
            && self.header.as_ref().is_none_or(|header| answer.has(header))
    }
}

fn general(status: u16) -> AnswerMeaning {
    match status {
        200..=299 => AnswerMeaning::Performed,
        429 => AnswerMeaning::NotPerformedRetry,
        401 | 403 | 404 | 405 | 407 => AnswerMeaning::NotPerformed,
        408 | 409 | 425 => AnswerMeaning::Unknown,
        400..=499 => AnswerMeaning::Refused,
        _ => AnswerMeaning::Unknown,
    }
}

/// Codes are shown in errors: a text that does not look like one may be anything.
pub(super) fn is_code(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':');
    (1..=64).contains(&text.len()) && text.bytes().all(plain)
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
