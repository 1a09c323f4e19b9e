//! The effects that are left behind, and the providers that know of them.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use effectual::{
    EffectContext, EffectId, Executor, ExecutorBuilder, Found, Keying, Ledger, LookUp, Poll, Polled, Profile,
    Provider, Recovery, RecoveryClass, TenantScope, effect,
    ledger::{
        Claim, ClaimRequest, EffectRecord, Payload,
        identities::Identities,
        record::{AttemptToken, Place},
    },
    provider::{InFlightMeaning, KeyPlace},
    retry::RetryPolicy,
};
use effectual_tests::scripted::{Done, Scripted, ScriptedError};
use tokio::sync::Notify;

/// A provider that deduplicates.
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

/// A provider that can be asked by key.
#[derive(Clone, Default)]
pub(crate) struct Asked {
    pub(crate) provider: Scripted,
    pub(crate) asked: Arc<AtomicU64>,
    /// What it says of every key; without it, what it performed.
    pub(crate) says: Option<Found<serde_json::Value, serde_json::Value>>,
}

#[async_trait::async_trait]
impl Provider for Asked {
    const NAME: &'static str = "asked";

    fn profile() -> Profile {
        let mut profile = Profile::undocumented(Self::NAME, "2026-11-30");
        profile.on_unknown = RecoveryClass::Reconcile;
        profile
    }

    async fn look_up(&self, request: &LookUp<'_>) -> Found<serde_json::Value, serde_json::Value> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if let Some(says) = &self.says {
            return says.clone();
        }
        let found = self.provider.find(request.key);
        found.map_or(Found::Absent, |done| Found::Done(serde_json::to_value(done).expect("JSON")))
    }
}

/// A provider that accepts jobs; it says of each what its script says next, and at its end that it is done.
#[derive(Clone, Default)]
pub(crate) struct Jobs {
    pub(crate) submitted: Arc<AtomicU32>,
    pub(crate) polled: Arc<AtomicU32>,
    script: Arc<Mutex<VecDeque<Polled<u32, ScriptedError>>>>,
}

impl Jobs {
    pub(crate) fn saying(script: impl IntoIterator<Item = Polled<u32, ScriptedError>>) -> Self {
        Self { script: Arc::new(Mutex::new(script.into_iter().collect())), ..Self::default() }
    }

    async fn submit(&self, cx: &EffectContext) -> Result<u32, ScriptedError> {
        let _permit = cx.send_permit()?;
        self.submitted.fetch_add(1, Ordering::SeqCst);
        cx.accepted("job-1", Duration::from_millis(1)).await.map_err(|_| ScriptedError::Lost)?;
        Err(ScriptedError::Lost)
    }

    fn ask(&self, handle: &str) -> Polled<u32, ScriptedError> {
        assert_eq!(handle, "job-1");
        self.polled.fetch_add(1, Ordering::SeqCst);
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        script.pop_front().unwrap_or(Polled::Done(42))
    }

    pub(crate) fn counts(&self) -> (u32, u32) {
        (self.submitted.load(Ordering::SeqCst), self.polled.load(Ordering::SeqCst))
    }
}

#[async_trait::async_trait]
impl Provider for Jobs {
    const NAME: &'static str = "jobs";

    fn profile() -> Profile {
        let mut profile = Windowed::profile();
        profile.name = Self::NAME.to_owned();
        profile
    }

    async fn poll(&self, request: &Poll<'_>) -> Polled<serde_json::Value, serde_json::Value> {
        match self.ask(request.handle) {
            Polled::Done(number) => Polled::Done(number.into()),
            Polled::Failed(error) => Polled::Failed(serde_json::to_value(error).expect("JSON")),
            Polled::Running { poll_after } => Polled::Running { poll_after },
            Polled::UnknownHandle => Polled::UnknownHandle,
            _ => Polled::Unknown,
        }
    }
}

/// A body that goes on until it is told.
#[derive(Clone, Default)]
pub(crate) struct Gate {
    pub(crate) entered: Arc<AtomicU32>,
    pub(crate) open: Arc<Notify>,
}

#[effect(keying = business_identity, provider = Windowed, durable)]
pub(crate) async fn shipping(
    cx: &EffectContext,
    #[key] order: String,
    amount: u128,
    #[skip] provider: Scripted,
) -> effectual::Result<Done, ScriptedError> {
    Ok(provider.send(cx, &format!("{order}/{amount}")).await?)
}

#[effect(keying = activity_recipe, on_unknown = reconcile(shipped), durable)]
pub(crate) async fn labelling(
    cx: &EffectContext,
    order: String,
    #[skip] provider: Scripted,
) -> effectual::Result<Done, ScriptedError> {
    Ok(provider.send(cx, &order).await?)
}

async fn shipped(
    cx: &EffectContext,
    _order: String,
    provider: Scripted,
) -> Result<Found<Done, ScriptedError>, ScriptedError> {
    Ok(provider.find(cx.idempotency_key()).map_or(Found::Absent, Found::Done))
}

