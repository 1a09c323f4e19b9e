//! An executor over the ledger in memory, and effects whose body a test gives.

use std::{future::Future, sync::Arc, time::Duration};

use effectual::{
    __private::{Arguments, Descriptor, KeyFields, ProviderRef, call},
    EffectContext, EffectError, Executor, Keying, Ledger, MemoryLedger, Outcome, Profile, Provider, Receipt,
    RecoveryClass, TenantScope,
    provider::{
        FailedFirst, KeyPlace,
        http::{HttpClient, HttpError},
    },
    retry::RetryPolicy,
};

/// A provider that deduplicates on a key in a header for a day.
pub(crate) struct Keyed;

impl Provider for Keyed {
    const NAME: &'static str = "keyed";

    fn profile() -> Profile {
        Profile::undocumented(Self::NAME, "2026-11-30")
            .with_key_place(KeyPlace::Header("Idempotency-Key".to_owned()))
            .with_window(Duration::from_secs(24 * 3600))
            .with_in_flight(effectual::provider::InFlightMeaning::Refuses, None)
            .with_failed_first(FailedFirst::Replayed)
            .with_replay_marker("Idempotent-Replayed", "true")
            .with_on_unknown(RecoveryClass::Resend)
    }
}

static DESCRIPTOR: Descriptor =
    Descriptor::new("send", Keying::BusinessIdentity, "http_adapter").provider(ProviderRef::of::<Keyed>());

pub(crate) struct Setup {
    pub(crate) executor: Executor,
    pub(crate) scope: TenantScope,
    pub(crate) receipt: Receipt,
}

/// An executor whose calls make this many attempts, without pauses between them.
pub(crate) fn setup(attempts: u32) -> Setup {
    let retry = RetryPolicy::default().attempts_max(attempts).base(Duration::ZERO);
    let executor = Executor::builder(Arc::new(MemoryLedger::new()) as Arc<dyn Ledger>)
        .retry(retry)
        .build()
        .expect("an executor");
    let receipt = Receipt::new();
    let scope = executor.tenant("acme").expect("a tenant").with_receipt(&receipt);
    Setup { executor, scope, receipt }
}

impl Setup {
    /// Calls the effect of this order.
    pub(crate) async fn call<T, B, F>(&self, order: u64, body: B) -> Result<T, EffectError<HttpError>>
    where
        T: Outcome,
        B: Fn(EffectContext) -> F + Send + Sync + 'static,
        F: Future<Output = Result<T, HttpError>> + Send + 'static,
    {
        let key = KeyFields::new().field("order", &order);
        let body = move |cx| {
            let end = body(cx);
            async move { Ok(end.await?) }
        };
        call(&self.scope, &DESCRIPTOR, key, Arguments::new(), body).await
    }

    /// Whether the stored outcome of the last call is marked as the provider's replay.
    pub(crate) async fn provider_replay(&self) -> bool {
        let id = self.receipt.effect_id().expect("a call has ended");
        let history =
            self.executor.inspect(&id).await.expect("the ledger answers").expect("the effect is there");
        history.effect.outcome.is_some_and(|outcome| outcome.provider_replay)
    }
}

pub(crate) fn client(base: &str) -> HttpClient {
    client_of(Keyed::profile(), base)
}

pub(crate) fn client_of(profile: Profile, base: &str) -> HttpClient {
    let client = HttpClient::new(profile, base).and_then(HttpClient::without_proxy).expect("a client");
    client.with_answer_max(1000)
}

/// Posts a JSON body and returns the status.
pub(crate) fn post(
    client: &HttpClient,
) -> impl Fn(EffectContext) -> std::pin::Pin<Box<dyn Future<Output = Result<u16, HttpError>> + Send>> + use<>
{
    let client = client.clone();
    move |cx| {
        let client = client.clone();
        Box::pin(async move {
            let body = serde_json::json!({ "amount": 500 });
            let answer = client.post("/things?kind=a").json(&body).send(&cx).await?;
            Ok(answer.status())
        })
    }
}
