//! One call, from its claim to its end. Types are erased here: there is one executor for all effects.

use std::{borrow::Cow, sync::Arc, time::Duration};

use super::{
    callers::Speaker,
    claimed::Claimed,
    core::{Claiming, Phase},
    erased::{Answer, Body, CallEnd, CallError, LookUpBody, PollBody},
    held::{Held, millis},
    identified::{Identified, Readable},
    known::{Asked, Known},
    news::News,
    progress::Progress,
    recovery::Unattended,
    scope::Scope,
    settings::Settings,
    wait::{Heard, POLL_MIN, Waited},
    work::Work,
};
use crate::{
    clock::Moment,
    environment,
    error::{ErrorKind, ProviderCalled},
    identity::{ArgumentDigest, EffectId},
    ledger::{
        Claim, ClaimRequest, EffectRecord, LedgerError, LedgerErrorKind, Payload, Task,
        identities::Identities,
        record::{AttemptToken, LedgerTime, OutcomeKind},
    },
    telemetry,
};

/// A call: what was frozen when the function was called.
pub(crate) struct Call {
    pub(crate) scope: Scope,
    pub(crate) settings: Arc<Settings>,
    pub(crate) id: EffectId,
    identities: Identities,
    readable: Readable,
    pub(crate) fingerprints: Arc<[ArgumentDigest]>,
    pub(crate) body: Body,
    pub(crate) look_up: Option<LookUpBody>,
    pub(crate) poll: Option<PollBody>,
    input: Option<Payload>,
    /// Set where a recovery makes the call, and no caller waits for its end.
    pub(crate) unattended: Option<Unattended>,
    pub(crate) progress: Arc<Progress>,
    /// When it began to run.
    pub(crate) started: Option<Moment>,
}

impl Call {
    pub(crate) fn new(
        scope: Scope,
        settings: Arc<Settings>,
        identified: Identified,
        fingerprints: Arc<[ArgumentDigest]>,
        work: Work,
        input: Option<Payload>,
    ) -> Self {
        let progress = Arc::default();
        let Identified { id, identities, readable } = identified;
        let Work { body, look_up, poll } = work;
        Self {
            scope,
            settings,
            id,
            identities,
            readable,
            fingerprints,
            body,
            look_up,
            poll,
            input,
            unattended: None,
            progress,
            started: None,
        }
    }

    /// Claims, waits, performs and settles.
    pub(crate) async fn run(mut self: Box<Self>) -> CallEnd {
        self.started = Some(Moment::now());
        telemetry::call_identified(&self.id);
        let end = self.claim_and_perform().await;
        tell(&end);
        end
    }

    /// Since when it runs; a call that is polled late has its whole time.
    pub(crate) fn started(&self) -> Moment {
        self.started.unwrap_or_else(Moment::now)
    }

    /// The end of the call by an outcome that is kept in memory, in the current span as any other.
    pub(crate) fn end_from_cache(&self) -> Option<CallEnd> {
        let core = &self.scope.core;
        let known = core.outcomes.find(&self.id)?;
        let end = self.end_by(&known).filter(|_| core.phase() == Phase::Open)?;
        telemetry::call_identified(&self.id);
        tell(&end);
        Some(end)
    }

