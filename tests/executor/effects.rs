//! The effects that the tests call: the same action under each recovery class.

use std::{sync::Arc, time::Duration};

use effectual::{
    EffectContext, EffectId, Executor, Found, Ledger, Profile, Provider, Receipt, RecoveryClass, effect,
    ledger::{EffectHistory, EffectRecord, record::State},
    provider::{InFlightMeaning, KeyPlace},
    retry::RetryPolicy,
};
use effectual_tests::scripted::{Done, Scripted, ScriptedError};

/// A provider with a documented window, so that `resend` is allowed.
pub(crate) struct Windowed;

impl Provider for Windowed {
    const NAME: &'static str = "windowed";

    fn profile() -> Profile {
        let mut profile = Profile::undocumented(Self::NAME, "2026-11-30");
        profile.key_place = KeyPlace::Header("Idempotency-Key".to_owned());
        profile.window_s = Some(24 * 60 * 60);
        profile.in_flight = InFlightMeaning::Refuses;
        profile.on_unknown = RecoveryClass::Resend;
        profile
    }
}

#[effect(keying = business_identity, provider = Windowed)]
pub(crate) async fn resending(
    cx: &EffectContext,
    #[key] order: String,
    amount: u64,
    #[skip] provider: Scripted,
) -> effectual::Result<Done, ScriptedError> {
    Ok(provider.send(cx, &format!("{order}/{amount}")).await?)
}

#[effect(keying = business_identity)]
pub(crate) async fn holding(
    cx: &EffectContext,
    #[key] order: String,
    amount: u64,
    #[skip] provider: Scripted,
) -> effectual::Result<Done, ScriptedError> {
    Ok(provider.send(cx, &format!("{order}/{amount}")).await?)
}

#[effect(keying = business_identity, on_unknown = rerun)]
pub(crate) async fn rerunning(
    cx: &EffectContext,
    #[key] order: String,
    amount: u64,
    #[skip] provider: Scripted,
) -> effectual::Result<Done, ScriptedError> {
    Ok(provider.send(cx, &format!("{order}/{amount}")).await?)
}

#[effect(keying = business_identity, on_unknown = reconcile(found))]
pub(crate) async fn reconciling(
    cx: &EffectContext,
    #[key] order: String,
    amount: u64,
    #[skip] provider: Scripted,
) -> effectual::Result<Done, ScriptedError> {
    Ok(provider.send(cx, &format!("{order}/{amount}")).await?)
}

async fn found(
    cx: &EffectContext,
    _order: String,
    _amount: u64,
    provider: Scripted,
) -> Result<Found<Done, ScriptedError>, ScriptedError> {
    Ok(provider.find(cx.idempotency_key()).map_or(Found::Absent, Found::Done))
}

#[effect(keying = business_identity, on_unknown = reconcile(cannot_tell))]
pub(crate) async fn asking_in_vain(
    cx: &EffectContext,
    #[key] order: String,
    amount: u64,
    #[skip] provider: Scripted,
) -> effectual::Result<Done, ScriptedError> {
    Ok(provider.send(cx, &format!("{order}/{amount}")).await?)
}

async fn cannot_tell(
    _cx: &EffectContext,
    _order: String,
    _amount: u64,
    _provider: Scripted,
) -> Result<Found<Done, ScriptedError>, ScriptedError> {
    Err(ScriptedError::NoConnection)
}

/// An executor that is quick to retry, for providers that answer at once.
pub(crate) fn executor(ledger: &Arc<dyn Ledger>) -> Executor {
    builder(ledger).build().expect("a valid set-up")
}

pub(crate) fn builder(ledger: &Arc<dyn Ledger>) -> effectual::ExecutorBuilder {
    Executor::builder(ledger.clone())
        .attempt_timeout(Duration::from_millis(300))
        .margin(Duration::from_millis(200))
        .lease(Duration::from_secs(2))
        .wait(Duration::from_secs(20))
        .retry(quick())
}

pub(crate) fn quick() -> RetryPolicy {
    RetryPolicy::default().attempts_max(4).base(Duration::from_millis(2)).elapsed_max(Duration::from_secs(30))
}

/// A call's receipt and the scope that fills it.
pub(crate) fn receipted(executor: &Executor) -> (Receipt, effectual::TenantScope) {
    let receipt = Receipt::new();
    let scope = executor.tenant("acme").expect("a tenant").with_receipt(&receipt);
    (receipt, scope)
}

pub(crate) async fn history(executor: &Executor, receipt: &Receipt) -> EffectHistory {
    let id: EffectId = receipt.effect_id().expect("a call that ended has an identity");
    executor.inspect(&id).await.expect("the ledger answers").expect("the effect is recorded")
}

pub(crate) async fn record(executor: &Executor, receipt: &Receipt) -> EffectRecord {
    history(executor, receipt).await.effect
}

pub(crate) async fn state(executor: &Executor, receipt: &Receipt) -> State {
    record(executor, receipt).await.state
}

/// A ledger in memory that answers no renewal, as one does that has become unreachable.
#[derive(Debug, Default)]
pub(crate) struct NoRenewals(effectual::MemoryLedger);

#[async_trait::async_trait]
impl Ledger for NoRenewals {
    async fn claim(
        &self,
        request: &effectual::ledger::ClaimRequest,
    ) -> Result<effectual::ledger::Claim, effectual::LedgerError> {
        self.0.claim(request).await
    }

    async fn change(
        &self,
        owner: &effectual::ledger::Owner,
        change: &effectual::ledger::Change,
    ) -> Result<effectual::ledger::Changed, effectual::LedgerError> {
        if matches!(change, effectual::ledger::Change::Renew { .. }) {
            let kind = effectual::LedgerErrorKind::Unavailable;
            return Err(effectual::LedgerError::new(kind, "no renewal gets through"));
        }
        self.0.change(owner, change).await
    }

    async fn read(&self, id: &EffectId) -> Result<Option<EffectHistory>, effectual::LedgerError> {
        self.0.read(id).await
    }

    async fn unsettled(
        &self,
        query: &effectual::ledger::UnsettledQuery,
    ) -> Result<effectual::ledger::UnsettledPage, effectual::LedgerError> {
        self.0.unsettled(query).await
    }

    async fn input(
        &self,
        id: &EffectId,
    ) -> Result<Option<effectual::ledger::Payload>, effectual::LedgerError> {
        self.0.input(id).await
    }

    fn name(&self) -> &'static str {
        "memory without renewals"
    }

    async fn close(&self) {
        self.0.close().await;
    }
}
