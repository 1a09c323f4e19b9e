//! The body of an answer that came through the layer.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// A stored body, or the handler's own: what the layer has read of it, and the rest as it comes.
pub struct ResponseBody<B: Body> {
    front: VecDeque<Frame<Bytes>>,
    rest: Rest<B>,
}

pub(super) enum Rest<B: Body> {
    Nothing,
    Body(Pin<Box<B>>),
    /// Reading it failed: what was read comes first.
    Failed(B::Error),
}

// Nothing in it is pinned in place: the handler's body has a box of its own.
impl<B: Body> Unpin for ResponseBody<B> {}

impl<B: Body> fmt::Debug for ResponseBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").field("frames_read", &self.front.len()).finish_non_exhaustive()
    }
}

impl<B: Body> ResponseBody<B> {
    pub(super) fn new(front: VecDeque<Frame<Bytes>>, rest: Rest<B>) -> Self {
        Self { front, rest }
    }

    pub(super) fn whole(bytes: Bytes) -> Self {
        let front = if bytes.is_empty() { VecDeque::new() } else { [Frame::data(bytes)].into() };
        Self { front, rest: Rest::Nothing }
    }

    pub(super) fn untouched(body: B) -> Self {
        Self { front: VecDeque::new(), rest: Rest::Body(Box::pin(body)) }
    }

    fn front_length(&self) -> u64 {
        self.front.iter().filter_map(Frame::data_ref).map(|data| data.len() as u64).sum()
    }
}

impl<B: Body<Data = Bytes>> Body for ResponseBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if let Some(frame) = self.front.pop_front() {
            return Poll::Ready(Some(Ok(frame)));
        }
        match &mut self.rest {
            Rest::Body(body) => body.as_mut().poll_frame(cx),
            rest => Poll::Ready(match std::mem::replace(rest, Rest::Nothing) {
                Rest::Failed(error) => Some(Err(error)),
                _ => None,
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.front.is_empty()
            && match &self.rest {
                Rest::Nothing => true,
                Rest::Body(body) => body.is_end_stream(),
                Rest::Failed(_) => false,
            }
    }

    fn size_hint(&self) -> SizeHint {
        let front = self.front_length();
        let rest = match &self.rest {
            Rest::Nothing => SizeHint::with_exact(0),
            Rest::Body(body) => body.size_hint(),
            Rest::Failed(_) => SizeHint::default(),
        };
        let mut hint = SizeHint::new();
        hint.set_lower(front.saturating_add(rest.lower()));
        if let Some(upper) = rest.upper().and_then(|upper| upper.checked_add(front)) {
            hint.set_upper(upper);
        }
        hint
    }
}
