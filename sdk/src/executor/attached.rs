//! Effects whose body runs in the caller's task, because it borrows from the caller. Claim, retries and settle stay with a
//! task of their own: it lends the caller one turn after another, and outlives it.

use std::{
    future::{Future, poll_fn},
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use tokio::sync::{
    mpsc,
    oneshot::{self, error::TryRecvError},
};
use tracing::Instrument as _;

use super::{
    call::{Frozen, Running},
    core::Phase,
    drive::Call,
    erased::{Body, BodyEnd, BoxFuture, LookUpBody, body_end, look_up_end},
    progress::Progress,
};
use crate::{
    context::EffectContext,
    environment::{Runtime, Task},
    failure::{Failure, Found, Outcome},
    ledger::record::OutcomeBody,
};

/// Where the task of a call sends the turns of its caller. Closed when the caller has gone away.
pub(crate) type Turns = mpsc::UnboundedSender<(Turn, EffectContext)>;

/// The caller's end.
pub(super) type TurnsOfCaller = mpsc::UnboundedReceiver<(Turn, EffectContext)>;

/// One thing that the caller's task is to run: the body of an attempt, or the look-up. Not part of the public interface.
#[doc(hidden)]
pub struct Turn(Kind);

enum Kind {
    Body(BodyTurn),
    LookUp(oneshot::Sender<Found<OutcomeBody, OutcomeBody>>),
}

struct BodyTurn {
    progress: Arc<Progress>,
    span: tracing::Span,
    stop: oneshot::Receiver<()>,
    ended: oneshot::Sender<BodyEnd>,
}

impl Turn {
    /// Whether this is a look-up.
    #[must_use]
    pub fn is_look_up(&self) -> bool {
        matches!(self.0, Kind::LookUp(_))
    }

    /// Runs the body of an attempt. It is gone when its end is told, whatever the end.
    pub async fn perform<T: Outcome, E: Failure>(self, body: impl Future<Output = crate::Result<T, E>>) {
        let Kind::Body(BodyTurn { progress, span, mut stop, ended }) = self.0 else { return };
        // Told to stop before it began, or nobody is left to be told its end.
        if stop.try_recv() != Err(TryRecvError::Empty) || !progress.begin() {
            return;
        }
        let end = {
            let mut body = pin!(body.instrument(span));
            tokio::select! {
                biased;
                _ = stop => BodyEnd::Lost("its body was dropped: the attempt's timeout or the drain deadline was over"),
                end = poll_fn(|cx| poll_caught(body.as_mut(), cx)) => end,
            }
        };
        // Fails only if the executor's runtime is gone, and then nobody waits.
        let _ = ended.send(end);
    }

    /// Runs the look-up, as long as somebody waits for its answer.
    pub async fn look_up<T: Outcome, E: Failure>(
        self,
        look_up: impl Future<Output = Result<Found<T, E>, E>>,
    ) {
        let Kind::LookUp(mut answer) = self.0 else { return };
        let mut look_up = pin!(look_up);
        let asking = poll_fn(|cx| {
            catch_unwind(AssertUnwindSafe(|| look_up.as_mut().poll(cx).map(look_up_end)))
                .unwrap_or(Poll::Ready(Found::Unknown))
        });
        let found = tokio::select! {
            biased;
            found = asking => Some(found),
            () = answer.closed() => None,
        };
        if let Some(found) = found {
            let _ = answer.send(found);
        }
    }
}

/// A panic of the body, or of its outcome's encoder, ends the attempt and not the caller.
fn poll_caught<T: Outcome, E: Failure>(
    body: Pin<&mut impl Future<Output = crate::Result<T, E>>>,
    cx: &mut Context<'_>,
) -> Poll<BodyEnd> {
    catch_unwind(AssertUnwindSafe(|| body.poll(cx).map(body_end)))
        .unwrap_or(Poll::Ready(BodyEnd::Lost("its body panicked")))
}

/// A body as the call's task sees it: it sends a turn and waits until the caller's body is gone.
pub(super) fn lend_body(
    runtime: &Runtime,
    turns: &Turns,
    cx: EffectContext,
    progress: Arc<Progress>,
    span: tracing::Span,
) -> (Task<BodyEnd>, oneshot::Sender<()>) {
    let (stop, told) = oneshot::channel();
    let (ended, end) = oneshot::channel();
    let turn = BodyTurn { progress: progress.clone(), span, stop: told, ended };
    let _ = turns.send((Turn(Kind::Body(turn)), cx));
    let waiting = runtime.spawn(async move {
        match end.await {
            Ok(end) => end,
            Err(_) if progress.get() == Progress::OPEN => BodyEnd::NotStarted,
            Err(_) => BodyEnd::Lost("its caller went away"),
        }
    });
    (waiting, stop)
}

/// A look-up as the call's task sees it.
pub(super) fn lend_look_up(turns: Turns) -> LookUpBody {
    Arc::new(move |cx| -> BoxFuture<_> {
        let (answer, answered) = oneshot::channel();
        let _ = turns.send((Turn(Kind::LookUp(answer)), cx));
        Box::pin(async move { answered.await.unwrap_or(Found::Unknown) })
    })
}

impl Call {
    /// Resolves when no new attempt is to start: the executor drains, or an attached effect's caller has gone away.
    pub(crate) async fn told_to_stop(&self) {
        tokio::select! {
            biased;
            () = self.scope.core.reached(Phase::Draining) => {}
            () = self.caller_gone() => {}
        }
    }

    /// Whether there is nobody to run an attached effect's body.
    pub(crate) fn is_caller_gone(&self) -> bool {
        matches!(&self.body, Body::Attached(turns) if turns.is_closed())
    }

    async fn caller_gone(&self) {
        match &self.body {
            Body::Attached(turns) => turns.closed().await,
            Body::Own(_) | Body::Absent => std::future::pending().await,
        }
    }
}

/// An attached call that has not begun. Not part of the public interface.
#[doc(hidden)]
pub struct Attachment<T, E> {
    call: Frozen,
    turns: TurnsOfCaller,
    types: PhantomData<fn() -> (T, E)>,
}

/// An attached call, seen from the caller's task. Not part of the public interface.
#[doc(hidden)]
pub struct AttachedCall<T, E> {
    call: Running,
    turns: TurnsOfCaller,
    types: PhantomData<fn() -> (T, E)>,
}

impl<T: Outcome, E: Failure> Attachment<T, E> {
    pub(super) fn new(call: Frozen, turns: TurnsOfCaller) -> Self {
        Self { call, turns, types: PhantomData }
    }

    /// Begins the call, when the caller polls it first.
    #[must_use]
    pub fn begin(self) -> AttachedCall<T, E> {
        AttachedCall { call: self.call.spawn(), turns: self.turns, types: PhantomData }
    }
}

impl<T: Outcome, E: Failure> AttachedCall<T, E> {
    /// The caller's next turn; `None` when the call is over.
    pub async fn next_turn(&mut self) -> Option<(Turn, EffectContext)> {
        self.turns.recv().await
    }

    /// How the call ended.
    ///
    /// # Errors
    /// The effect's.
    pub async fn end(self) -> crate::Result<T, E> {
        self.call.end().await
    }
}
