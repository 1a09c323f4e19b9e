//! The test seams: what a conformance suite needs to bring about, and no caller may. Mounted only where `HOST_TEST_SEAMS`
//! says so.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    Extension, Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use effectual::{
    RunId, Tenant,
    regions::{RegionalRecord, converge},
    witness::Problem,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    app::Host,
    effects::{self, Delivery},
    runs::{Body, unavailable},
};

const IDEMPOTENCY: &str = "/conformance/seams/sample/test/idempotency";
const PARTITION: &str = "/conformance/seams/sample/test/multi-region/simulate-partition";

/// An armed hold that nobody came for is forgotten after this long.
const ARMED_FOR: Duration = Duration::from_secs(60);

const HOLD_MAX_MS: u64 = 10_000;

type Answer = Result<(StatusCode, Json<Value>), Problem>;

/// The holds that are armed: until when, and how long.
#[derive(Default)]
pub struct Seams(Mutex<HashMap<(Tenant, String), (Instant, Duration)>>);

pub fn router() -> Router<Arc<Host>> {
    Router::new()
        .route(&format!("{IDEMPOTENCY}/effect-retry"), post(effect_retry))
        .route(&format!("{IDEMPOTENCY}/hold"), post(hold))
        .route(PARTITION, post(simulate_partition))
        .route("/host/durability/kill", post(durability).get(durability_modes))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EffectRetry {
    provider_url: String,
}

/// Performs one effect whose first attempt does not end well: its answer is dropped where the provider gives one.
async fn effect_retry(
    State(host): State<Arc<Host>>,
    Extension(tenant): Extension<Tenant>,
    Body(asked): Body<EffectRetry>,
) -> Answer {
    let delivery = Delivery::new(address(asked.provider_url, "providerUrl")?, true);
    let run = start(&host, &tenant, &delivery).await?;
    let effect = effects::execute(&host, &run, &delivery).await.map_err(|_| Problem::internal())?;
    let effect = effect.ok_or_else(Problem::internal)?;
    Ok((StatusCode::CREATED, Json(json!({ "runId": run, "effectId": effect }))))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Durability {
    mode: String,
    effect_url: String,
}

/// Delivers one run twice at once. The modes that kill the process are not offered.
async fn durability(
    State(host): State<Arc<Host>>,
    Extension(tenant): Extension<Tenant>,
    Body(asked): Body<Durability>,
) -> Answer {
    if asked.mode != "duplicate-delivery" {
        return Err(Problem::validation("`mode` is `duplicate-delivery`"));
    }
    let delivery = Delivery::new(address(asked.effect_url, "effectUrl")?, false);
    let run = start(&host, &tenant, &delivery).await?;
    let (one, other) =
        tokio::join!(effects::execute(&host, &run, &delivery), effects::execute(&host, &run, &delivery));
    let effect = one.and(other).map_err(|_| Problem::internal())?.ok_or_else(Problem::internal)?;
    Ok((StatusCode::CREATED, Json(json!({ "runId": run, "effectId": effect }))))
}

async fn durability_modes() -> Json<Value> {
    Json(json!({ "modes": ["duplicate-delivery"] }))
}

async fn start(host: &Host, tenant: &Tenant, delivery: &Delivery) -> Result<RunId, Problem> {
    let run = delivery.run(RunId::mint(tenant)).map_err(|_| Problem::internal())?;
    host.store.insert(&run).await.map_err(|error| unavailable(&error))?;
    Ok(run.id)
}

fn address(url: String, name: &'static str) -> Result<String, Problem> {
    let is_address = url.len() <= 2_048 && effects::split(&url).is_some();
    if is_address { Ok(url) } else { Err(Problem::validation(format!("`{name}` is no http address"))) }
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Hold {
    key: String,
    hold_ms: u64,
}

/// Arms a hold: the tenant's next `POST /runs` under this key stays in flight that long.
async fn hold(
    State(host): State<Arc<Host>>,
    Extension(tenant): Extension<Tenant>,
    Body(asked): Body<Hold>,
) -> Answer {
    let is_key = (22..=128).contains(&asked.key.len())
        && asked.key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte));
    if !is_key || !(1..=HOLD_MAX_MS).contains(&asked.hold_ms) {
        let rule = format!("`key` is an idempotency key and `holdMs` is 1 to {HOLD_MAX_MS}");
        return Err(Problem::validation(rule));
    }
    let seams = host.test_seams.as_ref().ok_or_else(Problem::internal)?;
    seams.arm(tenant, &asked);
    Ok((StatusCode::CREATED, Json(json!(asked))))
}

impl Seams {
    fn arm(&self, tenant: Tenant, asked: &Hold) {
        let now = Instant::now();
        let mut armed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        armed.retain(|_, (until, _)| *until > now);
        armed.insert((tenant, asked.key.clone()), (now + ARMED_FOR, Duration::from_millis(asked.hold_ms)));
    }

    /// Waits if a hold was armed for this request. Once: a request that comes again is not held.
    pub async fn hold(&self, tenant: &Tenant, headers: &HeaderMap) {
        let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok());
        let Some(key) = key else { return };
        let armed =
            self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&(tenant.clone(), key.to_owned()));
        if let Some((until, length)) = armed
            && until > Instant::now()
        {
            tokio::time::sleep(length).await;
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Partition {
    claims: Vec<RegionalClaim>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RegionalClaim {
    run_id: String,
    tenant_id: String,
    endpoint: String,
    key: String,
    region: String,
}

/// Shows which of the records that regions made during a partition stays. It changes nothing here.
async fn simulate_partition(Body(asked): Body<Partition>) -> Result<Json<Value>, Problem> {
    let records: Vec<_> = asked
        .claims
        .iter()
        .map(|claim| RegionalRecord {
            tenant: &claim.tenant_id,
            endpoint: &claim.endpoint,
            key: &claim.key,
            region: &claim.region,
            run: &claim.run_id,
        })
        .collect();
    let converged = converge(&records).map_err(|error| Problem::validation(error.to_string()))?;
    let shown = |record: &RegionalRecord<'_>| {
        json!({
            "runId": record.run,
            "tenantId": record.tenant,
            "endpoint": record.endpoint,
            "key": record.key,
            "region": record.region,
        })
    };
    let redirects: Vec<_> = records
        .iter()
        .map(|record| {
            json!({
                "region": record.region,
                "cacheKey": format!("{}:{}", record.endpoint, record.key),
                "redirectToRunId": converged.survivor.run,
            })
        })
        .collect();
    Ok(Json(json!({
        "winner": shown(&converged.survivor),
        "losers": converged.lost.iter().map(shown).collect::<Vec<_>>(),
        "cacheRedirects": redirects,
        "loserCancelReason": "cross_region_dedup_loss",
    })))
}
