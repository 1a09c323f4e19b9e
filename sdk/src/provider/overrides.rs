//! How a user changes one fact of a profile.

use std::time::Duration;

use super::{
    key::KeyForm,
    profile::{AnswerMeaning, AnswerRule, FailedFirst, InFlightMeaning, KeyPlace, Profile},
};
use crate::descriptor::RecoveryClass;

/// Each changes one fact and leaves the others. [`Profile::check`] says whether the whole still holds together.
impl Profile {
    /// Changes the day on which the facts were looked up, `YYYY-MM-DD`.
    #[must_use]
    pub fn with_as_of(mut self, as_of: impl Into<String>) -> Self {
        self.as_of = as_of.into();
        self
    }

    /// Changes where the key goes.
    #[must_use]
    pub fn with_key_place(mut self, place: KeyPlace) -> Self {
        self.key_place = place;
        self
    }

    /// Changes how the key is written, and the longest key that the provider takes, in characters.
    ///
    /// Effects that have a key keep it.
    #[must_use]
    pub fn with_key_form(mut self, form: KeyForm, len_max: usize) -> Self {
        self.key_form = form;
        self.key_len_max = len_max;
        self
    }

    /// Changes for how long the provider deduplicates on a key, in whole seconds; `None` if it does not say.
    #[must_use]
    pub fn with_window(mut self, window: impl Into<Option<Duration>>) -> Self {
        self.window_s = window.into().map(|window| window.as_secs());
        self
    }

    /// Changes what the provider answers to a key in flight, and how long to wait then, in whole seconds, where its
    /// answer does not say.
    #[must_use]
    pub fn with_in_flight(mut self, meaning: InFlightMeaning, wait: impl Into<Option<Duration>>) -> Self {
        self.in_flight = meaning;
        self.in_flight_wait_s = wait.into().map(|wait| wait.as_secs());
        self
    }

    /// Changes what the provider does after a failed first attempt.
    #[must_use]
    pub fn with_failed_first(mut self, failed_first: FailedFirst) -> Self {
        self.failed_first = failed_first;
        self
    }

    /// Changes the response header that marks a replay, and its value.
    #[must_use]
    pub fn with_replay_marker(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.replay_marker = Some((name.into(), value.into()));
        self
    }

    /// Changes how long after an attempt a look-up may still miss it, in whole milliseconds.
    #[must_use]
    pub fn with_settle_delay(mut self, delay: Duration) -> Self {
        self.settle_delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// Changes the recovery class of effects that declare none.
    #[must_use]
    pub fn with_on_unknown(mut self, class: RecoveryClass) -> Self {
        self.on_unknown = class;
        self
    }

    /// Adds a place where the JSON body of an answer has its error code, such as `/error/code`.
    #[must_use]
    pub fn with_error_code_at(mut self, path: impl Into<String>) -> Self {
        self.error_code_at.push(path.into());
        self
    }

    /// Puts a rule before those that are there.
    #[must_use]
    pub fn with_answer(mut self, rule: AnswerRule) -> Self {
        self.answers.insert(0, rule);
        self
    }
}

impl AnswerRule {
    /// A rule without conditions: add at least one.
    #[must_use]
    pub fn new(means: AnswerMeaning) -> Self {
        Self { status: None, code: None, header: None, means }
    }

    /// The rule is for answers with this status.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// The rule is for answers with this error code or type in the body.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// The rule is for answers with this header; upper and lower case are equal.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.header = Some((name.into(), value.into()));
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.status.is_none() && self.code.is_none() && self.header.is_none()
    }
}
