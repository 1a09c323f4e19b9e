//! What the layer answers in the handler's place.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};

/// Why a request was not passed on, or why its answer is not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalKind {
    /// The header is not one key of the grammar. Nothing ran.
    KeyInvalid,
    /// The route wants a key, and there is none. Nothing ran.
    KeyRequired,
    /// No tenant (or no principal, where there is a source of one) is known: the request was not authenticated, or the
    /// layer stands outside of the authentication. Nothing ran.
    Unauthenticated,
    /// The request's body is over the limit. Nothing ran.
    BodyTooLarge,
    /// The request's body did not arrive whole. Nothing ran.
    BodyIncomplete,
    /// The key was sent with another request before. This one did not run.
    KeyMismatch,
    /// An equal request is running. This one did not run.
    InFlight,
    /// An equal request ran, and its answer cannot be given again. This one did not run.
    ResponseUnavailable,
    /// The records cannot be read or written. Nothing ran.
    StoreUnavailable,
    /// The handler panicked. It may have acted: the same key runs it again.
    HandlerFailed,
    /// The handler was stopped because its record could no longer be renewed. It may have acted: the same key runs it
    /// again.
    HandlerStopped,
}

/// An answer of the layer: what an application's own renderer is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    kind: RefusalKind,
}

impl Refusal {
    pub(super) fn new(kind: RefusalKind) -> Self {
        Self { kind }
    }

    /// Why.
    #[must_use]
    pub fn kind(&self) -> RefusalKind {
        self.kind
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self.kind {
            RefusalKind::KeyInvalid | RefusalKind::KeyRequired | RefusalKind::BodyIncomplete => {
                StatusCode::BAD_REQUEST
            }
            RefusalKind::Unauthenticated => StatusCode::UNAUTHORIZED,
            RefusalKind::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            RefusalKind::KeyMismatch | RefusalKind::InFlight | RefusalKind::ResponseUnavailable => {
                StatusCode::CONFLICT
            }
            RefusalKind::HandlerFailed => StatusCode::INTERNAL_SERVER_ERROR,
            RefusalKind::StoreUnavailable | RefusalKind::HandlerStopped => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The error code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.kind {
            RefusalKind::KeyInvalid => "idempotency_key_invalid",
            RefusalKind::KeyRequired => "idempotency_key_required",
            RefusalKind::Unauthenticated => "unauthenticated",
            RefusalKind::BodyTooLarge => "payload_too_large",
            RefusalKind::BodyIncomplete => "body_incomplete",
            RefusalKind::KeyMismatch => "idempotency_key_mismatch",
            RefusalKind::InFlight => "idempotency_in_flight",
            RefusalKind::ResponseUnavailable => "idempotency_response_unavailable",
            RefusalKind::StoreUnavailable | RefusalKind::HandlerStopped => "idempotency_unavailable",
            RefusalKind::HandlerFailed => "internal_error",
        }
    }

    /// What to tell the caller.
    #[must_use]
    pub fn message(&self) -> &'static str {
        match self.kind {
            RefusalKind::KeyInvalid => {
                "Idempotency-Key must be one header line of 22 to 128 characters of A-Z a-z 0-9 . _ ~ -; nothing was executed"
            }
            RefusalKind::KeyRequired => "this endpoint requires an Idempotency-Key; nothing was executed",
            RefusalKind::Unauthenticated => "the request is not authenticated; nothing was executed",
            RefusalKind::BodyTooLarge => {
                "the body is too large for a request with an Idempotency-Key; nothing was executed"
            }
            RefusalKind::BodyIncomplete => "the body did not arrive whole; nothing was executed",
            RefusalKind::KeyMismatch => {
                "this Idempotency-Key was sent with another request; this one was not executed, send it under a key of its own"
            }
            RefusalKind::InFlight => {
                "an equal request with this Idempotency-Key is being executed; send the same request again later"
            }
            RefusalKind::ResponseUnavailable => {
                "an equal request with this Idempotency-Key was executed, and its response cannot be given again"
            }
            RefusalKind::StoreUnavailable => {
                "idempotency records are not available; nothing was executed, send the same request again later"
            }
            RefusalKind::HandlerFailed => {
                "the request failed and may have been executed in part; send the same request with the same key again"
            }
            RefusalKind::HandlerStopped => {
                "the request was stopped and may have been executed in part; send the same request with the same key again"
            }
        }
    }

    /// Whether the same request may go better a little later.
    fn is_passing(self) -> bool {
        matches!(
            self.kind,
            RefusalKind::InFlight | RefusalKind::StoreUnavailable | RefusalKind::HandlerStopped
        )
    }

    /// `{ "error", "message" }`, and nothing else.
    pub(super) fn render(&self) -> Response<Bytes> {
        let body = serde_json::json!({ "error": self.code(), "message": self.message() });
        let mut response = Response::new(Bytes::from(body.to_string()));
        *response.status_mut() = self.status();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }

    /// Adds `Retry-After` where it makes sense, whoever rendered the answer.
    pub(super) fn finish(self, mut response: Response<Bytes>) -> Response<Bytes> {
        if self.is_passing() {
            response.headers_mut().entry(header::RETRY_AFTER).or_insert(HeaderValue::from_static("1"));
        }
        response
    }
}
