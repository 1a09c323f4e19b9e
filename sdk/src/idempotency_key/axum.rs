//! What axum adds: a request's handle is an extractor.

use axum::{extract::FromRequestParts, http::StatusCode};
use http::request::Parts;

use super::keyed::KeyedRequest;

/// Refuses with 500 on a route that the layer does not stand before.
impl<S: Sync> FromRequestParts<S> for KeyedRequest {
    type Rejection = (StatusCode, &'static str);

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        parts.extensions.get::<Self>().cloned().ok_or((
            StatusCode::INTERNAL_SERVER_ERROR,
            "this route has no IdempotencyKeyLayer; nothing was executed",
        ))
    }
}
