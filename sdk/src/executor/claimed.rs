//! A claim in the hands of its call: its guard, its clock and its writes.

use std::{sync::Arc, time::Duration};

use super::{
    callers::Speaker,
    core::{Holding, Phase},
    drive::{Call, escaped, stored},
    erased::{CallEnd, CallError},
    held::{Held, millis},
    progress::Progress,
    wait::{POLL_MIN, Waited},
};
use crate::{
    clock::{self, Moment, Stopwatch, Until},
    context::{Attempt, Slot},
    descriptor::RecoveryClass,
    error::{ErrorKind, ProviderCalled},
    ledger::{
        Change, Changed, Claim, EffectRecord, LedgerError, LedgerErrorKind, Owner,
        change::Ended,
        record::{AttemptVerdict, LedgerTime, State},
    },
    telemetry,
};

/// How soon and how late a write that the ledger did not answer is tried again.
const WRITE_RETRY_MIN: Duration = Duration::from_millis(20);
const WRITE_RETRY_MAX: Duration = Duration::from_secs(2);

/// The claim of a call. Should the call go away, what is to be said of its attempt is written all the same.
pub(crate) struct Claimed<'a> {
    pub(crate) call: &'a Call,
    pub(crate) attempts: u32,
    pub(super) holding: Holding,
    clock: LedgerClock,
}

/// Why a claim ended against its owner's will.
pub(crate) enum Lost {
    /// Another executor has taken the effect over.
    TakenOver,
    /// What was taken for lost was stored: this is the claim's own outcome.
    Settled(Arc<EffectRecord>),
    /// The ledger could not store what was to be stored.
    Ledger(LedgerError),
}

/// What is known of the ledger's clock: it said `at` some time between two moments of ours.
struct LedgerClock {
    at: LedgerTime,
    before: Moment,
    after: Stopwatch,
}

impl<'a> Claimed<'a> {
    pub(crate) fn new(call: &'a Call, held: Held, sent: Moment, asking: Option<Speaker>) -> Self {
        call.progress.set(Progress::OPEN);
        let clock = LedgerClock::read(&held.record(), sent, call.settings.lease);
        let holding = call.scope.core.hold(held, &call.fingerprints, asking);
        Self { call, attempts: 0, holding, clock }
    }

    pub(crate) fn record(&self) -> Arc<EffectRecord> {
        self.holding.held.record()
    }

    /// A new attempt was opened, by a change that was sent at that moment and extended the lease.
    pub(crate) fn opened(&mut self, sent: Moment) {
        self.holding.held.confirmed(sent);
        self.clock = LedgerClock::read(&self.record(), sent, self.call.settings.lease);
    }

    pub(crate) fn new_attempt(&self) -> Attempt {
        let record = self.record();
        let mut attempt =
            Attempt::new(self.holding.held.clone(), record.attempt, record.provider_key.clone());
        if record.class == RecoveryClass::Transactional {
            attempt.transaction =
                Some(Slot::new(Until::new(Moment::now(), self.call.settings.attempt_timeout)));
        }
        if let Some(doubt) = &record.doubt {
            // The author of a `rerun` accepts another performance, whatever is sent.
            attempt.sent_before = doubt.send_digest.filter(|_| doubt.class != RecoveryClass::Rerun);
            if doubt.class == RecoveryClass::Resend {
                attempt.resend_until = Some(self.window_end(doubt.since));
            }
        }
        attempt
    }

    pub(crate) fn look_up_attempt(&self) -> Attempt {
        let record = self.record();
        let mut attempt =
            Attempt::new(self.holding.held.clone(), record.attempt, record.provider_key.clone());
        attempt.look_up = true;
        attempt
    }

    /// When the provider's window may be over, at the earliest.
    fn window_end(&self, since: LedgerTime) -> Until {
        let window = self.call.settings.resend_window.map(millis).unwrap_or_default();
        let length = (since.saturating_add(window) - self.clock.at).max(0);
        Until::new(self.clock.before, Duration::from_millis(length.unsigned_abs()))
    }

