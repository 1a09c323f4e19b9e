//! The effects of the simulation: the same action under each recovery class, written as a user writes them.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use async_trait::async_trait;

use super::{
    plan::Plan,
    provider::{Done, Promise, Provider as Remote, SETTLE_DELAY, Trouble, WINDOW, found},
    world::World,
};
use crate::{
    EffectContext, Found, LookUp, Profile, Provider, RecoveryClass, Result, TenantScope, effect,
    provider::{InFlightMeaning, KeyPlace},
};

/// Deduplicates, and says so of a key in flight.
pub(super) struct Windowed;
/// Deduplicates, and documents nothing of a key in flight.
pub(super) struct Quiet;
/// Can be asked.
pub(super) struct Asked(pub(super) Arc<World>);

fn windowed(name: &str, in_flight: InFlightMeaning) -> Profile {
    let mut profile = Profile::undocumented(name, "2026-11-30");
    profile.key_place = KeyPlace::Header("Idempotency-Key".to_owned());
    profile.window_s = Some(WINDOW.as_secs());
    profile.in_flight = in_flight;
    profile.on_unknown = RecoveryClass::Resend;
    profile.settle_delay_ms = u64::try_from(SETTLE_DELAY.as_millis()).unwrap_or(u64::MAX);
    profile
}

impl Provider for Windowed {
    const NAME: &'static str = "sim-windowed";

    fn profile() -> Profile {
        windowed(Self::NAME, InFlightMeaning::Refuses)
    }
}

impl Provider for Quiet {
    const NAME: &'static str = "sim-quiet";

    fn profile() -> Profile {
        windowed(Self::NAME, InFlightMeaning::Undocumented)
    }
}

#[async_trait]
impl Provider for Asked {
    const NAME: &'static str = "sim-asked";

    fn profile() -> Profile {
        let mut profile = Profile::undocumented(Self::NAME, "2026-11-30");
        profile.on_unknown = RecoveryClass::Reconcile;
        profile.settle_delay_ms = u64::try_from(SETTLE_DELAY.as_millis()).unwrap_or(u64::MAX);
        profile
    }

    async fn look_up(&self, request: &LookUp<'_>) -> Found<serde_json::Value, serde_json::Value> {
        let found = Remote::new(&self.0, Promise::Nothing).find(request.effect_id, SETTLE_DELAY);
        crate::clock::sleep(self.0.network_latency()).await;
        if self.0.fault(self.0.plan.provider_faults) {
            return Found::Unknown;
        }
        found.map_or(Found::Absent, |done| {
            Found::Done(serde_json::to_value(done).unwrap_or(serde_json::Value::Null))
        })
    }
}

#[effect(crate = crate, keying = business_identity, provider = Windowed)]
pub(super) async fn sim_resend(
    cx: &EffectContext,
    #[key] order: u64,
    amount: u64,
    #[skip] remote: Remote,
) -> Result<Done, Trouble> {
    let _ = order;
    Ok(remote.send(cx, amount).await?)
}

#[effect(crate = crate, keying = business_identity, provider = Quiet)]
pub(super) async fn sim_quiet(
    cx: &EffectContext,
    #[key] order: u64,
    amount: u64,
    #[skip] remote: Remote,
) -> Result<Done, Trouble> {
    let _ = order;
    Ok(remote.send(cx, amount).await?)
}

/// Its body takes no key, so that sending again is no way out: the attempt's end says so.
#[effect(crate = crate, keying = business_identity, provider = Windowed)]
pub(super) async fn sim_keyless(
    cx: &EffectContext,
    #[key] order: u64,
    amount: u64,
    #[skip] remote: Remote,
) -> Result<Done, Trouble> {
    let _ = order;
    Ok(remote.send(cx, amount).await?)
}

#[effect(crate = crate, keying = business_identity, on_unknown = reconcile(ask))]
pub(super) async fn sim_reconcile(
    cx: &EffectContext,
    #[key] order: u64,
    amount: u64,
    #[skip] remote: Remote,
) -> Result<Done, Trouble> {
    let _ = order;
    Ok(remote.send(cx, amount).await?)
}

async fn ask(
    cx: &EffectContext,
    _order: u64,
    _amount: u64,
    remote: Remote,
) -> std::result::Result<Found<Done, Trouble>, Trouble> {
    Ok(found(remote.find(cx.effect_id(), Duration::ZERO)))
}

