//! What operators do to effects that no rule lets go on: resolve them, and open refusals again.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use serde::Serialize;

use super::{
    drive::new_token,
    erased::{encode, has_secret},
    handle::Executor,
    held::millis,
    settings::Settings,
};
use crate::{
    clock,
    identity::EffectId,
    ledger::{
        EffectRecord, LedgerError, ResolutionReply, ResolutionRequest,
        record::{AbsentReason, OutcomeBody, Payload},
        resolution::{Action, By, REASON_CODEC, Seen},
    },
    telemetry,
};

/// How often a request that the ledger did not answer is tried, and the pause after the first try; each is twice as long.
const TRIES: u32 = 6;
const PAUSE: Duration = Duration::from_millis(20);

/// The longest reason of a refusal, in bytes.
const REASON_MAX: usize = 4096;

/// How late a provider that this program knows nothing of may show what it did.
const SETTLE_DELAY_UNKNOWN: Duration = Duration::from_secs(60);

/// What an operator found out about an effect.
#[derive(Debug, Clone)]
pub struct Resolution {
    found: Finding,
    despite_evidence: bool,
}

#[derive(Debug, Clone)]
enum Finding {
    Done(OutcomeBody),
    Refused(Payload),
    NeverHappened,
}

impl Resolution {
    /// It was performed, and `value` is what the function would have returned. It is stored as the function's own value is:
    /// give one of the function's type, or, where that type is not at hand, a [`serde_json::Value`] of the same JSON.
    ///
    /// A value that does not decode as the function's return type makes every later call end with
    /// [`ErrorKind::Unreadable`](crate::ErrorKind::Unreadable), and a success is never opened again.
    #[must_use]
    pub fn done(value: &impl Serialize) -> Self {
        Self { found: Finding::Done(encode(value)), despite_evidence: false }
    }

    /// It was refused, finally: every call gets [`ErrorKind::Refused`](crate::ErrorKind::Refused) with the reason as
    /// [`operator_reason`](crate::EffectError::operator_reason). At most 4096 bytes; it is stored as it is.
    #[must_use]
    pub fn refused(reason: impl Into<String>) -> Self {
        let reason = Payload { codec: REASON_CODEC.into(), bytes: reason.into().into_bytes() };
        Self { found: Finding::Refused(reason), despite_evidence: false }
    }

    /// It never happened: the next call performs it, as a new attempt under the same provider key.
    #[must_use]
    pub fn never_happened() -> Self {
        Self { found: Finding::NeverHappened, despite_evidence: false }
    }

    /// Also where an attempt said, behind a raised fence, that it had performed the effect. After
    /// [`never_happened`](Self::never_happened) it may then be performed twice.
    #[must_use]
    pub fn despite_evidence(mut self) -> Self {
        self.despite_evidence = true;
        self
    }

    /// The ledger's action, or why there is none.
    fn action(
        &self,
        settings: Option<&Settings>,
        retention: Duration,
        size_max: usize,
    ) -> Result<Action, ResolveErrorKind> {
        let (retain_ms, despite_evidence) = (millis(retention), self.despite_evidence);
        let delay = settings.map_or(SETTLE_DELAY_UNKNOWN, |settings| settings.settle_delay);
        let settle_delay_ms = millis(delay);
        match &self.found {
            Finding::Done(OutcomeBody::Absent(AbsentReason::Unencodable)) => Err(ResolveErrorKind::NoValue),
            Finding::Done(OutcomeBody::Payload(payload)) if payload.bytes.len() > size_max => {
                Err(ResolveErrorKind::NoValue)
            }
            Finding::Done(body) => Ok(Action::Done { body: body.clone(), retain_ms }),
            Finding::Refused(reason) if reason.bytes.len() > REASON_MAX => Err(ResolveErrorKind::NoValue),
            Finding::Refused(reason) => {
                let reason = reason.clone();
                Ok(Action::Refused { reason, settle_delay_ms, retain_ms, despite_evidence })
            }
            Finding::NeverHappened => Ok(Action::NeverHappened { settle_delay_ms, despite_evidence }),
        }
    }
}

