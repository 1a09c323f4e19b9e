//! An effect's one request.

use serde::Serialize;

use super::{
    answer::HttpAnswer,
    client::HttpClient,
    error::HttpError,
    prepare::{Body, Draft},
    transport,
};
use crate::{context::EffectContext, provider::SendRefused};

/// A request that changes something at the provider. Made by [`HttpClient::post`] and its like.
#[must_use = "nothing is sent before `send`"]
#[derive(Debug)]
pub struct EffectRequest<'a> {
    client: &'a HttpClient,
    draft: Draft,
    respect_existing: bool,
}

impl<'a> EffectRequest<'a> {
    pub(super) fn new(client: &'a HttpClient, method: &str, path: &str) -> Self {
        Self { client, draft: Draft::new(method, path), respect_existing: false }
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

    /// Sends this as JSON. Use types that are written in one order, such as structs and `BTreeMap`: a `HashMap` gives other
    /// bytes on each attempt, and a re-send that differs is refused.
    pub fn json<T: Serialize + ?Sized>(mut self, value: &T) -> Self {
        // The error's own text may quote the value.
        let rule = "the JSON body cannot be written: a map's key that is no text, or the type's own refusal";
        self.draft.body = serde_json::to_vec(value).map_or_else(|_| Body::Unwritable(rule), Body::Json);
        self
    }

    /// Sends these as a form.
    pub fn form<N: Into<String>, V: Into<String>>(
        mut self,
        fields: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let fields = fields.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        self.draft.body = Body::Form(fields);
        self
    }

    /// Sends these bytes. Give the content type with [`header`](Self::header).
    pub fn body(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.draft.body = Body::Bytes(bytes.into());
        self
    }

    /// Leaves a key that the request has already, where the profile would put ours; without this, such a request is
    /// refused. The effect's own key is then not presented, so an attempt whose end is unknown is not sent again by
    /// itself.
    pub fn respect_existing_key(mut self) -> Self {
        self.respect_existing = true;
        self
    }

    /// Sends the request with the effect's key in it, once.
    ///
    /// # Errors
    /// [`HttpError`], whose verdict says what is known of the effect.
    ///
    /// # Cancel safety
    /// Dropping the future after the request may have left leaves the outcome unknown. The executor treats a body that ends
    /// so as unknown.
    pub async fn send(mut self, cx: &EffectContext) -> Result<HttpAnswer, HttpError> {
        if cx.has_sent() {
            // Before anything else: no other error may say that nothing was performed.
            return Err(SendRefused::SecondSend.into());
        }
        let place = &self.client.profile.key_place;
        let present = self.draft.holds_key(place, &self.client.headers)?;
        if present && !self.respect_existing {
            return Err(HttpError::request(format!(
                "the request has an idempotency key already, in `{}`; remove it, or call `respect_existing_key`",
                place.name().unwrap_or_default()
            )));
        }
        if !present && place.is_filled_in() {
            self.draft.place_key(place, cx.idempotency_key())?;
        }
        let prepared = self.draft.prepare(self.client)?;
        let _permit = cx.begin_send(prepared.digest)?;
        let (answer, replayed) = transport::exchange(self.client, prepared).await;
        if replayed {
            cx.mark_provider_replay();
        }
        answer
    }
}