    /// Whether the window is still open after the delay.
    pub(crate) fn in_window(&self, delay: Duration) -> bool {
        let record = self.record();
        let since = record.doubt.as_ref().map_or(record.started_at, |doubt| doubt.since);
        !rule!(WindowInTheCall) || self.window_end(since).remaining() > delay
    }

    /// How long a re-send has to wait where the provider documents nothing about a key in flight.
    pub(crate) fn quiet_before_resend(&self, class: RecoveryClass, attempt: &Attempt) -> Duration {
        match (class, self.call.settings.resend_quiet) {
            (RecoveryClass::Resend, Some(quiet)) if rule!(QuietBeforeResendInACall) => {
                let acts_until = self.ledger_now() + millis(self.call.acts_for(attempt));
                self.until_quiet(acts_until, quiet)
            }
            _ => Duration::ZERO,
        }
    }

    /// How long until no attempt in doubt can act, and the settle delay has passed.
    pub(crate) fn until_quiet(&self, acts_until: LedgerTime, settle_delay: Duration) -> Duration {
        let doubted =
            self.record().doubt.as_ref().map_or(acts_until, |doubt| doubt.acts_until.max(acts_until));
        let quiet_at = doubted.saturating_add(millis(settle_delay));
        Duration::from_millis((quiet_at - self.clock.earliest()).max(0).unsigned_abs())
    }

    /// The ledger's clock, at the earliest it can be.
    pub(crate) fn ledger_now(&self) -> LedgerTime {
        self.clock.earliest()
    }

    pub(crate) fn ended(
        &self,
        attempt: &Attempt,
        verdict: AttemptVerdict,
        class: Option<RecoveryClass>,
    ) -> Ended {
        let sends = attempt.sends();
        Ended {
            verdict,
            class,
            send_digest: sends.digest,
            key_taken: attempt.key_taken(),
            first_send_ago_ms: sends.first.map(|first| millis(first.elapsed())),
            acts_for_ms: millis(self.call.acts_for(attempt)),
        }
    }

    /// Writes, and goes on trying while the ledger does not answer, until the drain deadline.
    pub(crate) async fn write(&self, change: &Change) -> Result<(), Lost> {
        match self.stored(self.holding.held.change(change).await)? {
            Ok(()) => Ok(()),
            Err(error) => Box::pin(self.write_on(change, error)).await,
        }
    }

    /// Whether a write was stored, or the error after which it is worth trying again.
    fn stored(&self, changed: Result<Changed, LedgerError>) -> Result<Result<(), LedgerError>, Lost> {
        match changed {
            Ok(Changed::Applied(_)) => Ok(Ok(())),
            Ok(Changed::Stale(Some(record))) if self.is_own_outcome(&record) => Err(Lost::Settled(record)),
            Ok(Changed::Stale(_)) => Err(Lost::TakenOver),
            Err(error) if worth_trying(&error) => Ok(Err(error)),
            Err(error) => Err(Lost::Ledger(error)),
        }
    }

    async fn write_on(&self, change: &Change, mut error: LedgerError) -> Result<(), Lost> {
        let mut delay = WRITE_RETRY_MIN;
        loop {
            if self.call.scope.core.phase() == Phase::Over {
                self.leave_to_last_writes(change);
                return Err(Lost::Ledger(error));
            }
            telemetry::ledger_retried("what became of an attempt", &error);
            tokio::select! {
                biased;
                () = clock::sleep(delay) => delay = (delay * 2).min(WRITE_RETRY_MAX),
                () = self.call.scope.core.reached(Phase::Over) => {}
            }
            match self.stored(self.holding.held.change(change).await)? {
                Ok(()) => return Ok(()),
                Err(again) => error = again,
            }
        }
    }

    /// Whether the row is completed by the attempt in hand: its commit went through, and the acknowledgement was lost.
    fn is_own_outcome(&self, record: &EffectRecord) -> bool {
        let owner = self.owner();
        record.state == State::Completed && (record.token, record.fence) == (owner.token, owner.fence)
    }

