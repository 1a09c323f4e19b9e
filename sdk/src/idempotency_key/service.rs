//! The service: looks at the header, then at who asks, then at what is asked.

use std::{
    error::Error,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use http::{Method, Request, Response, request};
use http_body::Body;
use http_body_util::BodyExt;
use tower_service::Service;
use tracing::Instrument as _;

use super::{
    body::ResponseBody,
    drive::{self, Asked},
    fingerprint, key,
    keyed::KeyedRequest,
    layer::IdempotencyKeyLayer,
    refusal::{Refusal, RefusalKind},
    settings::Settings,
};
use crate::{
    ledger::requests::{Begin, RecordKey},
    telemetry,
};

/// What [`IdempotencyKeyLayer`] makes of a service.
#[derive(Clone)]
pub struct IdempotencyKeyService<S> {
    inner: S,
    layer: IdempotencyKeyLayer,
}

impl<S> IdempotencyKeyService<S> {
    pub(super) fn new(inner: S, layer: IdempotencyKeyLayer) -> Self {
        Self { inner, layer }
    }
}

impl<S> fmt::Debug for IdempotencyKeyService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyKeyService").field("layer", &self.layer).finish_non_exhaustive()
    }
}

/// The future of an [`IdempotencyKeyService`].
///
/// # Cancel safety
/// Dropped, it stops neither a handler that runs nor the storing of its answer.
pub struct ResponseFuture<T>(Pin<Box<dyn Future<Output = T> + Send>>);

impl<T> fmt::Debug for ResponseFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

impl<T> Future for ResponseFuture<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        self.0.as_mut().poll(cx)
    }
}

impl<S, Q, B> Service<Request<Q>> for IdempotencyKeyService<S>
where
    S: Service<Request<Q>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    Q: Body<Data = Bytes> + From<Bytes> + Send + 'static,
    Q::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Send + 'static,
{
    type Response = Response<ResponseBody<B>>;
    type Error = S::Error;
    type Future = ResponseFuture<Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Q>) -> Self::Future {
        // The one that is ready is this one's; its copy is not.
        let copy = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, copy);
        let layer = self.layer.clone();
        conceal(&mut request);
        if is_ignored(request.method()) || is_kept_already(&request) {
            return pass(&mut inner, request, &layer.settings);
        }
        match identify(&layer, &mut request) {
            Ok(None) => pass(&mut inner, request, &layer.settings),
            Ok(Some(asks)) => {
                let span = telemetry::request_span();
                ResponseFuture(Box::pin(keyed(inner, request, layer, asks).instrument(span)))
            }
            Err(kind) => {
                let refused = layer.settings.refuse(Refusal::new(kind)).map(ResponseBody::whole);
                ResponseFuture(Box::pin(async move { Ok(refused) }))
            }
        }
    }
}

/// Methods that change nothing: their header is not looked at, valid or not.
fn is_ignored(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE].contains(method)
}

/// Whether a layer further outside has the record: a second one would wait for the first.
fn is_kept_already<Q>(request: &Request<Q>) -> bool {
    request.extensions().get::<KeyedRequest>().is_some_and(KeyedRequest::has_key)
}

/// Further inside, a log that shows headers does not show this one.
fn conceal<Q>(request: &mut Request<Q>) {
    if let http::header::Entry::Occupied(mut lines) = request.headers_mut().entry(key::HEADER) {
        lines.iter_mut().for_each(|line| line.set_sensitive(true));
    }
}

fn pass<S, Q, B>(
    inner: &mut S,
    mut request: Request<Q>,
    settings: &Arc<Settings>,
) -> ResponseFuture<Result<Response<ResponseBody<B>>, S::Error>>
where
    S: Service<Request<Q>, Response = Response<B>>,
    S::Future: Send + 'static,
    B: Body,
{
    request.extensions_mut().get_or_insert_with(|| KeyedRequest::new(Arc::clone(settings), None));
    let answer = inner.call(request);
    ResponseFuture(Box::pin(async move { Ok(answer.await?.map(ResponseBody::untouched)) }))
}

