//! One effect without its caller: a call made from what is stored.

use std::{sync::Arc, time::Duration};

use crate::{
    clock::Moment,
    environment,
    error::ErrorKind,
    executor::{
        claimed::Claimed,
        core::{Core, Phase},
        drive::Call,
        durable::{Recoverable, Stored, Unreadable},
        erased::CallEnd,
        identified::{Identified, Readable},
        scope::Scope,
        work::Work,
    },
    ledger::{Claim, LedgerError, Unsettled, identities::Identities},
    telemetry,
};

/// What holds for a call that nobody waits for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unattended {
    backoff_min: Duration,
    backoff_max: Duration,
}

/// What became of an effect that was taken up.
pub(super) enum Came {
    Completed,
    Refused,
    Released,
    Escaped,
    Accepted,
    Lost,
    Failed,
}

/// Why this process does not take an effect up.
pub(super) enum Skip {
    /// It has no function of that operation, or one at another provider.
    NoHandler,
    /// The argument of this name does not decode.
    Unreadable(&'static str),
}

/// The call that can be made from what is stored.
pub(super) async fn prepare(
    core: &Arc<Core>,
    unsettled: Unsettled,
) -> Result<Result<Call, Skip>, LedgerError> {
    let Unsettled { effect: record, has_input } = unsettled;
    let known = core.settings_of(&record.operation).filter(|settings| {
        // Another provider knows nothing of what was sent to this one.
        record.provider.as_deref() == settings.descriptor.provider.map(|provider| provider.name)
    });
    let Some(settings) = known else { return Ok(Err(Skip::NoHandler)) };
    let mut work = Work::absent();
    if let (true, Some(recoverable)) = (has_input, Recoverable::find(&record.operation))
        && let Some(input) = core.ledger().input(&record.id).await?
    {
        let stored = Stored::read(&input, &core.resources);
        work = match stored.and_then(|stored| (recoverable.work)(&stored)) {
            Ok(work) => work,
            Err(Unreadable(argument)) => return Ok(Err(Skip::Unreadable(argument))),
        };
    }
    let mut scope = Scope::new(core.clone(), record.id.tenant().clone());
    scope.place = record.place.clone();
    let identified = Identified {
        id: record.id.clone(),
        identities: Identities::default(),
        readable: Readable::Stored(record.readable),
    };
    let mut call = Call::new(scope, settings, identified, record.fingerprints, work, None);
    let recovery = &core.recoveries.settings;
    call.unattended =
        Some(Unattended { backoff_min: recovery.backoff_min(), backoff_max: recovery.backoff_max });
    Ok(Ok(call))
}

impl Call {
    /// Claims it, as any caller does, and works on it; never waits for another.
    pub(super) async fn recover(mut self) -> Came {
        self.started = Some(Moment::now());
        telemetry::call_identified(&self.id);
        let core = &self.scope.core;
        let claiming = core.claiming();
        if core.phase() != Phase::Open {
            return Came::Lost;
        }
        let (request, sent) = (self.request(), Moment::now());
        match core.ledger().claim(&request).await {
            Ok(Claim::Won { record, task }) => came(&self.won(record, task, sent, claiming, None).await),
            Ok(Claim::Escaped(_)) => Came::Escaped,
            Ok(Claim::Released(_)) => Came::Released,
            Ok(_) => Came::Lost,
            Err(error) => {
                drop(self.not_started(request, error));
                Came::Failed
            }
        }
    }
}

fn came(end: &CallEnd) -> Came {
    match end {
        CallEnd::Success { replayed: false, .. } => Came::Completed,
        CallEnd::Refusal { replayed: false, .. } => Came::Refused,
        // What another executor stored meanwhile.
        CallEnd::Success { .. } | CallEnd::Refusal { .. } => Came::Lost,
        CallEnd::Error(error) => match error.kind {
            ErrorKind::Failed | ErrorKind::RetryLater | ErrorKind::Draining => Came::Released,
            ErrorKind::Escaped => Came::Escaped,
            ErrorKind::Accepted => Came::Accepted,
            _ => Came::Failed,
        },
    }
}

impl Claimed<'_> {
    /// When the next attempt may start. Where nobody knows, a recovery leaves an effect that it did not finish alone for a
    /// while.
    pub(in crate::executor) fn not_before(&self, known: Option<Duration>) -> Option<Duration> {
        let unattended = self.call.unattended.is_some();
        known.or_else(|| unattended.then(|| self.backoff_in_doubt(Duration::ZERO)))
    }

    /// How long to wait before the provider is asked again: a recovery asks the less often the older the doubt is.
    pub(in crate::executor) fn backoff_in_doubt(&self, delay: Duration) -> Duration {
        let Some(Unattended { backoff_min, backoff_max }) = self.call.unattended else { return delay };
        let record = self.record();
        let since = record.doubt.as_ref().map_or(record.started_at, |doubt| doubt.since);
        let age = Duration::from_millis((self.ledger_now() - since).max(0).unsigned_abs());
        let backoff = (age / 2).clamp(backoff_min, backoff_max.max(backoff_min));
        delay.max(backoff.mul_f64(0.75 + environment::share() / 2.0))
    }
}
