//! What the winner of a claim does: attempts, backoffs and look-ups.

use std::{sync::Arc, time::Duration};

use super::{
    attempt::Ran,
    claimed::{Claimed, Lost},
    core::Phase,
    drive::{escaped, new_token},
    erased::{BodyEnd, BodyFailure, CallEnd, CallError},
    held::millis,
    look_up::Looked,
    progress::Progress,
};
use crate::{
    clock::{self, Moment},
    context::Attempt,
    descriptor::RecoveryClass,
    error::{ErrorKind, ProviderCalled},
    failure::Verdict,
    ledger::{
        Change, Task,
        change::Ended,
        record::{AbsentReason, AttemptVerdict, OutcomeBody, OutcomeKind, State},
    },
    retry::delay_after,
};

/// What follows an attempt.
pub(super) enum Next {
    /// The call is over.
    Over(CallEnd),
    /// The next attempt is to be opened after this delay.
    Again { delay: Duration, otherwise: CallError },
    /// The provider is to be asked.
    Ask { otherwise: CallError },
    /// The provider has accepted it and is to be asked by its handle.
    Poll { otherwise: CallError },
}

impl Claimed<'_> {
    /// Performs the effect, or finds out what became of it, to the end of the call.
    pub(crate) async fn perform(&mut self, task: Task) -> Result<CallEnd, Lost> {
        let mut next = match task {
            Task::Perform => self.attempt().await,
            Task::LookUp => Ok(Next::Ask { otherwise: escaped(&self.record()) }),
            Task::Poll => Ok(Next::Poll { otherwise: CallError::new(ErrorKind::Accepted) }),
        };
        loop {
            next = match next? {
                Next::Over(end) => return Ok(end),
                // Boxed, as all that is rare: a call that performs its effect at once makes no room for them.
                Next::Again { delay, otherwise } => Box::pin(self.again(delay, otherwise, false)).await,
                Next::Ask { otherwise } => Box::pin(self.ask(otherwise)).await,
                Next::Poll { otherwise } => Box::pin(self.poll(otherwise)).await,
            }
        }
    }

    async fn attempt(&mut self) -> Result<Next, Lost> {
        self.attempts += 1;
        self.call.progress.set(Progress::OPEN);
        let mut attempt = Arc::new(self.new_attempt());
        let Ran { end, body_gone } = self.call.run_body(&attempt).await;
        if !body_gone {
            return Box::pin(self.label()).await;
        }
        if attempt.transaction.is_some() {
            return Box::pin(self.end_transaction(&mut attempt, end)).await;
        }
        match end {
            BodyEnd::Done(body) => self.settle_success(&attempt, body).await,
            BodyEnd::NotStarted => {
                let error = CallError::new(ErrorKind::Failed).called(ProviderCalled::No);
                let ended = self.ended(&attempt, AttemptVerdict::NotPerformed, None);
                Box::pin(self.leave(ended, None, error.detail("its body was never started"))).await
            }
            BodyEnd::Lost(why) => {
                let error = CallError::new(ErrorKind::Escaped).detail(why);
                Box::pin(self.unknown(&attempt, error, None)).await
            }
            BodyEnd::Failed(failure) => Box::pin(self.failed(&attempt, failure)).await,
        }
    }

    pub(super) async fn failed(&mut self, attempt: &Attempt, failure: BodyFailure) -> Result<Next, Lost> {
        let BodyFailure { verdict, retry_after, stored, error } = failure;
        match verdict {
            Verdict::NotPerformed { .. } if self.accepted(attempt) => {
                self.unknown(attempt, CallError::new(ErrorKind::Accepted).error(Some(error)), None).await
            }
            Verdict::Refused => {
                let body = stored.unwrap_or(OutcomeBody::Absent(AbsentReason::Unencodable));
                self.settle_refusal(attempt, body, CallError::new(ErrorKind::Escaped).error(Some(error)))
                    .await
            }
            Verdict::NotPerformed { retry } => {
                let called =
                    if attempt.sends().last.is_some() { ProviderCalled::Yes } else { ProviderCalled::No };
                let kind = if retry_after.is_some() { ErrorKind::RetryLater } else { ErrorKind::Failed };
                let error = CallError::new(kind).called(called).retry_after(retry_after).error(Some(error));
                self.not_performed(attempt, retry, retry_after, error).await
            }
            Verdict::Unknown => {
                let error = CallError::new(ErrorKind::Escaped).error(Some(error));
                self.unknown(attempt, error, retry_after).await
            }
        }
    }

    pub(super) async fn not_performed(
        &mut self,
        attempt: &Attempt,
        retry: bool,
        retry_after: Option<Duration>,
        error: CallError,
    ) -> Result<Next, Lost> {
        let ended = self.ended(attempt, AttemptVerdict::NotPerformed, None);
        let delay = self.backoff(retry_after);
        if retry && self.may_resend(delay) && self.may_go_on(delay) {
            self.close(ended).await?;
            return Ok(Next::Again { delay, otherwise: error });
        }
        self.leave(ended, retry_after, error).await
    }

    /// Whether an older doubt lets another request go out after `delay`.
    fn may_resend(&self, delay: Duration) -> bool {
        match &self.record().doubt {
            Some(doubt) if doubt.class == RecoveryClass::Resend => self.in_window(delay),
            _ => true,
        }
    }

    /// The attempt's end is unknown: its class says what follows.
    async fn unknown(
        &mut self,
        attempt: &Attempt,
        error: CallError,
        retry_after: Option<Duration>,
    ) -> Result<Next, Lost> {
        let stored = self.class_at_unknown_end(attempt);
        let ended = self.ended(attempt, AttemptVerdict::Unknown, stored);
        if self.accepted(attempt) {
            return self.go_on_accepted(ended, error).await;
        }
        let record = self.record();
        let class = record.doubt_with(stored.unwrap_or(record.class), 0, None).class;
        let delay = self.backoff(retry_after).max(self.quiet_before_resend(class, attempt));
        let again = match class {
            RecoveryClass::Rerun => true,
            RecoveryClass::Resend => self.in_window(delay),
            _ => false,
        };
        // Of a caller that went away, the next call asks.
        let ask = !again
            && self.call.can_look_up()
            && class <= RecoveryClass::Reconcile
            && !self.call.is_caller_gone();
        if again && self.may_go_on(delay) {
            self.close(ended).await?;
            Ok(Next::Again { delay, otherwise: error })
        } else if ask {
            self.close(ended).await?;
            Ok(Next::Ask { otherwise: error })
        } else {
            let error = match class {
                _ if !again => error,
                RecoveryClass::Rerun => {
                    error.retry_after(Some(delay)).detail("the next call performs it again")
                }
                _ => error.retry_after(Some(delay)).detail("the next call sends it again under the same key"),
            };
            self.leave(ended, None, error).await
        }
    }

    /// Whether the provider works on it already: then nothing is submitted again, whatever the body says.
    fn accepted(&self, attempt: &Attempt) -> bool {
        rule!(AcceptedIsNotFailed) && (attempt.accepted() || self.record().accepted.is_some())
    }

    /// The class that an attempt with an unknown end is judged by: sending again is no way out if the key was not taken,
    /// or if the provider replays its stored failure.
    fn class_at_unknown_end(&self, attempt: &Attempt) -> Option<RecoveryClass> {
        if self.record().class != RecoveryClass::Resend || !rule!(ResendNeedsTheKey) {
            return None;
        }
        if attempt.provider_replay() {
            let ask = self.call.can_look_up();
            return Some(if ask { RecoveryClass::Reconcile } else { RecoveryClass::Hold });
        }
        (!attempt.key_taken()).then_some(RecoveryClass::Hold)
    }

    /// Waits, and opens the next attempt.
    async fn again(
        &mut self,
        delay: Duration,
        otherwise: CallError,
        doubt_cleared: bool,
    ) -> Result<Next, Lost> {
        tokio::select! {
            biased;
            () = self.call.told_to_stop() => return self.give_up(None, otherwise).await,
            () = clock::sleep(delay) => {}
        }
        let settings = &self.call.settings;
        let change = Change::Open {
            token: new_token(),
            class: settings.class,
            lease_ms: millis(settings.lease),
            attempt_timeout_ms: millis(settings.attempt_timeout),
            doubt_cleared,
        };
        let sent = Moment::now();
        self.write(&change).await?;
        self.opened(sent);
        self.attempt().await
    }

    /// Asks the provider what happened, and goes on from what it says.
    async fn ask(&mut self, otherwise: CallError) -> Result<Next, Lost> {
        self.call.progress.set(Progress::CLOSED);
        match self.look_up().await {
            Looked::Done(body) => self.settle_found(OutcomeKind::Success, body).await,
            Looked::Refused(body) => self.settle_found(OutcomeKind::Refusal, body).await,
            Looked::Absent if !self.call.can_perform() => self.release_absent(otherwise).await,
            Looked::Absent if self.may_go_on(Duration::ZERO) => {
                self.again(Duration::ZERO, otherwise, true).await
            }
            Looked::Absent => self.give_up(None, otherwise.retry_after(Some(Duration::ZERO))).await,
            Looked::NotYet(wait) => {
                let otherwise = otherwise.retry_after(Some(wait));
                self.give_up(Some(wait), otherwise).await
            }
            Looked::Unknown => self.give_up(None, otherwise).await,
        }
    }

    /// Ends the attempt and keeps the claim.
    async fn close(&mut self, ended: Ended) -> Result<(), Lost> {
        self.write(&Change::End { ended, keep_claim: true, not_before_ms: None }).await?;
        self.call.progress.set(Progress::CLOSED);
        Ok(())
    }

    /// Ends the attempt and the claim.
    pub(super) async fn leave(
        &mut self,
        ended: Ended,
        not_before: Option<Duration>,
        error: CallError,
    ) -> Result<Next, Lost> {
        let not_before = self.not_before(not_before);
        self.write(&Change::End { ended, keep_claim: false, not_before_ms: not_before.map(millis) }).await?;
        self.over();
        Ok(Next::Over(self.in_the_end(error).into()))
    }

    /// The provider has not performed it, and nobody is here who could.
    async fn release_absent(&mut self, otherwise: CallError) -> Result<Next, Lost> {
        self.write(&Change::Clear).await?;
        self.over();
        let released = CallError::new(ErrorKind::RetryLater).retry_after(Some(Duration::ZERO));
        Ok(Next::Over(released.error_of(otherwise).into()))
    }

    /// Gives back a claim whose attempt is closed.
    pub(super) async fn give_up(
        &mut self,
        not_before: Option<Duration>,
        error: CallError,
    ) -> Result<Next, Lost> {
        self.leave(Ended::found(AttemptVerdict::Unknown), not_before, error).await
    }

    /// The attempt is over, and its action is the provider's to finish.
    async fn go_on_accepted(&mut self, ended: Ended, error: CallError) -> Result<Next, Lost> {
        if self.call.can_poll() && !self.call.is_caller_gone() {
            self.close(ended).await?;
            return Ok(Next::Poll { otherwise: error });
        }
        let mut accepted = CallError::new(ErrorKind::Accepted).error_of(error);
        if let Some(handle) = &self.record().accepted {
            let delay_ms = (handle.poll_after - self.ledger_now()).max(0);
            accepted = accepted.retry_after(Some(Duration::from_millis(delay_ms.unsigned_abs())));
            accepted.handle = Some(handle.handle.clone());
        }
        self.write(&Change::End { ended, keep_claim: false, not_before_ms: None }).await?;
        self.over();
        Ok(Next::Over(accepted.into()))
    }

    /// Marks an attempt whose body could not be stopped; its lease runs on.
    async fn label(&mut self) -> Result<Next, Lost> {
        self.write(&Change::Label).await?;
        self.over();
        let error = CallError::new(ErrorKind::Escaped).detail("its body did not stop at the drain deadline");
        Ok(Next::Over(error.into()))
    }

    /// An effect that stays in doubt is escaped, whatever the last attempt's own end.
    fn in_the_end(&self, error: CallError) -> CallError {
        let record = self.record();
        match record.state {
            State::Escaped if error.kind != ErrorKind::Escaped => {
                escaped(&record).retry_after(error.retry_after).error_of(error)
            }
            _ => error,
        }
    }

    fn backoff(&self, retry_after: Option<Duration>) -> Duration {
        delay_after(&self.call.settings.retry, self.attempts).max(retry_after.unwrap_or_default())
    }

    /// Whether this call's bounds allow another attempt after the delay.
    fn may_go_on(&self, delay: Duration) -> bool {
        let retry = &self.call.settings.retry;
        self.attempts < retry.attempts_max
            && self.call.started().elapsed().saturating_add(delay) <= retry.elapsed_max
            && self.call.scope.core.phase() == Phase::Open
            && !self.call.is_caller_gone()
    }
}
