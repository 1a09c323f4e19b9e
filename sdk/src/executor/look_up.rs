//! Asking the provider what happened, before anything is sent again.

use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use super::{claimed::Claimed, core::Phase, erased::encode};
use crate::{
    clock, context::EffectContext, environment::Task, failure::Found, ledger::record::OutcomeBody,
    provider::LookUp, retry::delay_after,
};

/// What asking came to.
pub(crate) enum Looked {
    Done(OutcomeBody),
    Refused(OutcomeBody),
    /// Absent, and no attempt in doubt can act any more.
    Absent,
    /// Absent so far; the answer counts only after this long.
    NotYet(Duration),
    Unknown,
}

impl Claimed<'_> {
    /// Asks until the answer counts, within the call's bounds. "Absent" counts only if the question was put after every
    /// attempt in doubt had lost its chance to act.
    pub(crate) async fn look_up(&self) -> Looked {
        let retry = &self.call.settings.retry;
        let mut unknown = 0;
        loop {
            let wait = self.until_quiet(i64::MIN, self.call.settings.settle_delay);
            let (delay, otherwise) = match self.ask_once().await {
                Found::Done(body) => return Looked::Done(body),
                Found::Refused(body) => return Looked::Refused(body),
                Found::Absent if wait.is_zero() || !rule!(AbsentCountsOnceQuiet) => return Looked::Absent,
                Found::Absent => (wait, Looked::NotYet(wait)),
                Found::Unknown => {
                    unknown += 1;
                    if unknown >= retry.attempts_max {
                        return Looked::Unknown;
                    }
                    (delay_after(retry, unknown), Looked::Unknown)
                }
            };
            // A recovery holds no claim to wait in: the next pass asks again.
            let stays = self.call.unattended.is_none();
            if !stays || self.call.started().elapsed().saturating_add(delay) > retry.elapsed_max {
                return otherwise;
            }
            tokio::select! {
                biased;
                () = self.call.told_to_stop() => return otherwise,
                () = clock::sleep(delay) => {}
            }
        }
    }

    /// One question, on a task of its own: a panic in it is no answer.
    async fn ask_once(&self) -> Found<OutcomeBody, OutcomeBody> {
        let task = match &self.call.look_up {
            Some(look_up) => {
                let attempt = Arc::new(self.look_up_attempt());
                let cx = EffectContext::new(attempt, &self.call.scope);
                let look_up = look_up.clone();
                // Inside the task, because arguments are cloned there.
                self.call.scope.core.runtime.spawn(async move { look_up(cx).await })
            }
            None => self.ask_provider(),
        };
        let mut task = AbortOnDrop(task);
        tokio::select! {
            biased;
            answer = &mut task.0 => answer.unwrap_or(Found::Unknown),
            () = clock::sleep(self.call.settings.attempt_timeout) => Found::Unknown,
            () = self.call.scope.core.reached(Phase::Over) => Found::Unknown,
        }
    }

    fn ask_provider(&self) -> Task<Found<OutcomeBody, OutcomeBody>> {
        let descriptor = self.call.settings.descriptor;
        let provider = self.call.scope.core.provider(descriptor);
        let record = self.record();
        let since = UNIX_EPOCH + Duration::from_millis(record.created_at.max(0).unsigned_abs());
        self.call.scope.core.runtime.spawn(async move {
            let Some(provider) = provider else { return Found::Unknown };
            match provider
                .look_up_dyn(
                    &LookUp::new(&record.provider_key, &record.id, descriptor.operation).since(since),
                )
                .await
            {
                Found::Done(value) => Found::Done(encode(&value)),
                Found::Refused(value) => Found::Refused(encode(&value)),
                Found::Absent => Found::Absent,
                Found::Unknown => Found::Unknown,
            }
        })
    }
}

pub(super) struct AbortOnDrop<T>(pub(super) Task<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
