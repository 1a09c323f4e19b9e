//! A whole answer that the profile reads as a success.

use std::fmt;

use reqwest::header::HeaderMap;
use serde::de::DeserializeOwned;

use super::error::{HttpError, HttpErrorKind};

/// The provider's answer to a request that was performed. `Debug` shows the status only.
pub struct HttpAnswer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
    pub(super) replayed: bool,
}

impl HttpAnswer {
    /// The status, such as 200. With 202 the provider may only have begun: see
    /// [`EffectContext::accepted`](crate::EffectContext::accepted).
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The first header of this name, if it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The whole body.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// Whether the provider marked this as a replay of the answer that it had stored for our key.
    #[must_use]
    pub fn replayed(&self) -> bool {
        self.replayed
    }

    /// Reads the body as JSON, whatever its content type: a provider's stored answer may come back under another one.
    ///
    /// # Errors
    /// [`HttpErrorKind::Undecodable`], which is unknown: the provider performed the request.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, HttpError> {
        serde_json::from_slice(&self.body).map_err(|error| {
            // The error's own text quotes the body.
            let place = format!("at line {}, column {}", error.line(), error.column());
            HttpError::new(HttpErrorKind::Undecodable).with_status(self.status).with_detail(place)
        })
    }
}

impl fmt::Debug for HttpAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpAnswer")
            .field("status", &self.status)
            .field("replayed", &self.replayed)
            .finish_non_exhaustive()
    }
}