#[effect(crate = crate, keying = business_identity, provider = Asked)]
pub(super) async fn sim_asked(
    cx: &EffectContext,
    #[key] order: u64,
    amount: u64,
    #[skip] remote: Remote,
) -> Result<Done, Trouble> {
    let _ = order;
    Ok(remote.send(cx, amount).await?)
}

#[effect(crate = crate, keying = business_identity)]
pub(super) async fn sim_hold(
    cx: &EffectContext,
    #[key] order: u64,
    amount: u64,
    #[skip] remote: Remote,
) -> Result<Done, Trouble> {
    let _ = order;
    Ok(remote.send(cx, amount).await?)
}

#[effect(crate = crate, keying = business_identity, on_unknown = rerun)]
pub(super) async fn sim_rerun(
    cx: &EffectContext,
    #[key] order: u64,
    amount: u64,
    #[skip] remote: Remote,
) -> Result<Done, Trouble> {
    let _ = order;
    Ok(remote.send(cx, amount).await?)
}

#[effect(crate = crate, keying = business_identity, attached)]
pub(super) async fn sim_attached(
    cx: &EffectContext,
    #[key] order: u64,
    amount: u64,
    #[skip] remote: &Remote,
) -> Result<Done, Trouble> {
    let _ = order;
    Ok(remote.send(cx, amount).await?)
}

/// The provider takes a job and works on it for longer than anybody waits.
#[effect(crate = crate, keying = business_identity, on_unknown = rerun)]
pub(super) async fn sim_accepted(
    cx: &EffectContext,
    #[key] order: u64,
    amount: u64,
    #[skip] remote: Remote,
) -> Result<Done, Trouble> {
    let _ = order;
    Ok(remote.submit(cx, amount).await?)
}

/// Which effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Resend,
    Quiet,
    Keyless,
    Reconcile,
    Asked,
    Hold,
    Rerun,
    Attached,
    Accepted,
}

pub(super) const KINDS: [Kind; 9] = [
    Kind::Resend,
    Kind::Quiet,
    Kind::Keyless,
    Kind::Reconcile,
    Kind::Asked,
    Kind::Hold,
    Kind::Rerun,
    Kind::Attached,
    Kind::Accepted,
];

impl Kind {
    /// Whether the class lets one effect be performed more than once. Where nobody lives to say that the key was not taken,
    /// passing it is its author's duty.
    pub(super) fn may_repeat(self, plan: &Plan) -> bool {
        match self {
            Self::Rerun | Self::Accepted => true,
            Self::Keyless => plan.harms_nodes() || plan.ledger_faults > 0,
            _ => false,
        }
    }

    fn promise(self) -> Promise {
        match self {
            Self::Resend => Promise::Deduplicates,
            Self::Quiet => Promise::DeduplicatesWhatIsDone,
            Self::Keyless => Promise::NothingWithoutKey,
            _ => Promise::Nothing,
        }
    }

    /// Calls the effect; the call is made now, and runs when it is polled.
    pub(super) fn call(
        self,
        world: &Arc<World>,
        scope: &TenantScope,
        order: u64,
        amount: u64,
    ) -> Pin<Box<dyn Future<Output = Result<Done, Trouble>> + Send>> {
        let remote = Remote::new(world, self.promise());
        match self {
            Self::Resend => Box::pin(sim_resend(scope, order, amount, remote)),
            Self::Quiet => Box::pin(sim_quiet(scope, order, amount, remote)),
            Self::Keyless => Box::pin(sim_keyless(scope, order, amount, remote)),
            Self::Reconcile => Box::pin(sim_reconcile(scope, order, amount, remote)),
            Self::Asked => Box::pin(sim_asked(scope, order, amount, remote)),
            Self::Hold => Box::pin(sim_hold(scope, order, amount, remote)),
            Self::Rerun => Box::pin(sim_rerun(scope, order, amount, remote)),
            Self::Accepted => {
                let call = sim_accepted(scope, order, amount, remote.clone());
                Box::pin(async move { call.await.inspect_err(|error| remote.check_end(error.kind())) })
            }
            Self::Attached => {
                let scope = scope.clone();
                Box::pin(async move { sim_attached(&scope, order, amount, &remote).await })
            }
        }
    }
}
