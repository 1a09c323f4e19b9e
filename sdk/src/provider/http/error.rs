//! How a request ended without a usable answer, and what that says of the effect.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    failure::{Failure, Verdict},
    provider::{AnswerVerdict, SendRefused},
};

/// How much of an error's body is kept, in bytes.
const BODY_MAX: usize = 64 * 1024;

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HttpErrorKind {
    /// The request could not be made. Not sent, and another attempt does not help: mend the call.
    Request,
    /// Leave to send was refused. Not sent, but for a second request of one attempt, which is unknown.
    Permit(SendRefused),
    /// No connection was made: name resolution, refused, TLS, or the time to connect. Not sent; retried.
    NoConnection,
    /// No whole answer within the time limit. Unknown.
    Timeout,
    /// The connection ended before the whole answer was there. Unknown.
    Cut,
    /// A redirect, which is never followed. Unknown.
    Redirected,
    /// A whole answer that is not a success; what it means is said by the profile.
    Answered,
    /// The answer is over the size limit. Unknown: it may have been performed, and the answer cannot be read.
    TooLarge,
    /// The effect was performed, and the answer is not what the caller expects. Unknown: never reported as failed.
    Undecodable,
}

/// The error of the HTTP adapter. Can be stored, so that a refusal replays as the same value.
///
/// Neither `Display` nor `Debug` shows the body.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HttpError(Box<Inner>);

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Inner {
    kind: HttpErrorKind,
    verdict: Verdict,
    #[serde(default)]
    status: Option<u16>,
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    body: String,
    #[serde(default)]
    retry_after_ms: Option<u64>,
    #[serde(default)]
    detail: Option<String>,
}

impl HttpError {
    pub(crate) fn new(kind: HttpErrorKind) -> Self {
        let verdict = kind.verdict();
        let (status, code, retry_after_ms, detail) = (None, None, None, None);
        Self(Box::new(Inner { kind, verdict, status, code, body: String::new(), retry_after_ms, detail }))
    }

    /// A request that cannot be made; `detail` holds nothing that the caller gave but names of headers and fields.
    pub(crate) fn request(detail: impl Into<String>) -> Self {
        Self::new(HttpErrorKind::Request).with_detail(detail)
    }

    pub(crate) fn answered(status: u16, body: &[u8], read: AnswerVerdict, verdict: Verdict) -> Self {
        let mut this = Self::new(HttpErrorKind::Answered).with_status(status);
        this.0.verdict = verdict;
        this.0.body = String::from_utf8_lossy(&body[..body.len().min(BODY_MAX)]).into_owned();
        this.0.retry_after_ms =
            read.retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        this.0.code = read.code;
        this
    }

    /// A refusal that a look-up found.
    #[cfg(feature = "stripe")]
    pub(crate) fn refused(status: u16, code: Option<&str>) -> Self {
        let mut this = Self::new(HttpErrorKind::Answered).with_status(status);
        this.0.verdict = Verdict::Refused;
        this.0.code = code.filter(|code| crate::provider::is_code(code)).map(str::to_owned);
        this
    }

    /// The same without the body, where what it says is kept in another form.
    #[cfg(feature = "stripe")]
    pub(crate) fn without_body(mut self) -> Self {
        self.0.body.clear();
        self
    }

    pub(crate) fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    pub(super) fn with_status(mut self, status: u16) -> Self {
        self.0.status = Some(status);
        self
    }

    /// The same, of a request that is no part of the effect's sending: it says nothing of the effect.
    pub(crate) fn saying_nothing(mut self) -> Self {
        self.0.verdict = Verdict::Unknown;
        self
    }

    /// How the request ended.
    #[must_use]
    pub fn kind(&self) -> HttpErrorKind {
        self.0.kind
    }

    /// The status of the answer, where there was one.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// The provider's error code, where the profile says where it is.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// The first 64 KiB of an answer that is not a success; empty for the other kinds. May hold personal data: do not
    /// log it.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.0.body
    }
}

impl HttpErrorKind {
    fn verdict(self) -> Verdict {
        match self {
            Self::Request => Verdict::NotPerformed { retry: false },
            Self::NoConnection => Verdict::NotPerformed { retry: true },
            Self::Permit(refused) => refused.verdict(),
            Self::Timeout
            | Self::Cut
            | Self::Redirected
            | Self::Answered
            | Self::TooLarge
            | Self::Undecodable => Verdict::Unknown,
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            Self::Request => "the request could not be made and was not sent",
            Self::Permit(_) => "leave to send was refused",
            Self::NoConnection => "no connection was made; the request was not sent",
            Self::Timeout => "no whole answer came in time; the provider may have performed the request",
            Self::Cut => {
                "the connection ended before the whole answer; the provider may have performed the request"
            }
            Self::Redirected => {
                "the answer was a redirect, which is never followed; the provider may have performed \
                                 the request"
            }
            Self::Answered => "the provider answered",
            Self::TooLarge => {
                "the answer is over the size limit; the provider may have performed the request"
            }
            Self::Undecodable => "the provider answered with a success that cannot be read",
        }
    }
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.kind.sentence())?;
        if let HttpErrorKind::Permit(refused) = self.0.kind {
            write!(f, ": {refused}")?;
        }
        if let Some(status) = self.0.status {
            write!(f, " (status {status})")?;
        }
        if let Some(code) = &self.0.code {
            write!(f, " (code {code})")?;
        }
        if let Some(detail) = &self.0.detail {
            write!(f, ": {detail}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpError")
            .field("kind", &self.0.kind)
            .field("verdict", &self.0.verdict)
            .field("status", &self.0.status)
            .field("code", &self.0.code)
            .field("detail", &self.0.detail)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for HttpError {}

impl From<SendRefused> for HttpError {
    fn from(refused: SendRefused) -> Self {
        Self::new(HttpErrorKind::Permit(refused))
    }
}

impl Failure for HttpError {
    fn verdict(&self) -> Verdict {
        self.0.verdict
    }

    fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after_ms.map(Duration::from_millis)
    }
}
