//! The route, and what stands before a run's list: authentication, the path, the tenant, and whether the run exists.

use std::{error::Error, sync::Arc};

use async_trait::async_trait;
use axum::{
    Router,
    extract::State,
    http::request::Parts,
    response::{IntoResponse, Response},
    routing::get,
};

use super::{answer, page, path::run_id_from_path, problem::Problem};
use crate::{
    identity::{RunId, Tenant},
    ledger::Ledger,
};

/// Why a request may not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// Nobody knows whose request it is: 401.
    Unauthenticated,
    /// The caller is known and may not read runs: 403.
    Forbidden,
}

/// What the witness has to ask of the host. Neither question has a default: a witness that does not ask is open, or takes
/// a run that never was for one without effects.
#[async_trait]
pub trait WitnessHost: Send + Sync + 'static {
    /// Whose runs the request may read: the tenant of its credential, if that credential grants reading runs
    /// (`runs:read`).
    ///
    /// # Errors
    /// [`Denied`].
    async fn authorize(&self, request: &Parts) -> Result<Tenant, Denied>;

    /// Whether the host has such a run. Asked only for runs of the caller's own tenant.
    ///
    /// # Errors
    /// Any: answered with 503, and not shown.
    async fn has_run(&self, run: &RunId) -> Result<bool, Box<dyn Error + Send + Sync>>;
}

struct Witness<L, H> {
    ledger: L,
    host: H,
}

/// The route `GET /runs/{runId}/effects`, to be merged into the host's router. Every spelling of the run id that
/// [`run_id_from_path`] reads leads to it.
pub fn router<L: Ledger, H: WitnessHost>(ledger: L, host: H) -> Router {
    let effects = get(effects::<L, H>);
    Router::new()
        .route("/runs/{run}/effects", effects.clone())
        .route("/runs/{run}/{opaque}/effects", effects)
        .with_state(Arc::new(Witness { ledger, host }))
}

/// A run of the caller's own tenant, from the part of the path that names it: what every route of a run begins with.
///
/// # Errors
/// The answer: 400 `validation_error` for a path that names no run, 403 `id_tenant_mismatch` for a run of another tenant,
/// whether it exists or not.
pub fn authorized_run(raw: &str, tenant: &Tenant) -> Result<RunId, Problem> {
    let run = run_id_from_path(raw).map_err(|error| Problem::validation(error.to_string()))?;
    if run.tenant() == tenant { Ok(run) } else { Err(Problem::tenant_mismatch()) }
}

async fn effects<L: Ledger, H: WitnessHost>(
    State(witness): State<Arc<Witness<L, H>>>,
    request: axum::extract::Request,
) -> Response {
    let (parts, _) = request.into_parts();
    match answer(witness, &parts).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    }
}

async fn answer<L: Ledger, H: WitnessHost>(
    witness: Arc<Witness<L, H>>,
    parts: &Parts,
) -> Result<Response, Problem> {
    let tenant = witness.host.authorize(parts).await.map_err(|denied| match denied {
        Denied::Unauthenticated => Problem::unauthenticated(),
        Denied::Forbidden => Problem::forbidden(),
    })?;
    let path = parts.uri.path();
    let raw = path.strip_prefix("/runs/").and_then(|path| path.strip_suffix("/effects"));
    let run = authorized_run(raw.unwrap_or_default(), &tenant)?;
    let asked = page::asked(parts.uri.query().unwrap_or_default())?;
    match witness.host.has_run(&run).await {
        Ok(true) => {}
        Ok(false) => return Err(Problem::not_found("there is no such run")),
        Err(_) => return Err(Problem::unavailable("whether the run exists cannot be told now: try again")),
    }
    let lists = Lists(witness);
    match asked {
        None => answer::whole(lists, run).await,
        Some(asked) => answer::page(&lists, &run, &asked).await,
    }
}

/// The ledger of a witness, as the answer sees it.
struct Lists<L, H>(Arc<Witness<L, H>>);

impl<L: Ledger, H: WitnessHost> answer::Lists for Lists<L, H> {
    fn ledger(&self) -> &dyn Ledger {
        &self.0.ledger
    }
}
