//! A ledger whose values are sealed: all of them pass here, whatever they are stored by.

use std::{any::Any, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;

use super::{About, CodecError, Codecs, Part};
use crate::{
    identity::{EffectId, RunId},
    ledger::{
        Change, Changed, Claim, ClaimRequest, EffectHistory, EffectRecord, EffectTransaction, Forgot, Ledger,
        LedgerError, LedgerErrorKind, Owner, Payload, ResolutionReply, ResolutionRequest, RunPage, RunRow,
        Sweep, Swept, TransactionEnd, Transactions, UnsettledPage, UnsettledQuery,
        record::{AbsentReason, OutcomeBody, OutcomeKind},
        resolution::{Action, By},
    },
};

/// A ledger behind codecs.
pub(crate) struct Sealed {
    inner: Arc<dyn Ledger>,
    seals: Seals,
}

/// What is done to values on their way.
#[derive(Clone)]
struct Seals(Codecs);

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealed").field("ledger", &self.inner).finish_non_exhaustive()
    }
}

fn refused(error: &CodecError) -> LedgerError {
    let context = format!(
        "the payload codec did not seal a value: {error}; nothing was stored, mend the codec or its key"
    );
    LedgerError::new(LedgerErrorKind::Corrupt, context)
}

impl Sealed {
    pub(crate) fn new(inner: Arc<dyn Ledger>, codecs: Codecs) -> Self {
        Self { inner, seals: Seals(codecs) }
    }
}

impl Seals {
    fn seal(&self, id: &EffectId, part: Part, plain: &Payload) -> Result<Payload, CodecError> {
        self.0.seal(&About::new(id, part), plain)
    }

    fn seal_body(&self, id: &EffectId, kind: OutcomeKind, body: &mut OutcomeBody) -> Result<(), CodecError> {
        if let OutcomeBody::Payload(payload) = body {
            *payload = self.seal(id, Part::of(kind), payload)?;
        }
        Ok(())
    }

    fn open(&self, id: &EffectId, part: Part, stored: &mut Payload) {
        self.0.open(&About::new(id, part), stored);
    }

    fn open_record(&self, record: &mut EffectRecord) {
        let Some(outcome) = &mut record.outcome else { return };
        if let OutcomeBody::Payload(payload) = &mut outcome.body {
            self.open(&record.id, Part::of(outcome.kind), payload);
        }
    }

    /// The change with its value sealed. It says that an effect was performed: where the codec fails that is kept, without the
    /// value.
    fn sealed_change(&self, owner: &Owner, change: &Change) -> Change {
        let mut change = change.clone();
        if let Change::Settle { kind, body, .. } = &mut change
            && self.seal_body(&owner.id, *kind, body).is_err()
        {
            *body = OutcomeBody::Absent(AbsentReason::Unencodable);
        }
        change
    }
}