/// Why nothing was resolved or opened again. The provider is never called for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ResolveErrorKind {
    /// The ledger has no effect of this identity. Look for a wrong tenant or another ledger.
    NotFound,
    /// An executor is authorised to act. Ask again after [`ResolveError::retry_after`], the rest of its lease.
    InFlight,
    /// A request of an attempt in doubt may still arrive at the provider, so that neither "refused" nor "never
    /// happened" can be known yet. Look at
    /// the provider again after [`ResolveError::retry_after`], then ask again.
    NotYet,
    /// Its attempts are known not to have performed it. There is nothing to resolve: the next call performs it.
    NotInDoubt,
    /// It has an outcome, which no resolution changes.
    Settled,
    /// It has no stored refusal to open again.
    NotARefusal,
    /// Its refusal is past its retention. Where the action is still wanted, it is another effect.
    Expired,
    /// An attempt said, behind a raised fence, that it performed the effect: see the evidence. Resolve it as done, or
    /// [despite the evidence](Resolution::despite_evidence).
    AgainstEvidence,
    /// It was claimed, attempted or resolved since it was looked at. Look again.
    Moved,
    /// The value cannot be encoded, is over the outcome size limit, or holds a [`Secret`](crate::Secret) that no payload codec seals;
    /// or the reason is over 4096 bytes.
    NoValue,
    /// The ledger did not answer: the resolution may or may not be stored. Inspect the effect; its audit says.
    Ledger,
}

/// An error of [`Executor::resolve`] or [`Executor::reopen`]. But for [`Ledger`](ResolveErrorKind::Ledger) nothing was
/// changed.
#[derive(Debug)]
pub struct ResolveError {
    kind: ResolveErrorKind,
    retry_after: Option<Duration>,
    source: Option<LedgerError>,
}

impl ResolveError {
    /// Why.
    #[must_use]
    pub fn kind(&self) -> ResolveErrorKind {
        self.kind
    }

    /// How long to wait before asking again, where that is known.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    fn after(kind: ResolveErrorKind, delay_ms: i64) -> Self {
        let delay = Duration::from_millis(delay_ms.max(0).unsigned_abs());
        Self { retry_after: Some(delay), ..Self::from(kind) }
    }
}

impl From<ResolveErrorKind> for ResolveError {
    fn from(kind: ResolveErrorKind) -> Self {
        Self { kind, retry_after: None, source: None }
    }
}

impl From<LedgerError> for ResolveError {
    fn from(error: LedgerError) -> Self {
        Self { source: Some(error), ..Self::from(ResolveErrorKind::Ledger) }
    }
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            ResolveErrorKind::NotFound => "the ledger has no such effect; check the tenant and the ledger",
            ResolveErrorKind::InFlight => "an executor may act on the effect; ask again when its lease has ended",
            ResolveErrorKind::NotYet => {
                "a request of an attempt in doubt may still arrive; look at the provider again after the delay"
            }
            ResolveErrorKind::NotInDoubt => {
                "its attempts are known not to have performed it, and the next call performs it"
            }
            ResolveErrorKind::Settled => "the effect has an outcome, which no resolution changes",
            ResolveErrorKind::NotARefusal => "the effect has no stored refusal to open again",
            ResolveErrorKind::Expired => "its refusal is past its retention and is not opened again",
            ResolveErrorKind::AgainstEvidence => {
                "an attempt said later that it performed the effect; see the evidence, resolve it as done, or despite it"
            }
            ResolveErrorKind::Moved => "the effect has moved on since it was looked at; look again",
            ResolveErrorKind::NoValue => "the value does not encode, or value or reason is over its size limit",
            ResolveErrorKind::Ledger => {
                return f.write_str(
                    "the ledger did not answer, and this may or may not be stored; the effect's audit says",
                );
            }
        })?;
        f.write_str("; nothing was changed, and the provider was not called")?;
        match self.retry_after {
            Some(delay) => write!(f, "; retry after {} ms", delay.as_millis()),
            None => Ok(()),
        }
    }
}

impl Error for ResolveError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| source as &(dyn Error + 'static))
    }
}