    async fn claim_and_perform(&self) -> CallEnd {
        let core = &self.scope.core;
        let mut poll = POLL_MIN;
        let mut speaker: Option<Speaker> = None;
        loop {
            if speaker.is_none() {
                match self.listen(&mut poll).await {
                    Heard::Ask(asking) => speaker = Some(asking),
                    Heard::AskApart => {}
                    Heard::Ended(end) => return *end,
                }
            }
            // Counted before the phase is looked at: a drain sees the claim, or the claim sees the drain.
            let claiming = core.claiming();
            if core.phase() != Phase::Open || self.is_caller_gone() {
                return CallError::new(ErrorKind::Draining).into();
            }
            let asked = core.outcomes.asked();
            let claim = {
                // Gone before the claim is worked on.
                let request = self.request();
                match core.ledger().claim(&request).await {
                    Ok(claim) => claim,
                    Err(error) => {
                        tell_others(speaker, News::Nothing);
                        return self.not_started(request, error);
                    }
                }
            };
            match claim {
                Claim::Won { record, task } => {
                    return self.won(record, task, asked.at, claiming, speaker).await;
                }
                Claim::Settled { record, now } => {
                    let end = stored(&record, true);
                    self.learned(record, now, asked, speaker.as_ref());
                    return end;
                }
                Claim::Accepted { delay_ms, .. } if self.may_poll_after(delay_ms) => {
                    drop(claiming);
                    tell_others(speaker.take(), News::Nothing);
                    if !Box::pin(self.waited(Duration::from_millis(delay_ms.unsigned_abs()))).await {
                        return self.lost(claim);
                    }
                }
                Claim::InFlight { lease_remaining_ms } => {
                    drop(claiming);
                    let lease_remaining = Duration::from_millis(lease_remaining_ms.unsigned_abs());
                    let waiting = self.wait_for_winner(lease_remaining, &mut poll, speaker.as_ref());
                    match Box::pin(waiting).await {
                        Waited::Moved => {}
                        Waited::Ended(end) => return *end,
                    }
                }
                lost => {
                    tell_others(speaker, News::Nothing);
                    return self.lost(lost);
                }
            }
        }
    }

    /// Keeps an outcome in memory, where outcomes are kept, and tells those who wait for it. Whoever begins to listen only
    /// now finds that nobody speaks any more, and asks the ledger.
    pub(crate) fn learned(
        &self,
        record: Arc<EffectRecord>,
        now: LedgerTime,
        asked: Asked,
        speaker: Option<&Speaker>,
    ) {
        let (outcomes, heard) = (&self.scope.core.outcomes, speaker.filter(|speaker| speaker.is_heard()));
        if heard.is_none() && !outcomes.are_kept() {
            return;
        }
        let known = Arc::new(Known::new(record, now, asked, self.scope.place.run.as_ref()));
        outcomes.keep(&self.id, &known);
        if let Some(speaker) = heard {
            speaker.tell(News::Settled(known));
        }
    }

    /// Works on a claim that was won, to the end of the call.
    pub(crate) async fn won(
        &self,
        record: Arc<EffectRecord>,
        task: Task,
        sent: Moment,
        claiming: Claiming,
        asking: Option<Speaker>,
    ) -> CallEnd {
        let mut claimed = Claimed::new(self, self.held(record, sent), sent, asking);
        drop(claiming);
        if self.scope.core.phase() == Phase::Over {
            // The guard gives the claim back.
            return CallError::new(ErrorKind::Draining).into();
        }
        match claimed.perform(task).await {
            Ok(end) => end,
            Err(lost) => Box::pin(claimed.lost(lost)).await,
        }
    }

    pub(crate) fn request(&self) -> ClaimRequest {
        let settings = &self.settings;
        let descriptor = settings.descriptor;
        let secret = self.scope.core.provider_key_secret.as_deref();
        ClaimRequest {
            id: self.id.clone(),
            operation: settings.operation.clone(),
            keying: descriptor.keying,
            key_version: descriptor.version,
            identities: self.identities.clone(),
            readable: self.readable.text(),
            provider: settings.provider.clone(),
            provider_key: settings.key_form.write(&self.id, secret, &mut [0; _]).into(),
            fingerprints: self.fingerprints.clone(),
            input: self.input.clone(),
            class: settings.class,
            can_perform: self.can_perform(),
            can_look_up: self.can_look_up(),
            can_poll: self.can_poll(),
            resend_window_ms: settings.resend_window.map(millis),
            resend_quiet_ms: settings.resend_quiet.map(millis),
            token: new_token(),
            lease_ms: millis(settings.lease),
            attempt_timeout_ms: millis(settings.attempt_timeout),
            place: self.scope.place.clone(),
        }
    }

    pub(crate) fn can_perform(&self) -> bool {
        !matches!(self.body, Body::Absent)
    }

    pub(crate) fn can_look_up(&self) -> bool {
        self.look_up.is_some() || self.scope.core.provider(self.settings.descriptor).is_some()
    }