#[async_trait]
impl Ledger for Sealed {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        let mut claim = match &request.input {
            None => self.inner.claim(request).await?,
            Some(input) => {
                let input =
                    self.seals.seal(&request.id, Part::Input, input).map_err(|error| refused(&error))?;
                self.inner.claim(&ClaimRequest { input: Some(input), ..request.clone() }).await?
            }
        };
        if let Claim::Settled { record, .. } = &mut claim {
            self.seals.open_record(Arc::make_mut(record));
        }
        Ok(claim)
    }

    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        // The ledger may store what follows from the row as its owner saw it, and an outcome was seen open.
        let unseen = owner.seen.as_ref().is_some_and(|seen| seen.outcome.is_some());
        let owner = if unseen { &Owner { seen: None, ..owner.clone() } } else { owner };
        let mut changed = self.inner.change(owner, &self.seals.sealed_change(owner, change)).await?;
        if let Changed::Applied(record) | Changed::Stale(Some(record)) = &mut changed {
            self.seals.open_record(Arc::make_mut(record));
        }
        Ok(changed)
    }

    async fn resolve(&self, request: &ResolutionRequest) -> Result<ResolutionReply, LedgerError> {
        let mut sealed = request.clone();
        let done = match &mut sealed.action {
            Action::Done { body, .. } => self.seals.seal_body(&request.id, OutcomeKind::Success, body),
            Action::Refused { reason, .. } => {
                self.seals.seal(&request.id, Part::Refusal, reason).map(|sealed| *reason = sealed)
            }
            Action::NeverHappened { .. } | Action::Reopen => Ok(()),
        };
        done.map_err(|error| refused(&error))?;
        let mut reply = self.inner.resolve(&sealed).await?;
        if let ResolutionReply::Applied(record) = &mut reply {
            self.seals.open_record(Arc::make_mut(record));
        }
        Ok(reply)
    }

    fn transactions(&self) -> Transactions {
        self.inner.transactions()
    }

    async fn begin(&self, limit: Duration) -> Result<Box<dyn EffectTransaction>, LedgerError> {
        let inner = self.inner.begin(limit).await?;
        Ok(Box::new(SealedTransaction { inner, seals: self.seals.clone() }))
    }

    async fn read(&self, id: &EffectId) -> Result<Option<EffectHistory>, LedgerError> {
        let Some(mut history) = self.inner.read(id).await? else { return Ok(None) };
        self.seals.open_record(&mut history.effect);
        for evidence in &mut history.evidence {
            if let Some(payload) = &mut evidence.payload {
                let part = Part::of_evidence(evidence.verdict);
                self.seals.open(&history.effect.id, part, payload);
            }
        }
        Ok(Some(history))
    }

    async fn unsettled(&self, query: &UnsettledQuery) -> Result<UnsettledPage, LedgerError> {
        self.inner.unsettled(query).await
    }

    async fn input(&self, id: &EffectId) -> Result<Option<Payload>, LedgerError> {
        let Some(mut input) = self.inner.input(id).await? else { return Ok(None) };
        // Sealed under the identity of the first claim, and asked for under any.
        let Some(history) = self.inner.read(id).await? else { return Ok(None) };
        self.seals.open(&history.effect.id, Part::Input, &mut input);
        Ok(Some(input))
    }

    async fn sweep(&self, batch: Sweep) -> Result<Swept, LedgerError> {
        self.inner.sweep(batch).await
    }

    async fn forget(&self, id: &EffectId, by: &By) -> Result<Forgot, LedgerError> {
        self.inner.forget(id, by).await
    }

    async fn of_run(&self, run: &RunId, page: &RunPage) -> Result<Vec<RunRow>, LedgerError> {
        self.inner.of_run(run, page).await
    }

    fn linearizable_across_regions(&self) -> bool {
        self.inner.linearizable_across_regions()
    }

    async fn changed(&self, id: &EffectId) {
        self.inner.changed(id).await;
    }

    fn announces(&self) -> bool {
        self.inner.announces()
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

/// A transaction whose outcome is sealed.
struct SealedTransaction {
    inner: Box<dyn EffectTransaction>,
    seals: Seals,
}

#[async_trait]
impl EffectTransaction for SealedTransaction {
    fn connection(&self) -> &(dyn Any + Send) {
        self.inner.connection()
    }

    fn connection_mut(&mut self) -> &mut (dyn Any + Send) {
        self.inner.connection_mut()
    }

    async fn settle(self: Box<Self>, owner: &Owner, change: &Change) -> TransactionEnd {
        let sealed = self.seals.sealed_change(owner, change);
        let mut end = self.inner.settle(owner, &sealed).await;
        if let TransactionEnd::Committed(record) = &mut end {
            self.seals.open_record(Arc::make_mut(record));
        }
        end
    }

    async fn roll_back(self: Box<Self>) -> bool {
        self.inner.roll_back().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        descriptor::{Keying, RecoveryClass},
        identity::Tenant,
        ledger::{
            MemoryLedger,
            codec::PayloadCodec,
            identities::Identities,
            record::{AttemptToken, Place},
        },
    };

    /// Writes what it is about before the value, and takes nothing else back.
    struct Labelling;

    impl PayloadCodec for Labelling {
        fn name(&self) -> &str {
            "labelling"
        }

        fn seal(&self, about: &About<'_>, plain: &[u8]) -> Result<Vec<u8>, CodecError> {
            Ok([about.associated_data(), plain.to_vec()].concat())
        }

        fn open(&self, about: &About<'_>, sealed: &[u8]) -> Result<Vec<u8>, CodecError> {
            let plain = sealed.strip_prefix(about.associated_data().as_slice());
            plain.map(<[u8]>::to_vec).ok_or_else(|| CodecError::new("another label"))
        }
    }

    fn request(input: &[u8]) -> ClaimRequest {
        ClaimRequest {
            id: EffectId::new(Tenant::parse("acme").expect("a tenant"), [7; 32]),
            operation: "refund".into(),
            keying: Keying::BusinessIdentity,
            key_version: 1,
            identities: Identities::default(),
            readable: None,
            provider: None,
            provider_key: "key".into(),
            fingerprints: Arc::default(),
            class: RecoveryClass::Hold,
            can_look_up: false,
            resend_window_ms: None,
            resend_quiet_ms: None,
            token: AttemptToken([1; 16]),
            lease_ms: 60_000,
            attempt_timeout_ms: 1_000,
            place: Place::default(),
            input: Some(Payload { codec: "json/1".into(), bytes: input.to_vec() }),
            can_perform: true,
            can_poll: false,
        }
    }

    #[tokio::test]
    async fn a_stored_input_is_sealed_and_comes_back() {
        let inner: Arc<dyn Ledger> = Arc::new(MemoryLedger::new());
        let mut codecs = Codecs::default();
        codecs.seal_with(Arc::new(Labelling));
        let sealed = Sealed::new(Arc::clone(&inner), codecs);
        let request = request(b"{}");
        assert!(matches!(sealed.claim(&request).await, Ok(Claim::Won { .. })));
        let stored = inner.input(&request.id).await.expect("an answer").expect("an input");
        assert_eq!(stored.codec, "json/1+labelling");
        assert!(String::from_utf8_lossy(&stored.bytes).contains("\ninput"), "it is bound to being an input");
        assert_eq!(sealed.input(&request.id).await.expect("an answer"), request.input);
    }
}