    pub(crate) fn owner(&self) -> Owner {
        self.holding.held.owner()
    }

    /// The row that a transaction of the attempt left.
    pub(crate) fn adopt(&self, record: Arc<EffectRecord>) {
        self.holding.held.adopt(record);
    }

    /// What is known of the attempt is worth more than that its end is unknown: the executor's own thread tries it on.
    pub(super) fn leave_to_last_writes(&self, change: &Change) {
        if matches!(change, Change::Settle { .. } | Change::End { .. }) {
            self.call.scope.core.background.write_last(self.holding.held.clone(), change.clone());
            self.over();
        }
    }

    /// Nothing is left to be written for this claim.
    pub(crate) fn over(&self) {
        self.call.progress.set(Progress::OVER);
    }

    /// The claim ended against its owner's will: what can be said of the effect now.
    pub(crate) async fn lost(self, lost: Lost) -> CallEnd {
        match lost {
            Lost::Settled(record) => {
                self.over();
                stored(&record, false)
            }
            Lost::TakenOver => {
                telemetry::stale_refused(&self.call.id);
                self.over();
                let call = self.call;
                drop(self);
                call.answer_of_new_owner().await
            }
            Lost::Ledger(error) => {
                // The guard goes on trying to write what is known.
                CallError::new(ErrorKind::Escaped)
                    .called(ProviderCalled::Maybe)
                    .detail("the ledger did not store what became of the attempt")
                    .ledger(error)
                    .into()
            }
        }
    }
}

/// A ledger that is closed or holds nonsense does not change its mind.
fn worth_trying(error: &LedgerError) -> bool {
    !matches!(
        error.kind(),
        LedgerErrorKind::Closed
            | LedgerErrorKind::Corrupt
            | LedgerErrorKind::NotALedger
            | LedgerErrorKind::NewerSchema
    )
}

impl Call {
    /// A stale owner becomes a waiter of the new one. It never claims again: its own attempt may have performed it.
    async fn answer_of_new_owner(&self) -> CallEnd {
        let mut poll = POLL_MIN;
        loop {
            let record = match self.scope.core.ledger().read(&self.id).await {
                Ok(Some(history)) => history.effect,
                Ok(None) => return CallError::new(ErrorKind::Escaped).into(),
                Err(error) => return CallError::new(ErrorKind::Escaped).ledger(error).into(),
            };
            if let (Some(accepted), true) = (&record.accepted, record.state != State::Completed) {
                let (handle, delay_ms) = (accepted.handle.clone(), 0);
                return self.lost(Claim::Accepted { handle, delay_ms });
            }
            match record.state {
                State::Completed => return stored(&Arc::new(record), true),
                State::Claimed => {}
                State::Escaped => return escaped(&record).into(),
                State::Released => {
                    let error = CallError::new(ErrorKind::RetryLater).retry_after(Some(Duration::ZERO));
                    return error.detail("the claim was given back, and nothing was performed").into();
                }
            }
            match self.wait_for_winner(self.settings.lease, &mut poll, None).await {
                Waited::Moved => {}
                Waited::Ended(_) => {
                    let error =
                        escaped(&record).detail("another executor has taken it over and has not ended");
                    return error.into();
                }
            }
        }
    }
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        let background = &self.call.scope.core.background;
        let not_performed = Change::End {
            ended: Ended::found(AttemptVerdict::NotPerformed),
            keep_claim: false,
            not_before_ms: None,
        };
        let change = match self.call.progress.abandon() {
            Progress::OPEN | Progress::CLOSED => not_performed,
            Progress::POLLED => Change::Label,
            _ => return,
        };
        background.write_last(self.holding.held.clone(), change);
    }
}

impl LedgerClock {
    /// The lease of a row that was just claimed or opened says what the ledger's clock was.
    fn read(record: &EffectRecord, sent: Moment, lease: Duration) -> Self {
        Self { at: record.lease_until - millis(lease), before: sent, after: Stopwatch::start() }
    }

    fn earliest(&self) -> LedgerTime {
        self.at.saturating_add(millis(self.after.elapsed()))
    }
}
