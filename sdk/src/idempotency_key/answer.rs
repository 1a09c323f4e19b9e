//! What becomes of a handler's answer: kept, kept without its body, not final, or not kept.

use std::{borrow::Cow, collections::VecDeque, pin::Pin};

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header, response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use serde::Deserialize;

use super::{
    body::{ResponseBody, Rest},
    fingerprint::is_json_type,
    settings::{FALSE, Settings},
};
use crate::{
    clock::{self, Moment, Until},
    ledger::requests::{Absence, Change, StoredResponse},
};

/// The error code of an answer, in its extensions: for answers whose body is not JSON with the code as its `error`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorCode(pub Cow<'static, str>);

impl ErrorCode {
    /// A code that is known at compile time.
    #[must_use]
    pub const fn new(code: &'static str) -> Self {
        Self(Cow::Borrowed(code))
    }
}

/// In an answer's extensions: its body is a stream, and passes as it comes. Types that are always streams, such as
/// `text/event-stream`, need no such mark.
#[derive(Debug, Clone, Copy)]
pub struct Streamed;

/// Content types that are streams by their nature.
const STREAMS: [&str; 6] = [
    "text/event-stream",
    "application/x-ndjson",
    "application/jsonl",
    "application/json-seq",
    "application/grpc",
    "multipart/x-mixed-replace",
];

/// An answer, and what the record is to say of it.
pub(super) struct Taken<B: Body> {
    pub(super) ending: Ending,
    pub(super) response: Response<ResponseBody<B>>,
}

pub(super) enum Ending {
    Complete(Result<StoredResponse, Absence>),
    /// Not final: the same request runs again.
    Retryable,
    /// As if it had not been sent.
    Forget,
}

impl Ending {
    pub(super) fn change(self, retention_ms: i64) -> Change {
        match self {
            Self::Complete(answer) => Change::Complete { answer, retention_ms },
            Self::Retryable => Change::Fail { keep_digest: true, retention_ms },
            Self::Forget => Change::Fail { keep_digest: false, retention_ms },
        }
    }
}

/// Takes an answer: reads its body as far as it is to be kept.
pub(super) async fn take<B: Body<Data = Bytes>>(response: Response<B>, settings: &Settings) -> Taken<B> {
    let (parts, body) = response.into_parts();
    let read = if is_stream(&parts) { Read::streamed(body) } else { read(body, settings).await };
    let code = code_of(&parts, read.whole.as_ref().ok());
    let ending = match fate(parts.status, code.as_deref(), settings) {
        Fate::Final => Ending::Complete(read.whole.map(|body| stored(&parts, &body, settings))),
        Fate::Retryable => Ending::Retryable,
        Fate::Forgotten => Ending::Forget,
    };
    let mut response = Response::from_parts(parts, ResponseBody::new(read.front, read.rest));
    if matches!(ending, Ending::Complete(Err(_))) {
        response.headers_mut().insert(&settings.not_replayable, FALSE);
    }
    Taken { ending, response }
}

enum Fate {
    Final,
    Retryable,
    Forgotten,
}

fn fate(status: StatusCode, code: Option<&str>, settings: &Settings) -> Fate {
    if code.is_some_and(|code| settings.retriable_codes.contains(code)) {
        return Fate::Retryable;
    }
    match (status.as_u16(), code) {
        (408 | 425 | 429 | 500.., _) | (409, Some("idempotency_in_flight")) => Fate::Retryable,
        (401 | 403, _) | (400, Some("validation_error" | "idempotency_key_invalid")) => Fate::Forgotten,
        _ => Fate::Final,
    }
}

fn code_of<'a>(parts: &'a response::Parts, body: Option<&Bytes>) -> Option<Cow<'a, str>> {
    #[derive(Deserialize)]
    struct Shape {
        error: String,
    }
    if let Some(ErrorCode(code)) = parts.extensions.get() {
        return Some(Cow::Borrowed(code));
    }
    let may_fail = parts.status.is_client_error() || parts.status.is_server_error();
    let content_type = parts.headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let shape = (may_fail && is_json_type(content_type)).then(|| serde_json::from_slice::<Shape>(body?).ok());
    Some(Cow::Owned(shape.flatten()?.error))
}

fn is_stream(parts: &response::Parts) -> bool {
    let content_type = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or_default().to_ascii_lowercase();
    parts.status.is_informational()
        || parts.extensions.get::<Streamed>().is_some()
        || STREAMS.iter().any(|stream| content_type.starts_with(stream))
}

/// The answer as it is given again.
fn stored(parts: &response::Parts, body: &[u8], settings: &Settings) -> StoredResponse {
    let hops = connection_options(&parts.headers);
    let is_kept = |name: &str| !settings.denied.contains(name) && !hops.iter().any(|hop| hop == name);
    let headers = parts.headers.iter().filter(|(name, _)| is_kept(name.as_str()));
    StoredResponse {
        status: parts.status.as_u16(),
        headers: headers.map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec())).collect(),
        body: body.to_vec(),
    }
}

/// Headers that the answer itself says are for one connection only.
fn connection_options(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(header::CONNECTION).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(|name| name.trim().to_ascii_lowercase()).collect()
}

/// A body, as far as it was read.
struct Read<B: Body> {
    /// All of it, or why not.
    whole: Result<Bytes, Absence>,
    front: VecDeque<Frame<Bytes>>,
    rest: Rest<B>,
}

impl<B: Body> Read<B> {
    fn streamed(body: B) -> Self {
        Self { whole: Err(Absence::Streamed), front: VecDeque::new(), rest: Rest::Body(Box::pin(body)) }
    }
}

async fn read<B: Body<Data = Bytes>>(body: B, settings: &Settings) -> Read<B> {
    let max = settings.response_body_max;
    let mut body: Pin<Box<B>> = Box::pin(body);
    let (mut front, mut length) = (VecDeque::new(), 0);
    if body.size_hint().lower() > max as u64 {
        return Read { whole: Err(Absence::TooLarge), front, rest: Rest::Body(body) };
    }
    let limit = Until::new(Moment::now(), settings.stream_after);
    let absence = loop {
        match clock::within(limit.remaining(), body.frame()).await {
            None => break Absence::Streamed,
            Some(None) => {
                let whole = Ok(joined(&front, length));
                return Read { whole, front, rest: Rest::Nothing };
            }
            // A body that ends in an error is an answer that nobody has seen whole: it is not kept, and not run again.
            Some(Some(Err(error))) => {
                return Read { whole: Err(Absence::Streamed), front, rest: Rest::Failed(error) };
            }
            Some(Some(Ok(frame))) => {
                let data = frame.data_ref().map(Bytes::len);
                length += data.unwrap_or(0);
                front.push_back(frame);
                match data {
                    // Trailers have no place in what is kept.
                    None => break Absence::Streamed,
                    Some(_) if length > max => break Absence::TooLarge,
                    Some(_) => {}
                }
            }
        }
    };
    Read { whole: Err(absence), front, rest: Rest::Body(body) }
}

fn joined(frames: &VecDeque<Frame<Bytes>>, length: usize) -> Bytes {
    if let (1, Some(data)) = (frames.len(), frames.front().and_then(Frame::data_ref)) {
        return data.clone();
    }
    let mut all = Vec::with_capacity(length);
    frames.iter().filter_map(Frame::data_ref).for_each(|data| all.extend_from_slice(data));
    all.into()
}
