//! A provider's HTTP API: where it is, what every request carries, and what is known of it.

use std::{fmt, sync::Arc, time::Duration};

use reqwest::{
    Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};

use super::{error::HttpError, query::HttpQuery, request::EffectRequest, secret::Secret, transport};
use crate::provider::Profile;

/// How long a whole exchange may take unless told otherwise: less than an attempt may by default, so that the end is the
/// adapter's own error and not an aborted body.
const TIMEOUT: Duration = Duration::from_secs(12);

/// How large an answer may be unless told otherwise, in bytes.
const ANSWER_MAX: usize = 1024 * 1024;

/// A client of one provider's HTTP API. Cheap to clone: pass it to effects as a skipped argument.
#[derive(Clone)]
pub struct HttpClient {
    pub(super) profile: Arc<Profile>,
    pub(super) transport: reqwest::Client,
    pub(super) base: String,
    pub(super) headers: HeaderMap,
    pub(super) timeout: Duration,
    pub(super) answer_max: usize,
}

impl HttpClient {
    /// A client of the API at `base`, such as `https://api.example.com/v2`, read by this profile.
    ///
    /// # Errors
    /// [`HttpErrorKind::Request`](super::HttpErrorKind::Request) if the base is not an `http` or `https` address without
    /// credentials, query and fragment, if the profile contradicts itself, or if TLS cannot be set up.
    pub fn new(profile: Profile, base: &str) -> Result<Self, HttpError> {
        profile.check().map_err(|error| HttpError::request(error.to_string()))?;
        Ok(Self {
            profile: Arc::new(profile),
            transport: transport::client(true)?,
            base: checked(base)?,
            headers: HeaderMap::new(),
            timeout: TIMEOUT,
            answer_max: ANSWER_MAX,
        })
    }

    /// The same client for another address: a test server, a gateway.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_base(mut self, base: &str) -> Result<Self, HttpError> {
        self.base = checked(base)?;
        Ok(self)
    }

    /// Sends a header with every request.
    ///
    /// # Errors
    /// [`HttpErrorKind::Request`](super::HttpErrorKind::Request) if it is no header. The value is not shown.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, HttpError> {
        let (name, value) = header(name, value)?;
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Sends a header with every request whose value is a credential.
    ///
    /// # Errors
    /// As [`with_header`](Self::with_header).
    pub fn with_secret_header(mut self, name: &str, value: &Secret) -> Result<Self, HttpError> {
        let (name, mut value) = header(name, value.expose())?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Sends `Authorization: Bearer …` with every request.
    ///
    /// # Errors
    /// As [`with_header`](Self::with_header).
    pub fn with_bearer(self, token: &Secret) -> Result<Self, HttpError> {
        self.with_secret_header("authorization", &Secret::new(format!("Bearer {}", token.expose())))
    }

    /// How long a whole exchange may take, from the connection to the last byte of the answer; 12 seconds by default.
    /// Past it the outcome is unknown. Keep it below the effect's attempt timeout.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How large an answer may be, in bytes; 1 MiB by default. Past it the outcome is unknown.
    #[must_use]
    pub fn with_answer_max(mut self, bytes: usize) -> Self {
        self.answer_max = bytes;
        self
    }

    /// Ignores the proxy that the environment names.
    ///
    /// # Errors
    /// [`HttpErrorKind::Request`](super::HttpErrorKind::Request) if TLS cannot be set up.
    pub fn without_proxy(mut self) -> Result<Self, HttpError> {
        self.transport = transport::client(false)?;
        Ok(self)
    }

    /// What is known of the provider.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// An effect's request with this method, such as `POST`. The path starts with `/` and may have a query.
    pub fn request(&self, method: &str, path: &str) -> EffectRequest<'_> {
        EffectRequest::new(self, method, path)
    }

    /// A `POST`; see [`request`](Self::request).
    pub fn post(&self, path: &str) -> EffectRequest<'_> {
        self.request("POST", path)
    }

    /// A `PUT`; see [`request`](Self::request).
    pub fn put(&self, path: &str) -> EffectRequest<'_> {
        self.request("PUT", path)
    }

    /// A `PATCH`; see [`request`](Self::request).
    pub fn patch(&self, path: &str) -> EffectRequest<'_> {
        self.request("PATCH", path)
    }

    /// A `DELETE`; see [`request`](Self::request).
    pub fn delete(&self, path: &str) -> EffectRequest<'_> {
        self.request("DELETE", path)
    }

    /// A question that changes nothing at the provider: no key, no leave to send, and the caller may repeat it.
    pub fn get(&self, path: &str) -> HttpQuery<'_> {
        HttpQuery::new(self, path)
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient")
            .field("provider", &self.profile.name)
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

/// The base without a slash at its end, so that a path that starts with one can follow.
fn checked(base: &str) -> Result<String, HttpError> {
    let rule = "the base must be an `http` or `https` address without credentials, query and fragment";
    let url = Url::parse(base).map_err(|_| HttpError::request(rule))?;
    let plain = matches!(url.scheme(), "http" | "https")
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    if plain { Ok(url.as_str().trim_end_matches('/').to_owned()) } else { Err(HttpError::request(rule)) }
}

/// Reads a header without showing its value in the error.
pub(super) fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), HttpError> {
    let parsed: HeaderName =
        name.parse().map_err(|_| HttpError::request("a header's name has characters that it cannot have"))?;
    let value = HeaderValue::from_str(value).map_err(|_| {
        HttpError::request(format!("the value of header `{parsed}` cannot be sent in a header"))
    })?;
    Ok((parsed, value))
}
