//! Asking the provider by the handle of an accepted effect, until the job ends or the call's bounds are reached.

use std::{sync::Arc, time::Duration};

use super::{
    claimed::{Claimed, Lost},
    core::Phase,
    drive::Call,
    erased::{CallError, encode},
    held::millis,
    look_up::AbortOnDrop,
    perform::Next,
};
use crate::{
    clock,
    context::EffectContext,
    environment::Task,
    error::{ErrorKind, ProviderCalled},
    failure::Polled,
    ledger::{
        Change,
        record::{AcceptedHandle, OutcomeBody, OutcomeKind},
    },
    provider::Poll,
    retry::delay_after,
};

impl Call {
    pub(crate) fn can_poll(&self) -> bool {
        self.poll.is_some() || self.scope.core.may_poll(self.settings.descriptor)
    }

    /// Whether a caller that is told to ask later can do so within its bounds.
    pub(crate) fn may_poll_after(&self, delay_ms: i64) -> bool {
        delay_ms > 0 && self.can_poll() && self.may_wait(Duration::from_millis(delay_ms.unsigned_abs()))
    }

    fn may_wait(&self, delay: Duration) -> bool {
        self.unattended.is_none()
            && self.started().elapsed().saturating_add(delay) <= self.settings.retry.elapsed_max
            && self.scope.core.phase() == Phase::Open
            && !self.is_caller_gone()
    }

    /// Waits; whether the call may then go on.
    pub(crate) async fn waited(&self, delay: Duration) -> bool {
        tokio::select! {
            biased;
            () = self.told_to_stop() => false,
            () = clock::sleep(delay) => true,
        }
    }
}

impl Claimed<'_> {
    /// Asks until the job ends. `otherwise` is the end of a call whose bounds are reached before that.
    pub(super) async fn poll(&mut self, otherwise: CallError) -> Result<Next, Lost> {
        let Some(AcceptedHandle { handle, poll_after }) = self.record().accepted.clone() else {
            return self.give_up(None, otherwise).await;
        };
        let base = self.call.settings.retry.base;
        let mut delay = Duration::from_millis((poll_after - self.ledger_now()).max(0).unsigned_abs());
        let mut unanswered = 0;
        loop {
            let goes_on = delay.is_zero() || (self.call.may_wait(delay) && self.call.waited(delay).await);
            if !goes_on {
                return self.still_accepted(handle, delay, otherwise).await;
            }
            delay = match self.poll_once(&handle).await {
                Polled::Done(body) => return self.settle_found(OutcomeKind::Success, body).await,
                Polled::Failed(body) => return self.settle_found(OutcomeKind::Refusal, body).await,
                Polled::UnknownHandle => return self.unknown_handle(handle, otherwise).await,
                Polled::Running { poll_after } => poll_after.max(base),
                Polled::Unsupported => {
                    self.call.scope.core.cannot_poll(self.call.settings.descriptor);
                    return self.still_accepted(handle, Duration::ZERO, otherwise).await;
                }
                Polled::Unknown => {
                    unanswered += 1;
                    self.backoff_in_doubt(delay_after(&self.call.settings.retry, unanswered))
                }
            };
        }
    }

    /// Gives the claim back, with the time before which nobody asks again.
    async fn still_accepted(
        &mut self,
        handle: String,
        delay: Duration,
        otherwise: CallError,
    ) -> Result<Next, Lost> {
        self.write(&Change::Polled { poll_after_ms: millis(delay) }).await?;
        self.over();
        let mut accepted = CallError::new(ErrorKind::Accepted).error_of(otherwise).retry_after(Some(delay));
        accepted.handle = Some(handle);
        Ok(Next::Over(accepted.into()))
    }

    /// Nobody can know what became of it, and it is not submitted again. It is asked again later: a provider may learn of its
    /// own job late.
    async fn unknown_handle(&mut self, handle: String, otherwise: CallError) -> Result<Next, Lost> {
        let delay = self.backoff_in_doubt(delay_after(&self.call.settings.retry, self.attempts.max(1)));
        self.write(&Change::Polled { poll_after_ms: millis(delay) }).await?;
        self.over();
        let mut escaped = CallError::new(ErrorKind::Escaped)
            .called(ProviderCalled::Yes)
            .error_of(otherwise)
            .retry_after(Some(delay))
            .detail("the provider accepted it, and does not know the handle that it gave");
        escaped.handle = Some(handle);
        Ok(Next::Over(escaped.into()))
    }

    /// One question, on a task of its own: a panic in it is no answer.
    async fn poll_once(&self, handle: &str) -> Polled<OutcomeBody, OutcomeBody> {
        let task = match &self.call.poll {
            Some(poll) => {
                let cx = EffectContext::new(Arc::new(self.look_up_attempt()), &self.call.scope);
                let (poll, handle) = (poll.clone(), handle.to_owned());
                // Inside the task, because arguments are cloned there.
                self.call.scope.core.runtime.spawn(async move { poll(cx, handle).await })
            }
            None => self.poll_provider(handle.to_owned()),
        };
        let mut task = AbortOnDrop(task);
        tokio::select! {
            biased;
            answer = &mut task.0 => answer.unwrap_or(Polled::Unknown),
            () = clock::sleep(self.call.settings.attempt_timeout) => Polled::Unknown,
            () = self.call.scope.core.reached(Phase::Over) => Polled::Unknown,
        }
    }

    fn poll_provider(&self, handle: String) -> Task<Polled<OutcomeBody, OutcomeBody>> {
        let descriptor = self.call.settings.descriptor;
        let provider = self.call.scope.core.provider(descriptor);
        let record = self.record();
        self.call.scope.core.runtime.spawn(async move {
            let Some(provider) = provider else { return Polled::Unsupported };
            match provider
                .poll_dyn(&Poll::new(&handle, &record.provider_key, &record.id, descriptor.operation))
                .await
            {
                Polled::Done(value) => Polled::Done(encode(&value)),
                Polled::Failed(value) => Polled::Failed(encode(&value)),
                Polled::Running { poll_after } => Polled::Running { poll_after },
                Polled::UnknownHandle => Polled::UnknownHandle,
                Polled::Unsupported => Polled::Unsupported,
                Polled::Unknown => Polled::Unknown,
            }
        })
    }
}
