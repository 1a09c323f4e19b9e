//! Runs one body on a task of its own.

use std::{sync::Arc, time::Duration};

use tokio::sync::oneshot;
use tracing::Instrument as _;

use super::{
    attached::lend_body,
    core::{Core, Phase},
    drive::Call,
    erased::{Body, BodyEnd},
    progress::Progress,
};
use crate::{
    clock::{self, Stopwatch},
    context::{Attempt, EffectContext},
    environment::{Gone, Task},
    telemetry,
};

/// How long an aborted body has to be gone at the drain deadline before it is written off.
const ABORT_GRACE: Duration = Duration::from_millis(200);

const ABORTED: &str = "its body was aborted: the attempt's timeout or the drain deadline was over";

/// How an attempt ended, and whether its body is gone.
pub(crate) struct Ran {
    pub(crate) end: BodyEnd,
    pub(crate) body_gone: bool,
}

/// A body that runs, on a task of its own or in its caller's.
struct RunningBody {
    /// Ends when the body is gone.
    task: Task<BodyEnd>,
    /// Tells a body in its caller's task to stop; any other is aborted.
    stop: Option<oneshot::Sender<()>>,
}

impl Call {
    /// Runs the body, at most for the attempt's timeout; returns when the body is gone, but for one that blocks its
    /// thread past the drain deadline.
    pub(crate) async fn run_body(&self, attempt: &Arc<Attempt>) -> Ran {
        let span = telemetry::attempt_span(attempt.number, attempt.held.fence());
        let cx = EffectContext::new(attempt.clone(), &self.scope);
        let ran = self.supervise(self.start_body(cx, &span)).await;
        telemetry::attempt_ended(&span, ran.end.as_str());
        ran
    }

    fn start_body(&self, cx: EffectContext, span: &tracing::Span) -> RunningBody {
        let (progress, runtime) = (self.progress.clone(), &self.scope.core.runtime);
        match &self.body {
            Body::Own(body) => {
                let (body, begun, timeout) =
                    (body.clone(), Stopwatch::start(), self.settings.attempt_timeout);
                let left = move || timeout.saturating_sub(begun.elapsed());
                let run = async move {
                    // One that nothing ran for all its time does not begin any more.
                    if left().is_zero() || !progress.begin() {
                        return BodyEnd::NotStarted;
                    }
                    tokio::select! {
                        biased;
                        end = body(cx) => end,
                        // Looked at when the body first waits: one that never does needs no timer.
                        () = async { clock::sleep(left()).await } => BodyEnd::Lost(ABORTED),
                    }
                };
                RunningBody { task: runtime.spawn(run.instrument(span.clone())), stop: None }
            }
            Body::Absent => RunningBody { task: runtime.spawn(async { BodyEnd::NotStarted }), stop: None },
            Body::Attached(turns) => {
                let (task, stop) = lend_body(runtime, turns, cx, progress, span.clone());
                RunningBody { task, stop: Some(stop) }
            }
        }
    }

    async fn supervise(&self, running: RunningBody) -> Ran {
        let RunningBody { mut task, stop } = running;
        let core: &Core = &self.scope.core;
        tokio::select! {
            biased;
            joined = &mut task => return self.gone(joined, "its body panicked"),
            // One on a task of its own keeps its time itself.
            () = clock::sleep(self.settings.attempt_timeout), if stop.is_some() => {}
            () = core.reached(Phase::Over) => {}
        }
        match stop {
            // Fails only if the body is gone.
            Some(stop) => drop(stop.send(())),
            None => task.abort(),
        }
        let grace = async {
            core.reached(Phase::Over).await;
            clock::sleep(ABORT_GRACE).await;
        };
        tokio::select! {
            biased;
            // It may have ended by itself in the meantime: then that end counts.
            joined = &mut task => self.gone(joined, ABORTED),
            () = grace => Ran { end: BodyEnd::Lost("its body did not stop at the drain deadline"), body_gone: false },
        }
    }

    fn gone(&self, joined: Result<BodyEnd, Gone>, otherwise: &'static str) -> Ran {
        let end = match joined {
            Ok(end) => end,
            Err(_) if self.progress.get() == Progress::OPEN => BodyEnd::NotStarted,
            // A panic's text may hold anything; it is not kept.
            Err(_) => BodyEnd::Lost(otherwise),
        };
        Ran { end, body_gone: true }
    }

    /// How long a request that this attempt let through may still be under way, once its body is gone.
    pub(crate) fn acts_for(&self, attempt: &Attempt) -> Duration {
        match attempt.sends().last {
            // By the clock that no step can push forward.
            Some(last) => self.settings.attempt_timeout.saturating_sub(last.elapsed_monotonic()),
            // The body asked for no permit: what it sent is not known.
            None => self.settings.attempt_timeout,
        }
    }
}

impl BodyEnd {
    fn as_str(&self) -> &'static str {
        use crate::failure::Verdict;
        match self {
            Self::Done(_) => "performed",
            Self::NotStarted => "not_performed",
            Self::Lost(_) => "unknown",
            Self::Failed(failure) => match failure.verdict {
                Verdict::NotPerformed { .. } => "not_performed",
                Verdict::Refused => "refused",
                Verdict::Unknown => "unknown",
            },
        }
    }
}
