//! The error of an effect call: what is known, whether the provider was called, and what to do next.

use std::{borrow::Cow, error::Error, fmt, time::Duration};

use crate::{
    failure::{Failure, Verdict},
    identity::EffectId,
};

/// How a call ended without a value. [`docs::operations`](crate::docs::operations#errors) has a table of all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The attempts of this call did not perform the effect; [`EffectError::error`] has the last reason.
    /// The effect is released. Call again once the reason is gone: that is a new attempt of the same effect.
    Failed,
    /// The provider refused it, finally, or an operator resolved it so. Stored: every call gets this answer.
    Refused,
    /// Not performed by this call; it may be tried again after [`EffectError::retry_after`].
    RetryLater,
    /// Another caller holds the claim. The provider was not called by this call. Call again after
    /// [`EffectError::retry_after`], which is the rest of the lease.
    InFlight,
    /// An attempt may have performed it and no outcome is stored. Do not repeat the action by other means. A later call goes
    /// on as the class of the doubt allows, no sooner than [`EffectError::retry_after`] where that is known. Under `hold`, and
    /// under `resend` past its window without a look-up, no call does: see
    /// [what to do](crate::docs::operations#an-escaped-effect).
    Escaped,
    /// The provider accepted it and works on it, and the call's time was over before it ended, or there is nothing to ask with.
    /// Call again after [`EffectError::retry_after`]: that asks by [`EffectError::handle`], and nothing is submitted again.
    Accepted,
    /// The same identity was asked for with other arguments. The provider was not called by this call. Either the
    /// arguments are wrong, or the action is another one and lacks a key field.
    Mismatch,
    /// The outcome is past its retention: it was performed or refused, and the answer is no longer kept.
    Expired,
    /// A record of another key-schema version may be the same effect and cannot prove it. Not performed: a binary of that
    /// version can answer.
    SchemaAmbiguous,
    /// Performed, but the value is not available: it could not be encoded, was over the size limit, cannot be decoded by this
    /// binary or opened by its payload codecs, or holds a [`Secret`](crate::Secret) that nothing sealed. Never performed again.
    Unreadable,
    /// The ledger did not answer before the claim: the effect was not started. Call again when it does.
    Ledger,
    /// The call or its set-up is wrong; the effect was not started. Mend the set-up.
    Config,
    /// The executor is draining and takes no new effects; the effect was not started. Call another process.
    Draining,
}

/// Whether the provider was called for the effect, as far as the library knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProviderCalled {
    /// Not by this call.
    No,
    /// It was called, or tried, and what came of it is known.
    Yes,
    /// It may have been, and its answer is not known.
    Maybe,
}

/// The error of an effect call.
///
/// In a body, `?` makes one of exactly the effect's own error type; see [`OrFail`](crate::OrFail) for others.
pub struct EffectError<E>(Box<Inner<E>>);

struct Inner<E> {
    kind: ErrorKind,
    verdict: Verdict,
    called: ProviderCalled,
    error: Option<E>,
    operation: Option<&'static str>,
    effect: Option<EffectId>,
    retry_after: Option<Duration>,
    handle: Option<String>,
    detail: Option<Cow<'static, str>>,
    operator_reason: Option<String>,
    source: Option<Box<dyn Error + Send + Sync>>,
    replayed: bool,
}

impl<E> EffectError<E> {
    pub(crate) fn new(kind: ErrorKind) -> Self {
        let (verdict, called) = kind.default_meaning();
        Self(Box::new(Inner {
            kind,
            verdict,
            called,
            error: None,
            operation: None,
            effect: None,
            retry_after: None,
            handle: None,
            detail: None,
            operator_reason: None,
            source: None,
            replayed: false,
        }))
    }

    pub(crate) fn from_body(error: E, verdict: Verdict) -> Self
    where
        E: Failure,
    {
        let kind = match verdict {
            Verdict::NotPerformed { .. } => ErrorKind::Failed,
            Verdict::Refused => ErrorKind::Refused,
            Verdict::Unknown => ErrorKind::Escaped,
        };
        let delay = error.retry_after();
        let mut this = Self::new(kind).with_error(error).with_retry_after(delay);
        this.0.verdict = verdict;
        this
    }

    pub(crate) fn with_error(mut self, error: E) -> Self {
        self.0.error = Some(error);
        self
    }

    pub(crate) fn with_effect(mut self, operation: &'static str, effect: EffectId) -> Self {
        self.0.operation = Some(operation);
        self.0.effect = Some(effect);
        self
    }

    pub(crate) fn with_retry_after(mut self, delay: Option<Duration>) -> Self {
        self.0.retry_after = delay;
        self
    }

    pub(crate) fn with_handle(mut self, handle: String) -> Self {
        self.0.handle = Some(handle);
        self
    }

    pub(crate) fn with_operator_reason(mut self, reason: String) -> Self {
        self.0.operator_reason = Some(reason);
        self
    }

    pub(crate) fn with_detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    pub(crate) fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    pub(crate) fn with_called(mut self, called: ProviderCalled) -> Self {
        self.0.called = called;
        self
    }

    pub(crate) fn with_replayed(mut self) -> Self {
        self.0.replayed = true;
        self
    }

    pub(crate) fn verdict(&self) -> Verdict {
        self.0.verdict
    }

    /// How the call ended.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The effect's own error, where there is one.
    #[must_use]
    pub fn error(&self) -> Option<&E> {
        self.0.error.as_ref()
    }

    /// The effect's own error, by value.
    #[must_use]
    pub fn into_error(self) -> Option<E> {
        self.0.error
    }

    /// Which effect it was; `None` where the identity could not be derived.
    #[must_use]
    pub fn effect_id(&self) -> Option<&EffectId> {
        self.0.effect.as_ref()
    }

