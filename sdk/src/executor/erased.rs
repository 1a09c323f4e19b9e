//! A call without its types: what the generic front hands to the one executor, and what it gets back.

use std::{
    any::Any,
    future::Future,
    ops::{Deref, DerefMut},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use serde::Serialize;

use super::attached::Turns;
use crate::{
    context::EffectContext,
    error::{EffectError, ErrorKind, ProviderCalled},
    failure::{Failure, Found, Outcome, Polled, Verdict},
    ledger::{
        EffectRecord, LedgerError,
        record::{AbsentReason, OutcomeBody, Payload},
        resolution::REASON_CODEC,
    },
    secret,
};

/// The encoding of outcomes.
const CODEC: &str = "json/1";
/// The same, with a [`Secret`](crate::Secret) in it: stored only if it is sealed.
const SECRET_CODEC: &str = "secret-json/1";
/// What is stored in the place of such a value where nothing seals it: nothing.
const WITHHELD_CODEC: &str = "withheld/1";

pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
pub(crate) type OwnBody = Arc<dyn Fn(EffectContext) -> BoxFuture<BodyEnd> + Send + Sync>;
pub(crate) type LookUpBody =
    Arc<dyn Fn(EffectContext) -> BoxFuture<Found<OutcomeBody, OutcomeBody>> + Send + Sync>;

pub(crate) type PollBody =
    Arc<dyn Fn(EffectContext, String) -> BoxFuture<Polled<OutcomeBody, OutcomeBody>> + Send + Sync>;

/// What performs the effect.
#[derive(Clone)]
pub(crate) enum Body {
    /// It runs on a task of its own.
    Own(OwnBody),
    /// It runs in the caller's task.
    Attached(Turns),
    /// Nobody here can perform it.
    Absent,
}

/// How a body ended.
pub(crate) enum BodyEnd {
    /// With a value.
    Done(OutcomeBody),
    /// With an error that says what it means.
    Failed(BodyFailure),
    /// It panicked, took too long, or was aborted: nobody knows.
    Lost(&'static str),
    /// It was never polled.
    NotStarted,
}

pub(crate) struct BodyFailure {
    pub(crate) verdict: Verdict,
    pub(crate) retry_after: Option<Duration>,
    /// The error for storing, where it is a refusal.
    pub(crate) stored: Option<OutcomeBody>,
    /// The `EffectError<E>` itself.
    pub(crate) error: Box<dyn Any + Send>,
}

/// An answer, and where it is kept.
pub(crate) enum Answer {
    /// In the row, which has an outcome.
    InRow(Arc<EffectRecord>),
    /// Nowhere else.
    Here(OutcomeBody),
}

impl Answer {
    fn body(&self) -> &OutcomeBody {
        const NONE: &OutcomeBody = &OutcomeBody::Absent(AbsentReason::Unencodable);
        match self {
            Self::InRow(record) => record.outcome.as_ref().map_or(NONE, |outcome| &outcome.body),
            Self::Here(body) => body,
        }
    }
}

/// How a call ended.
pub(crate) enum CallEnd {
    /// The stored outcome.
    Success { answer: Answer, replayed: bool },
    /// The stored refusal.
    Refusal { answer: Answer, replayed: bool },
    /// Anything else.
    Error(CallError),
}

/// Any other end of a call. Behind one pointer: most calls have none, and whatever may hold one stays small.
pub(crate) struct CallError(Box<Parts>);

pub(crate) struct Parts {
    pub(crate) kind: ErrorKind,
    pub(crate) called: Option<ProviderCalled>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) handle: Option<String>,
    pub(crate) detail: Option<std::borrow::Cow<'static, str>>,
    pub(crate) ledger: Option<LedgerError>,
    /// The body's `EffectError<E>`.
    pub(crate) error: Option<Box<dyn Any + Send>>,
}

impl CallError {
    pub(crate) fn new(kind: ErrorKind) -> Self {
        Self(Box::new(Parts {
            kind,
            called: None,
            retry_after: None,
            handle: None,
            detail: None,
            ledger: None,
            error: None,
        }))
    }

    pub(crate) fn detail(mut self, detail: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    pub(crate) fn retry_after(mut self, delay: Option<Duration>) -> Self {
        self.retry_after = delay;
        self
    }

    pub(crate) fn called(mut self, called: ProviderCalled) -> Self {
        self.called = Some(called);
        self
    }

    pub(crate) fn ledger(mut self, error: LedgerError) -> Self {
        self.ledger = Some(error);
        self
    }

    pub(crate) fn error(mut self, error: Option<Box<dyn Any + Send>>) -> Self {
        self.error = error;
        self
    }

    /// With the body's error of another end.
    pub(crate) fn error_of(self, other: Self) -> Self {
        self.error(other.0.error)
    }
}

impl Deref for CallError {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl DerefMut for CallError {
    fn deref_mut(&mut self) -> &mut Parts {
        &mut self.0
    }
}

impl CallEnd {
    /// The same end with another value.
    pub(crate) fn with_body(self, body: OutcomeBody) -> Self {
        let answer = Answer::Here(body);
        match self {
            Self::Success { replayed, .. } => Self::Success { answer, replayed },
            Self::Refusal { replayed, .. } => Self::Refusal { answer, replayed },
            Self::Error(error) => Self::Error(error),
        }
    }
}

impl From<CallError> for CallEnd {
    fn from(error: CallError) -> Self {
        Self::Error(error)
    }
}

/// Encodes a value for the ledger. One that cannot be encoded is recorded as such: the effect was performed.
pub(crate) fn encode(value: &impl Serialize) -> OutcomeBody {
    match secret::for_ledger(|| serde_json::to_vec(value)) {
        (Ok(bytes), has_secret) => {
            let codec = if has_secret { SECRET_CODEC } else { CODEC };
            OutcomeBody::Payload(Payload { codec: codec.into(), bytes })
        }
        (Err(_), _) => OutcomeBody::Absent(AbsentReason::Unencodable),
    }
}

/// Whether there is a secret in it.
pub(crate) fn has_secret(body: &OutcomeBody) -> bool {
    matches!(body, OutcomeBody::Payload(payload) if payload.codec == SECRET_CODEC)
}

/// Whether it is a value that this program reads as it is, without a secret in it.
pub(crate) fn is_plain(body: &OutcomeBody) -> bool {
    matches!(body, OutcomeBody::Payload(payload) if payload.codec == CODEC)
}

/// What is stored of a value with a secret in it where nothing seals it.
pub(crate) fn withheld() -> OutcomeBody {
    OutcomeBody::Payload(Payload { codec: WITHHELD_CODEC.into(), bytes: Vec::new() })
}

/// Decodes a stored value; `None` if this binary cannot.
fn decode<T: serde::de::DeserializeOwned>(payload: &Payload) -> Option<T> {
    if payload.codec != CODEC && payload.codec != SECRET_CODEC {
        return None;
    }
    serde_json::from_slice(&payload.bytes).ok()
}

/// The end of a body, from its typed result.
pub(crate) fn body_end<T: Outcome, E: Failure>(result: crate::Result<T, E>) -> BodyEnd {
    match result {
        Ok(value) => BodyEnd::Done(encode(&value)),
        Err(error) => BodyEnd::Failed(BodyFailure {
            verdict: error.verdict(),
            retry_after: error.retry_after(),
            stored: (error.verdict() == Verdict::Refused).then(|| match error.error() {
                Some(error) => encode(error),
                None => OutcomeBody::Absent(AbsentReason::Unencodable),
            }),
            error: Box::new(error),
        }),
    }
}

/// What a look-up found, from its typed result.
pub(crate) fn look_up_end<T: Outcome, E: Failure>(
    result: std::result::Result<Found<T, E>, E>,
) -> Found<OutcomeBody, OutcomeBody> {
    match result {
        Ok(Found::Done(value)) => Found::Done(encode(&value)),
        Ok(Found::Refused(error)) => Found::Refused(encode(&error)),
        Ok(Found::Absent) => Found::Absent,
        Ok(Found::Unknown) | Err(_) => Found::Unknown,
    }
}

/// What a poll found, from its typed result: one that failed says nothing.
pub(crate) fn poll_end<T: Outcome, E: Failure>(
    result: std::result::Result<Polled<T, E>, E>,
) -> Polled<OutcomeBody, OutcomeBody> {
    match result {
        Ok(Polled::Running { poll_after }) => Polled::Running { poll_after },
        Ok(Polled::Done(value)) => Polled::Done(encode(&value)),
        Ok(Polled::Failed(error)) => Polled::Failed(encode(&error)),
        Ok(Polled::UnknownHandle) => Polled::UnknownHandle,
        Ok(Polled::Unsupported) => Polled::Unsupported,
        Ok(Polled::Unknown) | Err(_) => Polled::Unknown,
    }
}

/// The typed result of a call.
pub(crate) fn call_result<T: Outcome, E: Failure>(end: CallEnd) -> crate::Result<T, E> {
    match end {
        CallEnd::Success { answer, replayed } => match answer.body() {
            OutcomeBody::Payload(payload) => decode(payload).ok_or_else(|| {
                let error = EffectError::new(ErrorKind::Unreadable).with_detail(why_unreadable(payload));
                if replayed { error.with_replayed() } else { error }
            }),
            OutcomeBody::Absent(reason) => Err(absent(*reason)),
        },
        CallEnd::Refusal { answer, replayed } => {
            let refused = refusal(answer.body());
            Err(if replayed { refused.with_replayed().with_called(ProviderCalled::No) } else { refused })
        }
        CallEnd::Error(error) => Err(error.typed()),
    }
}

/// A refusal by the provider, or by an operator.
fn refusal<E: Failure>(body: &OutcomeBody) -> EffectError<E> {
    let refused = EffectError::new(ErrorKind::Refused);
    let payload = match body {
        OutcomeBody::Payload(payload) => Some(payload),
        OutcomeBody::Absent(_) => None,
    };
    if let Some(payload) = payload.filter(|payload| payload.codec == REASON_CODEC) {
        let reason = String::from_utf8_lossy(&payload.bytes).into_owned();
        return refused.with_operator_reason(reason).with_detail("an operator resolved it so");
    }
    match payload.and_then(decode::<E>) {
        Some(error) => refused.with_error(error),
        None => refused.with_detail("the stored refusal does not decode as this function's error type"),
    }
}

fn why_unreadable(payload: &Payload) -> &'static str {
    match &*payload.codec {
        CODEC | SECRET_CODEC => "the stored value does not decode as this function's return type",
        WITHHELD_CODEC => {
            "it holds a secret, and there was no payload codec to keep it under when it was performed: only that call got it"
        }
        _ => "the stored value is in an encoding, or under a payload codec, that this program cannot read",
    }
}

fn absent<E>(reason: AbsentReason) -> EffectError<E> {
    match reason {
        AbsentReason::Expired => EffectError::new(ErrorKind::Expired),
        AbsentReason::Unencodable => EffectError::new(ErrorKind::Unreadable)
            .with_detail("its value could not be encoded when it was performed"),
        AbsentReason::TooLarge => EffectError::new(ErrorKind::Unreadable)
            .with_detail("its value was over the outcome size limit when it was performed"),
    }
}

impl CallError {
    fn typed<E: Failure>(self) -> EffectError<E> {
        let Parts { kind, called, retry_after, handle, detail, ledger, error } = *self.0;
        let body = error.and_then(|error| error.downcast::<EffectError<E>>().ok()).map(|error| *error);
        let mut typed = match body {
            Some(body) => body.at_the_end(kind),
            None => EffectError::new(kind),
        };
        if retry_after.is_some() {
            typed = typed.with_retry_after(retry_after);
        }
        if let Some(called) = called {
            typed = typed.with_called(called);
        }
        if let Some(handle) = handle {
            typed = typed.with_handle(handle);
        }
        if let Some(detail) = detail {
            typed = typed.with_detail(detail);
        }
        if let Some(ledger) = ledger {
            typed = typed.with_source(ledger);
        }
        typed
    }
}