#[effect(keying = business_identity, provider = Asked)]
pub(crate) async fn asking(
    cx: &EffectContext,
    #[key] order: String,
    #[skip] provider: Scripted,
) -> effectual::Result<Done, ScriptedError> {
    Ok(provider.send(cx, &order).await?)
}

#[effect(keying = business_identity)]
pub(crate) async fn holding(
    cx: &EffectContext,
    #[key] order: String,
    #[skip] provider: Scripted,
) -> effectual::Result<Done, ScriptedError> {
    Ok(provider.send(cx, &order).await?)
}

#[effect(keying = business_identity, on_unknown = rerun, durable)]
pub(crate) async fn waiting(
    cx: &EffectContext,
    #[key] order: String,
    #[skip] gate: Gate,
) -> effectual::Result<u32, ScriptedError> {
    let _ = (order, cx.idempotency_key());
    let entered = 1 + gate.entered.fetch_add(1, Ordering::SeqCst);
    gate.open.notified().await;
    Ok(entered)
}

#[effect(keying = business_identity, on_unknown = rerun, poll = exported)]
pub(crate) async fn exporting(
    cx: &EffectContext,
    #[key] order: String,
    #[skip] jobs: Jobs,
) -> effectual::Result<u32, ScriptedError> {
    let _ = order;
    Ok(jobs.submit(cx).await?)
}

async fn exported(
    _cx: &EffectContext,
    handle: &str,
    _order: String,
    jobs: Jobs,
) -> Result<Polled<u32, ScriptedError>, ScriptedError> {
    Ok(jobs.ask(handle))
}

#[effect(keying = business_identity, provider = Jobs)]
pub(crate) async fn batching(
    cx: &EffectContext,
    #[key] order: String,
    #[skip] jobs: Jobs,
) -> effectual::Result<u32, ScriptedError> {
    let _ = (order, cx.idempotency_key());
    Ok(jobs.submit(cx).await?)
}

/// What every executor of these effects is given.
#[derive(Clone, Default)]
pub(crate) struct World {
    pub(crate) provider: Scripted,
    pub(crate) asked: Asked,
    pub(crate) jobs: Jobs,
    pub(crate) gate: Gate,
}

impl World {
    pub(crate) fn of(provider: Scripted) -> Self {
        let asked = Asked { provider: provider.clone(), ..Asked::default() };
        Self { provider, asked, ..Self::default() }
    }

    pub(crate) fn builder(&self, ledger: &Arc<dyn Ledger>) -> ExecutorBuilder {
        Executor::builder(ledger.clone())
            .attempt_timeout(Duration::from_millis(300))
            .margin(Duration::from_millis(200))
            .lease(Duration::from_secs(2))
            .retry(once())
            .recovery(Recovery::off())
            .provider(self.asked.clone())
            .provider(self.jobs.clone())
            .resource(self.provider.clone())
            .resource(self.gate.clone())
            .resource(crate::processes::Counter(String::new()))
    }

    pub(crate) fn executor(&self, ledger: &Arc<dyn Ledger>) -> Executor {
        self.builder(ledger).build().expect("a valid set-up")
    }
}

/// One attempt a call, so that what it leaves behind is left to the recovery.
pub(crate) fn once() -> RetryPolicy {
    RetryPolicy::default()
        .attempts_max(1)
        .base(Duration::from_millis(1))
        .delay_max(Duration::from_millis(5))
        .elapsed_max(Duration::from_secs(20))
}

pub(crate) fn scope(executor: &Executor) -> TenantScope {
    executor.tenant("acme").expect("a tenant")
}

/// A claim that a process took and left without a word, a lease of 1 ms long.
pub(crate) fn left(operation: &str, name: &str, class: RecoveryClass) -> ClaimRequest {
    let digest = *blake3::hash(format!("{operation} {name}").as_bytes()).as_bytes();
    ClaimRequest {
        id: EffectId::parse(format!("acme/{}", blake3::Hash::from(digest).to_hex())).expect("an effect id"),
        operation: operation.into(),
        keying: Keying::BusinessIdentity,
        key_version: 1,
        identities: Identities::default(),
        readable: None,
        provider: None,
        provider_key: uuid::Uuid::new_v4().simple().to_string().into(),
        fingerprints: [].into(),
        input: None,
        class,
        can_perform: true,
        can_look_up: false,
        can_poll: false,
        resend_window_ms: None,
        resend_quiet_ms: None,
        token: AttemptToken(uuid::Uuid::new_v4().into_bytes()),
        lease_ms: 1,
        attempt_timeout_ms: 1,
        place: Place::default(),
    }
}

pub(crate) fn input(text: &str) -> Option<Payload> {
    Some(Payload { codec: "json/1".into(), bytes: text.as_bytes().to_vec() })
}

pub(crate) async fn leave(ledger: &dyn Ledger, request: &ClaimRequest) -> EffectRecord {
    match ledger.claim(request).await.expect("an answer") {
        Claim::Won { record, .. } => std::sync::Arc::unwrap_or_clone(record),
        other => panic!("not won: {other:?}"),
    }
}

pub(crate) async fn row(ledger: &dyn Ledger, id: &EffectId) -> EffectRecord {
    ledger.read(id).await.expect("an answer").expect("it is recorded").effect
}
