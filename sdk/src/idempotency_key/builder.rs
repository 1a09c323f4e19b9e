//! The settings of a layer, as its user writes them.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Extensions, HeaderName, Response};

use super::{
    layer::IdempotencyKeyLayer,
    refusal::Refusal,
    settings::{Settings, SettingsError},
    shared::{Parts, Shared},
};

/// The settings of an [`IdempotencyKeyLayer`]; made by [`IdempotencyKeyLayer::builder`], or by
/// [`IdempotencyKeyLayer::adjust`] for further routes.
#[must_use]
pub struct IdempotencyKeyBuilder {
    pub(super) shared: Source,
    pub(super) settings: Settings,
}

pub(super) enum Source {
    /// A layer is there already.
    Shared(Arc<Shared>),
    New(Parts),
}

impl fmt::Debug for IdempotencyKeyBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyKeyBuilder").finish_non_exhaustive()
    }
}

impl IdempotencyKeyBuilder {
    /// Whether a request without a key is refused with 400 `idempotency_key_required`; `false` unless set: then it passes,
    /// and is not deduplicated.
    pub fn required(mut self, is_required: bool) -> Self {
        self.settings.is_required = is_required;
        self
    }

    /// Whether a key in the quotes of a structured field's string is taken for the key in them; `false` unless set: then
    /// it is outside the grammar.
    pub fn accept_quoted(mut self, is_accepted: bool) -> Self {
        self.settings.is_quoted_accepted = is_accepted;
        self
    }

    /// For how long a request waits for an equal one that is running, before it gets 409 `idempotency_in_flight`; 10
    /// seconds unless set. Keep it below your server's request timeout; `Duration::ZERO` refuses at once.
    pub fn wait(mut self, limit: Duration) -> Self {
        self.settings.wait = limit;
        self
    }

    /// For how long a record stays its owner's without a renewal; 30 seconds unless set, at least 100 milliseconds. It is
    /// renewed after each third. After a crash the key is blocked for this long.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease;
        self
    }

    /// For how long a record is kept, from its answer on; 24 hours unless set, which is also the least. Publish it.
    pub fn retention(mut self, retention: Duration) -> Self {
        self.settings.retention = retention;
        self
    }

    /// How many bytes a request's body may have where it comes with a key; 2 MiB unless set. It is read whole before
    /// anything runs; what is larger gets 413 and does not run. Requests without a key are not read.
    pub fn request_body_max(mut self, bytes: usize) -> Self {
        self.settings.request_body_max = bytes;
        self
    }

    /// How many bytes of an answer's body are kept; 1 MiB unless set. A larger body passes whole, and its record says that
    /// it cannot be given again.
    pub fn response_body_max(mut self, bytes: usize) -> Self {
        self.settings.response_body_max = bytes;
        self
    }

    /// For how long a body may come in pieces before it counts as a stream; 5 seconds unless set. Until then it is held
    /// back.
    pub fn stream_after(mut self, limit: Duration) -> Self {
        self.settings.stream_after = limit;
        self
    }

    /// The header that marks an answer as given again, with the value `true`; `openwop-idempotent-replay` unless set.
    pub fn marker(mut self, name: HeaderName) -> Self {
        self.settings.marker = name;
        self
    }

    /// The header that marks an answer whose body cannot be given again, with the value `false`;
    /// `openwop-idempotent-replayable` unless set.
    pub fn not_replayable_marker(mut self, name: HeaderName) -> Self {
        self.settings.not_replayable = name;
        self
    }

    /// One more header that is not given again. From the start these are `Set-Cookie`, `Date`, the hop-by-hop headers and
    /// those that commonly carry an id of one request.
    pub fn deny_header(mut self, name: HeaderName) -> Self {
        self.settings.denied.insert(name.as_str().to_owned());
        self
    }

    /// One more error code whose answer is not final, whatever its status: the same key runs again. The code of an answer
    /// is its [`ErrorCode`](super::ErrorCode), or the `error` of its JSON body.
    pub fn retriable_code(mut self, code: impl Into<String>) -> Self {
        self.settings.retriable_codes.insert(code.into());
        self
    }

    /// The route template, where the router does not tell it. axum's matched path is found by itself; else, and unless set,
    /// each path is an endpoint of its own.
    pub fn endpoint(mut self, template: impl Into<Arc<str>>) -> Self {
        self.settings.endpoint = Some(template.into());
        self
    }

    /// Where the principal is found, such as the user's id: an answer is then given again to the principal only that got it
    /// first. Not the credential, which changes. A request with a key and without a principal gets 401.
    pub fn principal(
        mut self,
        source: impl Fn(&Extensions) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.settings.principal = Some(Arc::new(source));
        self
    }

    /// How refusals look; unless set, `{"error", "message"}`. `Retry-After` is added where it is missing.
    pub fn render(mut self, renderer: impl Fn(&Refusal) -> Response<Bytes> + Send + Sync + 'static) -> Self {
        self.settings.renderer = Arc::new(renderer);
        self
    }

    /// The layer.
    ///
    /// # Errors
    /// [`SettingsError`] where a setting is outside its bounds, or the system gives no thread for the renewals.
    pub fn build(self) -> Result<IdempotencyKeyLayer, SettingsError> {
        self.settings.check()?;
        let shared = match self.shared {
            Source::Shared(shared) => shared,
            Source::New(parts) => Arc::new(Shared::start(parts)?),
        };
        Ok(IdempotencyKeyLayer { shared, settings: Arc::new(self.settings) })
    }
}
