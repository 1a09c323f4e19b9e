//! The one effect of this host: a message that is sent to an address.
//!
//! The delivery's id is made once, with the run, and stored in it. Whoever executes the run again - a second worker, this
//! host after a crash - calls the effect with the same id and so means the same effect.

use std::{sync::Arc, time::Duration};

use effectual::{
    EffectContext, EffectId, ErrorKind, Failure, OrFail, Profile, Provider, Receipt, RecoveryClass, RunId,
    effect,
    provider::{
        AnswerMeaning, AnswerRule, InFlightMeaning, KeyPlace,
        http::{HttpClient, HttpError},
    },
};
use serde::{Deserialize, Serialize};

use crate::{
    app::Host,
    store::{Run, Status, now_ms},
    workflows,
};

/// How long a run that could not go on waits before it is executed again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Whoever receives the messages: it deduplicates on `Idempotency-Key` for a day, and says so while it is at work.
pub struct Receiver;

impl Provider for Receiver {
    const NAME: &'static str = "receiver";

    fn profile() -> Profile {
        Profile::undocumented(Self::NAME, "2026-11-30")
            .with_key_place(KeyPlace::Header("Idempotency-Key".into()))
            .with_window(Duration::from_secs(24 * 60 * 60))
            .with_on_unknown(RecoveryClass::Resend) // no answer: the same message again, under the same key
            .with_in_flight(InFlightMeaning::Refuses, None)
            .with_answer(AnswerRule::new(AnswerMeaning::KeyInFlight).status(409))
    }
}

/// What can go wrong with a message.
#[derive(Debug, thiserror::Error, Serialize, Deserialize, Failure)]
pub enum DeliveryError {
    #[error("the receiver: {0}")]
    #[failure(transparent)]
    Http(#[from] HttpError),
    /// Says nothing about what it means, so it means that nobody knows.
    #[error("the answer was lost on the way")]
    AnswerLost,
    /// Nothing is sent to what is no address.
    #[error("the address is no http address")]
    #[failure(refused)]
    Address,
}

/// Sends one message and returns the receiver's status.
#[effect(keying = business_identity, provider = Receiver, retry(attempts = 2, base = "20ms"))]
pub async fn deliver(
    cx: &EffectContext,
    #[key] delivery: String,
    url: String,
    #[skip] client: HttpClient,
    #[skip] loses_first_answer: bool,
) -> effectual::Result<u16, DeliveryError> {
    let (base, path) = split(&url).ok_or(DeliveryError::Address)?;
    let client = client.with_base(base).or_fail()?;
    let message = serde_json::json!({ "delivery": delivery });
    let answer = client.post(path).json(&message).send(cx).await.or_fail()?;
    if loses_first_answer && cx.attempt() == 1 {
        return Err(DeliveryError::AnswerLost.into());
    }
    Ok(answer.status())
}

/// `http://host:port` and the path behind it.
pub fn split(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    if !matches!(scheme, "http" | "https") || rest.contains('#') {
        return None;
    }
    let end = rest.find(['/', '?']).map_or(url.len(), |at| url.len() - rest.len() + at);
    let (base, path) = url.split_at(end);
    Some((base, if path.is_empty() { "/" } else { path }))
}

/// The inputs of a run that delivers.
#[derive(Clone, Serialize, Deserialize)]
pub struct Delivery {
    delivery: String,
    url: String,
    loses_first_answer: bool,
}

impl Delivery {
    pub fn new(url: String, loses_first_answer: bool) -> Self {
        Self { delivery: uuid::Uuid::new_v4().to_string(), url, loses_first_answer }
    }

    /// A run that will make this delivery, not stored yet.
    ///
    /// # Errors
    /// None in practice: texts are JSON.
    pub fn run(&self, id: RunId) -> serde_json::Result<Run> {
        Ok(Run {
            id,
            workflow: workflows::DELIVERY.to_owned(),
            inputs: serde_json::to_string(self)?,
            status: Status::Running,
            started_ms: now_ms(),
            due_ms: None,
        })
    }
}

/// Executes a run's one node. Executed twice, at once or after a crash, it means the same effect.
///
/// # Errors
/// The ids of this host are valid.
pub async fn execute(
    host: &Host,
    run: &RunId,
    of: &Delivery,
) -> Result<Option<EffectId>, effectual::identity::InvalidId> {
    let receipt = Receipt::new();
    let tenant = host.executor.tenant(run.tenant().clone())?.with_receipt(&receipt);
    let node = tenant.run(run.clone())?.node("deliver")?;
    let call =
        deliver(&node, of.delivery.clone(), of.url.clone(), host.client.clone(), of.loses_first_answer);
    let status = match call.await {
        Ok(_) => Status::Completed,
        // Another execution is at it, or this host is about to end: the run is not over.
        Err(error) if matches!(error.kind(), ErrorKind::InFlight | ErrorKind::Draining) => {
            return Ok(receipt.effect_id());
        }
        Err(error) => {
            tracing::info!(%run, kind = ?error.kind(), "the delivery did not end well");
            Status::Failed
        }
    };
    if let Err(error) = host.store.end(run, status).await {
        tracing::warn!(%run, %error, "the run's end was not written; it is executed again at the next start");
    }
    Ok(receipt.effect_id())
}

/// Executes again what was under way when this host last ended.
///
/// # Errors
/// The runs cannot be read.
pub async fn resume(host: &Arc<Host>) -> sqlx::Result<()> {
    for run in host.store.unfinished(workflows::DELIVERY).await? {
        let Ok(delivery) = serde_json::from_str::<Delivery>(&run.inputs) else { continue };
        let host = Arc::clone(host);
        tokio::spawn(async move {
            // The claim of the process that died holds for as long as its lease: until then it is in flight.
            while execute(&host, &run.id, &delivery).await.is_ok() && is_running(&host, &run.id).await {
                tokio::time::sleep(AGAIN_AFTER).await;
            }
        });
    }
    Ok(())
}

async fn is_running(host: &Host, run: &RunId) -> bool {
    matches!(host.store.get(run).await, Ok(Some(run)) if run.status == Status::Running)
}
