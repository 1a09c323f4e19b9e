//! Errors as the specification writes them: `{ "error", "message", "details"? }` and nothing else.

use std::borrow::Cow;

use axum::{
    body::Body,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;

/// An error that is answered with a status and a body of the specification's shape.
///
/// Its texts are constant or of the host's own making: nothing of what the caller sent comes back in them.
#[derive(Debug, Clone)]
pub struct Problem {
    status: StatusCode,
    body: Shape,
}

#[derive(Debug, Clone, Serialize)]
struct Shape {
    error: &'static str,
    message: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<serde_json::Value>,
}

impl Problem {
    /// An error with this code.
    pub fn new(status: StatusCode, error: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status, body: Shape { error, message: message.into(), details: None } }
    }

    /// With an object that says more. Not when to try again: that is the header `Retry-After`.
    #[must_use]
    pub fn with_details(mut self, details: serde_json::Value) -> Self {
        self.body.details = Some(details);
        self
    }

    /// 400 `validation_error`.
    pub fn validation(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "validation_error", message)
    }

    /// 401 `unauthenticated`.
    #[must_use]
    pub fn unauthenticated() -> Self {
        let message = "the request names no caller: send `Authorization: Bearer …` with a valid credential";
        Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", message)
    }

    /// 403 `forbidden`.
    #[must_use]
    pub fn forbidden() -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", "the caller's credential does not allow this")
    }

    /// 403 `id_tenant_mismatch`: answered before anything is looked up, so that it tells nothing of what exists.
    #[must_use]
    pub fn tenant_mismatch() -> Self {
        let message = "the identifier is of another tenant than the caller's";
        Self::new(StatusCode::FORBIDDEN, "id_tenant_mismatch", message)
    }

    /// 404 `not_found`.
    pub fn not_found(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// 500 `internal_error`.
    #[must_use]
    pub fn internal() -> Self {
        let message = "the host met an error of its own: what became of the request is in its log";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", message)
    }

    /// 503 `service_unavailable`.
    pub fn unavailable(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", message)
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The code, such as `not_found`.
    #[must_use]
    pub fn error(&self) -> &'static str {
        self.body.error
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        // Text and a JSON value are JSON whatever they hold.
        let body = serde_json::to_vec(&self.body).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
        headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
        }
        response
    }
}