    fn held(&self, record: Arc<EffectRecord>, sent: Moment) -> Held {
        Held::new(self.scope.core.ledger.clone(), record, sent, self.settings.lease, self.settings.reserve())
    }

    /// The ledger did not answer the claim. Should it have stored the claim all the same, that claim is given back.
    pub(crate) fn not_started(&self, request: ClaimRequest, error: LedgerError) -> CallEnd {
        // One that found no room was not handed in, and looking for it would only add to what there is to do.
        if error.kind() != LedgerErrorKind::Overloaded {
            self.scope.core.background.give_back(self.scope.core.ledger.clone(), request);
        }
        CallError::new(ErrorKind::Ledger).detail(error.to_string()).ledger(error).into()
    }

    /// The end of a call that did not win its claim.
    pub(crate) fn lost(&self, claim: Claim) -> CallEnd {
        match claim {
            Claim::Settled { record, .. } => stored(&record, true),
            Claim::SchemaAmbiguous => CallError::new(ErrorKind::SchemaAmbiguous).into(),
            Claim::Expired => CallError::new(ErrorKind::Expired).called(ProviderCalled::No).into(),
            Claim::Mismatch { arguments } => mismatch(&arguments).into(),
            Claim::Escaped(record) => escaped(&record).into(),
            Claim::Released(_) => CallError::new(ErrorKind::RetryLater)
                .retry_after(Some(Duration::ZERO))
                .detail("it was not performed, and this call cannot perform it")
                .into(),
            Claim::NotBefore { delay_ms } => CallError::new(ErrorKind::RetryLater)
                .retry_after(Some(Duration::from_millis(delay_ms.unsigned_abs())))
                .detail("an earlier attempt was asked to wait")
                .into(),
            Claim::Accepted { handle, delay_ms } => {
                let mut error = CallError::new(ErrorKind::Accepted)
                    .retry_after(Some(Duration::from_millis(delay_ms.unsigned_abs())));
                error.handle = Some(handle);
                error.into()
            }
            Claim::Won { .. } | Claim::InFlight { .. } => {
                CallError::new(ErrorKind::InFlight).detail("the claim is being taken").into()
            }
        }
    }
}

/// The last word of a call that asked for others too.
fn tell_others(speaker: Option<Speaker>, news: News) {
    if let Some(speaker) = speaker {
        speaker.tell(news);
    }
}

/// How the call ended, in the current span.
fn tell(end: &CallEnd) {
    let (result, replayed) = match end {
        CallEnd::Success { replayed, .. } => (Cow::Borrowed("completed"), *replayed),
        CallEnd::Refusal { replayed, .. } => (Cow::Borrowed("refused"), *replayed),
        CallEnd::Error(error) => (Cow::Owned(format!("{:?}", error.kind)), false),
    };
    telemetry::call_ended(&result, replayed);
}

/// What is said where the same identity was asked for with other arguments.
pub(crate) fn mismatch(arguments: &[String]) -> CallError {
    let names = arguments.join("`, `");
    CallError::new(ErrorKind::Mismatch).detail(format!("these arguments differ: `{names}`"))
}

/// The answer that is stored.
pub(crate) fn stored(record: &Arc<EffectRecord>, replayed: bool) -> CallEnd {
    let answer = || Answer::InRow(record.clone());
    match record.outcome.as_ref().map(|outcome| outcome.kind) {
        Some(OutcomeKind::Success) => CallEnd::Success { answer: answer(), replayed },
        Some(OutcomeKind::Refusal) => CallEnd::Refusal { answer: answer(), replayed },
        None => escaped(record).into(),
    }
}

/// What is said of an effect in doubt.
pub(crate) fn escaped(record: &EffectRecord) -> CallError {
    let error = CallError::new(ErrorKind::Escaped);
    match &record.doubt {
        Some(doubt) => error.detail(format!(
            "attempt {} is in doubt since {} ms of the Unix epoch, under the class `{}`",
            doubt.attempt,
            doubt.since,
            doubt.class.as_str()
        )),
        None => error,
    }
}

pub(crate) fn new_token() -> AttemptToken {
    AttemptToken(environment::random())
}
