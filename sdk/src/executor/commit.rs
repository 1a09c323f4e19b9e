//! The end of an attempt whose SQL commits together with its outcome.

use std::sync::Arc;

use super::{
    claimed::{Claimed, Lost},
    erased::{BodyEnd, BodyFailure, CallError},
    perform::Next,
};
use crate::{
    context::{Attempt, StillLent},
    descriptor::RecoveryClass,
    error::ErrorKind,
    failure::Verdict,
    ledger::{
        EffectTransaction, LedgerError, TransactionEnd,
        record::{AttemptVerdict, OutcomeBody, OutcomeKind},
    },
};

impl Claimed<'_> {
    /// Commits what the body did with the outcome that it returned; anything else is rolled back first.
    pub(super) async fn end_transaction(
        &mut self,
        attempt: &mut Arc<Attempt>,
        end: BodyEnd,
    ) -> Result<Next, Lost> {
        let taken = attempt.take_transaction();
        let attempt = &**attempt;
        let transaction = match taken {
            Ok(transaction) => transaction,
            // It goes with the attempt, which rolls it back.
            Err(StillLent) => {
                return self.rolled_back(attempt, BodyEnd::Lost("its body kept its transaction")).await;
            }
        };
        match (end, transaction) {
            // A body that opened no transaction did nothing; its outcome is compared in one all the same.
            (BodyEnd::Done(body), None) => match self.begin().await {
                Ok(transaction) => self.commit(attempt, body, transaction).await,
                Err(error) => self.unacknowledged(attempt, error).await,
            },
            (BodyEnd::Done(body), Some(transaction)) => self.commit(attempt, body, transaction).await,
            (end, Some(transaction)) => match transaction.roll_back().await {
                true => self.rolled_back(attempt, end).await,
                false => self.ended_by_body(attempt).await,
            },
            (end, None) => self.rolled_back(attempt, end).await,
        }
    }

    async fn begin(&self) -> Result<Box<dyn EffectTransaction>, LedgerError> {
        self.call.scope.core.ledger().begin(self.call.settings.attempt_timeout).await
    }

    async fn commit(
        &mut self,
        attempt: &Attempt,
        body: OutcomeBody,
        transaction: Box<dyn EffectTransaction>,
    ) -> Result<Next, Lost> {
        let ended = self.ended(attempt, AttemptVerdict::Performed, None);
        let (body, kept_back) = self.to_store(body);
        let change = self.settlement(ended, OutcomeKind::Success, body, false, true);
        let asked = self.call.scope.core.outcomes.asked();
        match transaction.settle(&self.owner(), &change).await {
            TransactionEnd::Committed(record) => {
                self.adopt(record);
                Ok(self.settled(kept_back, asked))
            }
            TransactionEnd::Stale => Err(Lost::TakenOver),
            TransactionEnd::EndedByBody => self.ended_by_body(attempt).await,
            TransactionEnd::Unacknowledged(error) => self.unacknowledged(attempt, error).await,
        }
    }

    /// Ending the attempt waits for whatever may still be committed: it is stored only if nothing was.
    async fn unacknowledged(&mut self, attempt: &Attempt, error: LedgerError) -> Result<Next, Lost> {
        let error =
            CallError::new(ErrorKind::Failed).detail("its transaction was not committed").ledger(error);
        self.not_performed(attempt, true, None, error).await
    }

    /// Nothing of what the body did is left, whatever its error says.
    async fn rolled_back(&mut self, attempt: &Attempt, end: BodyEnd) -> Result<Next, Lost> {
        let failed = CallError::new(ErrorKind::Failed);
        match end {
            BodyEnd::Failed(BodyFailure { verdict: Verdict::Refused, stored, error, .. }) => {
                let refused = BodyFailure { verdict: Verdict::Refused, retry_after: None, stored, error };
                self.failed(attempt, refused).await
            }
            BodyEnd::Failed(BodyFailure { verdict, retry_after, error, .. }) => {
                let retry = !matches!(verdict, Verdict::NotPerformed { retry: false });
                let kind = if retry_after.is_some() { ErrorKind::RetryLater } else { ErrorKind::Failed };
                let error = CallError::new(kind).retry_after(retry_after).error(Some(error));
                self.not_performed(attempt, retry, retry_after, error).await
            }
            BodyEnd::NotStarted => {
                self.not_performed(attempt, false, None, failed.detail("its body was never started")).await
            }
            BodyEnd::Lost(why) => {
                let failed = failed.detail(format!("{why}; its transaction was rolled back"));
                self.not_performed(attempt, false, None, failed).await
            }
            BodyEnd::Done(_) => self.not_performed(attempt, false, None, failed).await,
        }
    }

    /// The body committed or rolled back what is not its to end.
    async fn ended_by_body(&mut self, attempt: &Attempt) -> Result<Next, Lost> {
        let mut ended = self.ended(attempt, AttemptVerdict::Unknown, Some(RecoveryClass::Hold));
        ended.acts_for_ms = 0;
        let error = CallError::new(ErrorKind::Escaped).detail(
            "its body ended the transaction by itself: look at what it wrote, and resolve the effect",
        );
        self.leave(ended, None, error).await
    }
}