/// Whose record it is.
struct Asks {
    key: RecordKey,
    principal: Option<[u8; 32]>,
}

/// `None` without a key.
fn identify<Q>(layer: &IdempotencyKeyLayer, request: &mut Request<Q>) -> Result<Option<Asks>, RefusalKind> {
    let settings = &layer.settings;
    let lines = request.headers().get_all(key::HEADER).into_iter().map(http::HeaderValue::as_bytes);
    let caller_key = match key::parse(lines, settings.is_quoted_accepted) {
        Ok(Some(key)) => key,
        Ok(None) if settings.is_required => return Err(RefusalKind::KeyRequired),
        Ok(None) => return Ok(None),
        Err(key::OutsideGrammar) => return Err(RefusalKind::KeyInvalid),
    };
    let Some(tenant) = (layer.shared.tenant)(request.extensions()) else {
        telemetry::request_without_tenant();
        return Err(RefusalKind::Unauthenticated);
    };
    let principal = match &settings.principal {
        None => None,
        Some(source) => {
            let name = source(request.extensions()).ok_or(RefusalKind::Unauthenticated)?;
            Some(
                *blake3::Hasher::new_derive_key("effectual principal v1")
                    .update(name.as_bytes())
                    .finalize()
                    .as_bytes(),
            )
        }
    };
    let endpoint = format!("{} {}", request.method(), endpoint(request, settings));
    Ok(Some(Asks { key: RecordKey::new(tenant, endpoint, caller_key.bytes()), principal }))
}

fn endpoint<Q>(request: &Request<Q>, settings: &Settings) -> String {
    if let Some(template) = &settings.endpoint {
        return template.to_string();
    }
    #[cfg(feature = "axum")]
    if let Some(matched) = request.extensions().get::<axum::extract::MatchedPath>() {
        return matched.as_str().to_owned();
    }
    fingerprint::full_uri(request.uri(), request.extensions()).path().to_owned()
}

async fn keyed<S, Q, B>(
    inner: S,
    request: Request<Q>,
    layer: IdempotencyKeyLayer,
    asks: Asks,
) -> Result<Response<ResponseBody<B>>, S::Error>
where
    S: Service<Request<Q>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    Q: Body<Data = Bytes> + From<Bytes> + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Send + 'static,
{
    let refuse = |kind| layer.settings.refuse(Refusal::new(kind)).map(ResponseBody::whole);
    let (parts, body) = request.into_parts();
    let body = match whole(body, layer.settings.request_body_max).await {
        Ok(body) => body,
        Err(kind) => return Ok(refuse(kind)),
    };
    let begin = begin(&parts, &body, asks, &layer.settings);
    let asked = Asked { begin, layer: layer.clone() };
    let request = Request::from_parts(parts, Q::from(body));
    // On a task of its own: a client that goes away stops nothing.
    let driven = tokio::spawn(drive::drive(inner, request, asked).in_current_span());
    driven.await.unwrap_or_else(|_| Ok(refuse(RefusalKind::HandlerFailed)))
}

fn begin(parts: &request::Parts, body: &Bytes, asks: Asks, settings: &Settings) -> Begin {
    Begin {
        key: asks.key,
        fingerprint: fingerprint::of(parts, body),
        principal: asks.principal,
        token: *uuid::Uuid::new_v4().as_bytes(),
        lease_ms: settings.lease_ms(),
        retention_ms: settings.retention_ms(),
    }
}

/// The whole body, unless it is over the limit: then no more of it is read.
async fn whole<Q: Body<Data = Bytes>>(body: Q, max: usize) -> Result<Bytes, RefusalKind> {
    if body.size_hint().lower() > max as u64 {
        return Err(RefusalKind::BodyTooLarge);
    }
    let mut body = std::pin::pin!(body);
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| RefusalKind::BodyIncomplete)?.into_data() else { continue };
        if all.len() + data.len() > max {
            return Err(RefusalKind::BodyTooLarge);
        }
        all.extend_from_slice(&data);
    }
    Ok(all.freeze())
}