impl Executor {
    /// Ends an effect that is in doubt, or that the provider accepted, by what an operator found out. Who and why is kept
    /// in the effect's [audit](crate::ledger::EffectHistory::audit); the next call follows the resolution. Gives the row as
    /// stored. Works on every effect of the ledger, also of operations that this program does not have.
    ///
    /// "Refused" and "never happened" are turned down with [`NotYet`](ResolveErrorKind::NotYet) until no request of an attempt in doubt can
    /// arrive any more: its lease, its timeout and the provider's settle delay are over. For an operation that this
    /// program does not have, that delay is taken to be 60 s.
    ///
    /// # Errors
    /// [`ResolveError`].
    ///
    /// # Cancel safety
    /// Dropped, it may or may not be stored; a repeated call then ends with
    /// [`Settled`](ResolveErrorKind::Settled) or [`NotInDoubt`](ResolveErrorKind::NotInDoubt).
    pub async fn resolve(
        &self,
        id: &EffectId,
        resolution: Resolution,
        by: &By,
    ) -> Result<EffectRecord, ResolveError> {
        let record = self.looked_at(id).await?;
        let settings = self.core.settings_of(&record.operation);
        let defaults = self.core.defaults();
        let (retention, size_max) = match &settings {
            Some(settings) => (settings.retention, settings.outcome_size_max),
            None => (defaults.retention, defaults.outcome_size_max),
        };
        if let Finding::Done(body) = &resolution.found
            && has_secret(body)
            && !defaults.seals
        {
            return Err(ResolveErrorKind::NoValue.into());
        }
        let action = resolution.action(settings.as_deref(), retention, size_max)?;
        self.ask(&record, action, by).await
    }

    /// Opens a stored refusal again, by the provider or by an operator: the next call performs the effect, as a new attempt
    /// under the same provider key. Who and why is kept in the audit, and the refusal as evidence. A success is never
    /// opened again.
    ///
    /// # Errors
    /// [`ResolveError`].
    ///
    /// # Cancel safety
    /// Dropped, it may or may not be stored; a repeated call then ends with
    /// [`NotARefusal`](ResolveErrorKind::NotARefusal).
    pub async fn reopen(&self, id: &EffectId, by: &By) -> Result<EffectRecord, ResolveError> {
        let record = self.looked_at(id).await?;
        self.ask(&record, Action::Reopen, by).await
    }

    async fn looked_at(&self, id: &EffectId) -> Result<EffectRecord, ResolveError> {
        match self.core.ledger().read(id).await? {
            Some(history) => Ok(history.effect),
            None => Err(ResolveErrorKind::NotFound.into()),
        }
    }

    async fn ask(
        &self,
        record: &EffectRecord,
        action: Action,
        by: &By,
    ) -> Result<EffectRecord, ResolveError> {
        let request = ResolutionRequest {
            id: record.id.clone(),
            seen: by.seen().unwrap_or_else(|| Seen::of(record)),
            token: new_token(),
            by: by.clone(),
            action,
        };
        let _overruling = self.core.outcomes.overruling(record.id.clone());
        let mut tries = 1;
        let reply = loop {
            match self.core.ledger().resolve(&request).await {
                Ok(reply) => break reply,
                Err(error) if error.is_transient() && tries < TRIES => {
                    telemetry::ledger_retried("what an operator decided", &error);
                    clock::sleep(PAUSE * 2_u32.pow(tries - 1)).await;
                    tries += 1;
                }
                Err(error) => return Err(error.into()),
            }
        };
        Err(match reply {
            ResolutionReply::Applied(record) => return Ok(Arc::unwrap_or_clone(record)),
            ResolutionReply::InFlight { lease_remaining_ms } => {
                ResolveError::after(ResolveErrorKind::InFlight, lease_remaining_ms)
            }
            ResolutionReply::NotYet { delay_ms } => ResolveError::after(ResolveErrorKind::NotYet, delay_ms),
            ResolutionReply::Unknown => ResolveErrorKind::NotFound.into(),
            ResolutionReply::Moved => ResolveErrorKind::Moved.into(),
            ResolutionReply::NotInDoubt => ResolveErrorKind::NotInDoubt.into(),
            ResolutionReply::Settled => ResolveErrorKind::Settled.into(),
            ResolutionReply::NotARefusal => ResolveErrorKind::NotARefusal.into(),
            ResolutionReply::Expired => ResolveErrorKind::Expired.into(),
            ResolutionReply::AgainstEvidence => ResolveErrorKind::AgainstEvidence.into(),
        })
    }
}
