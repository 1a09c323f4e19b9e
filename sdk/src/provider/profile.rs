//! What a provider documents, as dated data that a user can override.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::key::KeyForm;
use crate::descriptor::RecoveryClass;

/// Where a provider takes the idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeyPlace {
    /// In a header of this name.
    Header(String),
    /// In a top-level field of this name, of a form or a JSON body.
    BodyField(String),
    /// In a parameter of this name of the query.
    Query(String),
    /// In a place that an adapter cannot fill in by itself, described here: the body puts
    /// [`idempotency_key`](crate::EffectContext::idempotency_key) there.
    Elsewhere(String),
    /// Nowhere: the provider does not deduplicate.
    Nowhere,
}

/// What a provider answers to a key that it is still working on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InFlightMeaning {
    /// It says so, and the same key may be sent again.
    Refuses,
    /// Not documented: a re-send waits until no earlier attempt can act.
    Undocumented,
}

/// What a provider does with a key whose first attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailedFirst {
    /// It replays the stored failure, so that sending again cannot help.
    Replayed,
    /// It runs the request again.
    Reexecuted,
    /// Not documented.
    Undocumented,
}

/// What a provider documents of its idempotency, as of a day.
///
/// Profiles are data, because providers change their rules: start from the shipped one, change what is wrong, and give it
/// to [`ExecutorBuilder::profile`](crate::ExecutorBuilder::profile).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Profile {
    /// [`Provider::NAME`](super::Provider::NAME).
    pub name: String,
    /// The day on which the facts were looked up, `YYYY-MM-DD`.
    pub as_of: String,
    /// What a reader should know and no other field says.
    #[serde(default)]
    pub note: Option<String>,
    /// Where the key goes.
    pub key_place: KeyPlace,
    /// How the key is written.
    #[serde(default)]
    pub key_form: KeyForm,
    /// The longest key that the provider takes, in characters.
    pub key_len_max: usize,
    /// For how long the provider deduplicates on a key, in seconds; `None` if it does not say.
    pub window_s: Option<u64>,
    /// What it answers to a key in flight.
    pub in_flight: InFlightMeaning,
    /// How long to wait before a key in flight is sent again, in seconds, where the provider names a time and its answer
    /// does not.
    #[serde(default)]
    pub in_flight_wait_s: Option<u64>,
    /// What it does after a failed first attempt.
    pub failed_first: FailedFirst,
    /// The response header that marks a replay, and its value.
    pub replay_marker: Option<(String, String)>,
    /// How long after an attempt a look-up may still miss it, in milliseconds.
    #[serde(default)]
    pub settle_delay_ms: u64,
    /// The recovery class of effects at this provider that declare none.
    pub on_unknown: RecoveryClass,
    /// Where the JSON body of an answer has its error codes: paths like `/error/code`, where `*` stands for any one name
    /// or index. Every code found there is compared with the rules.
    #[serde(default)]
    pub error_code_at: Vec<String>,
    /// How HTTP answers are read, where that differs from the general rule; the first that fits counts.
    #[serde(default)]
    pub answers: Vec<AnswerRule>,
}

/// One line of a profile: answers that look like this mean that.
///
/// All conditions given must hold. A rule that names neither a status nor a code says nothing of 2xx answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AnswerRule {
    /// The status, where the rule looks at it.
    #[serde(default)]
    pub status: Option<u16>,
    /// The error code or type in the body, where the rule looks at it.
    #[serde(default)]
    pub code: Option<String>,
    /// A header and its value, where the rule looks at one.
    #[serde(default)]
    pub header: Option<(String, String)>,
    /// What it means.
    pub means: AnswerMeaning,
}

/// What an answer means for the attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnswerMeaning {
    /// Performed.
    Performed,
    /// Not performed; another attempt makes sense.
    NotPerformedRetry,
    /// Not performed; another attempt by itself does not help.
    NotPerformed,
    /// Refused, finally.
    Refused,
    /// Unknown.
    Unknown,
    /// The key is in flight: an earlier attempt of ours is still being worked on. Unknown, and worth another attempt.
    KeyInFlight,
    /// The key was used with another body: an earlier request of ours arrived. Unknown, never refused.
    KeyReused,
}

/// A profile that contradicts itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the profile `{name}` is wrong: {rule}")]
pub struct ProfileError {
    pub(super) name: String,
    pub(super) rule: String,
}

impl Profile {
    /// The profile of a provider that documents nothing: the key goes nowhere, and an unknown outcome is held.
    #[must_use]
    pub fn undocumented(name: impl Into<String>, as_of: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            as_of: as_of.into(),
            note: None,
            key_place: KeyPlace::Nowhere,
            key_form: KeyForm::Uuid,
            key_len_max: KeyForm::Uuid.characters(),
            window_s: None,
            in_flight: InFlightMeaning::Undocumented,
            in_flight_wait_s: None,
            failed_first: FailedFirst::Undocumented,
            replay_marker: None,
            settle_delay_ms: 0,
            on_unknown: RecoveryClass::Hold,
            error_code_at: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// For how long the provider deduplicates on a key.
    #[must_use]
    pub fn window(&self) -> Option<Duration> {
        self.window_s.map(Duration::from_secs)
    }

    /// How long after an attempt a look-up may still miss it.
    #[must_use]
    pub fn settle_delay(&self) -> Duration {
        Duration::from_millis(self.settle_delay_ms)
    }

    /// How long to wait before a key in flight is sent again, where the answer does not say.
    #[must_use]
    pub fn in_flight_wait(&self) -> Option<Duration> {
        self.in_flight_wait_s.map(Duration::from_secs)
    }

    /// Checks that the profile does not contradict itself.
    ///
    /// # Errors
    /// [`ProfileError`], naming the rule.
    pub fn check(&self) -> Result<(), ProfileError> {
        match self.contradiction() {
            Some(rule) => Err(ProfileError { name: self.name.clone(), rule }),
            None => Ok(()),
        }
    }

    fn contradiction(&self) -> Option<String> {
        let resend = self.on_unknown == RecoveryClass::Resend;
        let (needs, takes) = (self.key_form.characters(), self.key_len_max);
        if needs > takes {
            return Some(format!("its key form needs {needs} characters and the provider takes {takes}"));
        }
        if resend && self.window_s.is_none() {
            return Some("`resend` needs a documented window (`window_s`, or `with_window`)".to_owned());
        }
        if resend && self.key_place == KeyPlace::Nowhere {
            return Some("`resend` needs a place for the key (`key_place`)".to_owned());
        }
        if self.key_place.name().is_some_and(str::is_empty) {
            return Some("the place for the key needs a name (`key_place`)".to_owned());
        }
        if let Some(path) = self.error_code_at.iter().find(|path| !path.starts_with('/')) {
            return Some(format!("a path to an error code starts with `/`, and `{path}` does not"));
        }
        if self.answers.iter().any(AnswerRule::is_empty) {
            return Some("a rule for answers needs a status, a code or a header".to_owned());
        }
        if self.error_code_at.is_empty() && self.answers.iter().any(|rule| rule.code.is_some()) {
            return Some(
                "a rule looks at an error code, and `error_code_at` does not say where one is".to_owned(),
            );
        }
        None
    }
}

impl KeyPlace {
    /// The name of the header, field or parameter; `None` where the key goes nowhere.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Header(name) | Self::BodyField(name) | Self::Query(name) | Self::Elsewhere(name) => {
                Some(name)
            }
            Self::Nowhere => None,
        }
    }
}