    /// How long to wait before the next call, where that is known, to the millisecond where the ledger keeps it. Zero
    /// means that a call may follow at once.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// The provider's handle of an accepted effect.
    #[must_use]
    pub fn handle(&self) -> Option<&str> {
        self.0.handle.as_deref()
    }

    /// The reason of the operator who resolved the effect as refused: then there is no [`error`](Self::error).
    #[must_use]
    pub fn operator_reason(&self) -> Option<&str> {
        self.0.operator_reason.as_deref()
    }

    /// Whether the provider was called.
    #[must_use]
    pub fn provider_called(&self) -> ProviderCalled {
        self.0.called
    }

    /// Whether this is a stored answer rather than the answer to an attempt of this call.
    #[must_use]
    pub fn replayed(&self) -> bool {
        self.0.replayed
    }

    /// The body's error as the end of the call, which may be of another kind than the body said.
    pub(crate) fn at_the_end(mut self, kind: ErrorKind) -> Self {
        if kind != self.0.kind {
            let (verdict, called) = kind.default_meaning();
            self.0.kind = kind;
            self.0.verdict = verdict;
            self.0.called = called;
        }
        self
    }

    /// The error of an outer effect for this error of an inner one.
    pub(crate) fn nest<F: Failure + From<E>>(self) -> EffectError<F> {
        let Inner {
            kind, verdict, called, error, retry_after, handle, detail, operator_reason, source, ..
        } = *self.0;
        let mut outer = EffectError::new(kind).with_retry_after(retry_after).with_called(called);
        outer.0.verdict = verdict;
        outer.0.error = error.map(F::from);
        outer.0.handle = handle;
        outer.0.detail = Some(detail.unwrap_or(Cow::Borrowed("an effect inside this one ended so")));
        outer.0.operator_reason = operator_reason;
        outer.0.source = source;
        outer
    }
}

impl ErrorKind {
    /// What an error of this kind means when it is the end of a body, and whether the provider was called.
    fn default_meaning(self) -> (Verdict, ProviderCalled) {
        match self {
            Self::Failed => (Verdict::NotPerformed { retry: false }, ProviderCalled::Yes),
            Self::RetryLater => (Verdict::NotPerformed { retry: true }, ProviderCalled::No),
            Self::Refused => (Verdict::Refused, ProviderCalled::Yes),
            Self::InFlight => (Verdict::Unknown, ProviderCalled::No),
            Self::Escaped => (Verdict::Unknown, ProviderCalled::Maybe),
            Self::Accepted | Self::Expired | Self::Unreadable => (Verdict::Unknown, ProviderCalled::Yes),
            Self::Mismatch | Self::SchemaAmbiguous | Self::Ledger | Self::Config | Self::Draining => {
                (Verdict::NotPerformed { retry: false }, ProviderCalled::No)
            }
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            Self::Failed => "not performed; the effect is released, and a later call makes a new attempt",
            Self::Refused => "refused, finally; the answer is stored, and every call gets it",
            Self::RetryLater => "not performed; call again after the delay",
            Self::InFlight => "another caller holds the claim; call again when its lease has ended",
            Self::Escaped => {
                "it may have been performed, and no outcome is stored; do not repeat the action by other means: \
                 a later call asks or sends again only where its class lets it, else look at the provider"
            }
            Self::Accepted => "accepted by the provider and not finished; call again after the delay",
            Self::Mismatch => {
                "the same identity was asked for before with other arguments; not performed by this call"
            }
            Self::Expired => "it ended, and its outcome is past its retention; it is not performed again",
            Self::SchemaAmbiguous => {
                "a record of another key-schema version may be the same effect and cannot prove it; not performed: a binary of that version can answer"
            }
            Self::Unreadable => "performed, but its value is not available; it is not performed again",
            Self::Ledger => "the ledger did not answer; the effect was not started: call again when it does",
            Self::Config => "the set-up is wrong; the effect was not started",
            Self::Draining => "the executor is draining; the effect was not started",
        }
    }
}

impl ProviderCalled {
    fn sentence(self) -> &'static str {
        match self {
            Self::No => "the provider was not called by this call",
            Self::Yes => "the provider was called or tried, and what came of it is known",
            Self::Maybe => "the provider may have been called",
        }
    }
}

impl<E> fmt::Display for EffectError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        if let Some(operation) = inner.operation {
            write!(f, "effect `{operation}`")?;
        } else {
            f.write_str("effect")?;
        }
        if let Some(effect) = &inner.effect {
            write!(f, " {effect}")?;
        }
        write!(f, ": {}", inner.kind.sentence())?;
        if let Some(detail) = &inner.detail {
            write!(f, " ({detail})")?;
        }
        write!(f, "; {}", inner.called.sentence())?;
        if let Some(delay) = inner.retry_after {
            write!(f, "; retry after {} ms", delay.as_millis())?;
        }
        Ok(())
    }
}

impl<E: fmt::Debug> fmt::Debug for EffectError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        f.debug_struct("EffectError")
            .field("kind", &inner.kind)
            .field("provider_called", &inner.called)
            .field("operation", &inner.operation)
            .field("effect", &inner.effect)
            .field("retry_after", &inner.retry_after)
            .field("detail", &inner.detail)
            .field("error", &inner.error)
            .field("source", &inner.source)
            .finish_non_exhaustive()
    }
}

impl<E: Failure> Error for EffectError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match (&self.0.error, &self.0.source) {
            (Some(error), _) => Some(error),
            (None, Some(source)) => Some(&**source),
            (None, None) => None,
        }
    }
}

impl<E: Failure> From<E> for EffectError<E> {
    /// Keeps the verdict that the error says itself.
    fn from(error: E) -> Self {
        let verdict = error.verdict();
        Self::from_body(error, verdict)
    }
}
