//! The settle: what is stored of an outcome, and the end of the call that stored it.

#[cfg(effectual_mutations)]
use super::erased::{Answer, CallEnd};
use super::{
    claimed::{Claimed, Lost},
    drive::stored,
    erased::{CallError, has_secret, withheld},
    held::millis,
    known::Asked,
    perform::Next,
};
use crate::{
    context::Attempt,
    ledger::{
        Change,
        change::Ended,
        record::{AbsentReason, AttemptVerdict, OutcomeBody, OutcomeKind, State},
    },
};

impl Claimed<'_> {
    pub(super) fn settle_success(
        &mut self,
        attempt: &Attempt,
        body: OutcomeBody,
    ) -> impl Future<Output = Result<Next, Lost>> + Send {
        let ended = self.ended(attempt, AttemptVerdict::Performed, None);
        self.settle(ended, OutcomeKind::Success, body, attempt.provider_replay(), true)
    }

    pub(super) async fn settle_refusal(
        &mut self,
        attempt: &Attempt,
        body: OutcomeBody,
        in_doubt: CallError,
    ) -> Result<Next, Lost> {
        let ended = self.ended(attempt, AttemptVerdict::Refused, None);
        let replay = attempt.provider_replay();
        let next = self.settle(ended, OutcomeKind::Refusal, body, replay, replay).await?;
        if self.record().state == State::Escaped {
            let error = in_doubt.detail("this attempt was refused, and an earlier one may have performed it");
            return Ok(Next::Over(error.into()));
        }
        Ok(next)
    }

    pub(super) async fn settle_found(&mut self, kind: OutcomeKind, body: OutcomeBody) -> Result<Next, Lost> {
        let verdict = match kind {
            OutcomeKind::Success => AttemptVerdict::Performed,
            OutcomeKind::Refusal => AttemptVerdict::Refused,
        };
        self.settle(Ended::found(verdict), kind, body, false, true).await
    }

    fn settle(
        &mut self,
        ended: Ended,
        kind: OutcomeKind,
        body: OutcomeBody,
        provider_replay: bool,
        conclusive: bool,
    ) -> impl Future<Output = Result<Next, Lost>> + Send {
        let (body, kept_back) = self.to_store(body);
        let change = self.settlement(ended, kind, body, provider_replay, conclusive);
        async move {
            #[cfg(effectual_mutations)]
            if let (Change::Settle { body, .. }, OutcomeKind::Success, false) =
                (&change, kind, rule!(OutcomeIsStoredFirst))
            {
                self.leave_to_last_writes(&change);
                return Ok(Next::Over(CallEnd::Success {
                    answer: Answer::Here(body.clone()),
                    replayed: false,
                }));
            }
            let asked = self.call.scope.core.outcomes.asked();
            self.write(&change).await?;
            Ok(self.settled(kept_back, asked))
        }
    }

    /// What is stored of a value, and the value itself where that is not it: a secret that nothing seals.
    pub(super) fn to_store(&self, body: OutcomeBody) -> (OutcomeBody, Option<OutcomeBody>) {
        if has_secret(&body) && !self.call.scope.core.defaults().seals {
            return (withheld(), Some(body));
        }
        (body, None)
    }

    /// The end of the call whose outcome is stored: with that, or with the value that was kept back from it.
    pub(super) fn settled(&self, kept_back: Option<OutcomeBody>, asked: Asked) -> Next {
        self.over();
        let record = self.record();
        let end = stored(&record, false);
        if let Some(settled_at) = record.outcome.as_ref().map(|outcome| outcome.settled_at) {
            self.call.learned(record, settled_at, asked, Some(&self.holding.speaker));
        }
        Next::Over(match kept_back {
            Some(value) => end.with_body(value),
            None => end,
        })
    }

    /// The write that stores an outcome.
    pub(super) fn settlement(
        &self,
        ended: Ended,
        kind: OutcomeKind,
        body: OutcomeBody,
        provider_replay: bool,
        conclusive: bool,
    ) -> Change {
        let settings = &self.call.settings;
        let body = match body {
            OutcomeBody::Payload(payload) if payload.bytes.len() > settings.outcome_size_max => {
                OutcomeBody::Absent(AbsentReason::TooLarge)
            }
            body => body,
        };
        let retain_ms = millis(settings.retention);
        Change::Settle { ended, kind, body, provider_replay, conclusive, retain_ms }
    }
}
