//! Questions to the provider: look-ups, which change nothing there.

use super::{
    answer::HttpAnswer,
    client::HttpClient,
    error::HttpError,
    prepare::{Body, Draft},
    transport,
};

/// A `GET`. Errors of a question say nothing of the effect: each is unknown, because the effect's own request may have
/// been sent before. A body that asks before it sends says so with [`not_performed`](crate::OrFail::not_performed).
#[must_use = "nothing is sent before `send`"]
#[derive(Debug)]
pub struct HttpQuery<'a> {
    client: &'a HttpClient,
    draft: Draft,
}

impl<'a> HttpQuery<'a> {
    pub(super) fn new(client: &'a HttpClient, path: &str) -> Self {
        Self { client, draft: Draft::new("GET", path) }
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.draft.headers.push((name.into(), value.into()));
        self
    }

    /// Adds a parameter to the query.
    pub fn query(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.draft.query.push((name.into(), value.into()));
        self
    }

    /// Asks.
    ///
    /// # Errors
    /// [`HttpError`]: the provider did not answer, or not with a success.
    ///
    /// # Cancel safety
    /// May be dropped at any point.
    pub async fn send(self) -> Result<HttpAnswer, HttpError> {
        debug_assert!(matches!(self.draft.body, Body::Empty), "a question has no body");
        let prepared = self.draft.prepare(self.client).map_err(HttpError::saying_nothing)?;
        let (answer, _) = transport::exchange(self.client, prepared).await;
        answer.map_err(HttpError::saying_nothing)
    }
}
