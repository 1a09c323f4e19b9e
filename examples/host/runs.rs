//! Runs: starting, reading and cancelling them.

use std::sync::Arc;

use axum::{
    Extension, Json,
    body::Bytes,
    extract::{FromRequest, Request, State, rejection::BytesRejection},
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use effectual::{
    RunId, Tenant,
    idempotency_key::KeyedRequest,
    witness::{Problem, authorized_run, run_id_to_path},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use crate::{
    app::Host,
    store::{Run, Status, now_ms},
    workflows,
};

/// The body of `POST /runs`: nothing else is taken.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Start {
    workflow_id: String,
    #[serde(default)]
    inputs: Map<String, Value>,
    /// Whose run it is follows from the credential; said again, it must be the same.
    tenant_id: Option<String>,
}

/// `POST /runs`. The run and the record of this answer are stored in one transaction: whenever this process dies, a request
/// that is sent again finds both or neither, and there is never a second run.
pub async fn create(
    State(host): State<Arc<Host>>,
    Extension(tenant): Extension<Tenant>,
    keyed: KeyedRequest,
    headers: HeaderMap,
    Body(start): Body<Start>,
) -> Result<Response, Problem> {
    if start.tenant_id.is_some_and(|named| named != tenant.as_str()) {
        return Err(Problem::tenant_mismatch());
    }
    let duration_ms = workflows::duration_ms(&start.workflow_id, &start.inputs)?;
    if let Some(seams) = &host.test_seams {
        seams.hold(&tenant, &headers).await;
    }
    let started_ms = now_ms();
    let run = Run {
        id: RunId::mint(&tenant),
        workflow: start.workflow_id,
        inputs: serde_json::to_string(&start.inputs).map_err(|_| Problem::internal())?,
        status: Status::Running,
        started_ms,
        due_ms: Some(started_ms.saturating_add_unsigned(duration_ms)),
    };
    let path = format!("/runs/{}", run_id_to_path(&run.id));
    let answer = json!({ "runId": run.id, "status": run.status, "statusUrl": path });
    let response = (StatusCode::CREATED, [("location", path)], Json(answer)).into_response();
    host.store.insert_with(&run, keyed, response).await.map_err(|error| unavailable(&error))
}

/// `GET /runs/{runId}`.
pub async fn read(
    State(host): State<Arc<Host>>,
    Extension(tenant): Extension<Tenant>,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let id = authorized_run(uri.path().strip_prefix("/runs/").unwrap_or_default(), &tenant)?;
    let run = host.store.get(&id).await.map_err(|error| unavailable(&error))?.ok_or_else(no_such_run)?;
    Ok(Json(snapshot(&run)))
}

/// `POST /runs/{runId}/cancel`.
pub async fn cancel(
    State(host): State<Arc<Host>>,
    Extension(tenant): Extension<Tenant>,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let path = uri.path().strip_prefix("/runs/").and_then(|path| path.strip_suffix("/cancel"));
    let id = authorized_run(path.unwrap_or_default(), &tenant)?;
    let was_running = host.store.end(&id, Status::Cancelled).await.map_err(|error| unavailable(&error))?;
    let run = host.store.get(&id).await.map_err(|error| unavailable(&error))?.ok_or_else(no_such_run)?;
    if !was_running && run.status != Status::Cancelled {
        return Err(Problem::new(StatusCode::CONFLICT, "run_terminal", "the run is over"));
    }
    Ok(Json(json!({ "runId": id, "status": run.status })))
}

fn snapshot(run: &Run) -> Value {
    let tenant = run.id.tenant();
    let subject = json!({
        "issuer": "urn:effectual:example-host",
        "subjectId": tenant,
        "tenant": tenant,
        "lane": "api-key",
        "kind": "workload",
    });
    let mut snapshot = json!({
        "runId": run.id,
        "workflowId": run.workflow,
        "status": run.status,
        "owner": { "tenant": tenant, "subject": subject },
        "eventLogSchemaVersion": 3,
    });
    if run.workflow != workflows::DELIVERY {
        // What this host wrote is JSON.
        snapshot["inputs"] = serde_json::from_str(&run.inputs).unwrap_or_default();
    }
    if run.status == Status::Failed {
        snapshot["error"] =
            json!({ "code": "upstream_unavailable", "message": "the delivery did not end well" });
    }
    snapshot
}

fn no_such_run() -> Problem {
    Problem::not_found("there is no such run")
}

/// The database's own text is for the log, not for a caller.
pub fn unavailable(error: &sqlx::Error) -> Problem {
    tracing::error!(%error, "the runs cannot be read or written");
    Problem::unavailable("the runs cannot be read or written now: try again")
}

/// A JSON body of this shape; anything else is refused in the shape of every error here, and what was sent is not quoted.
pub struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| match rejection {
            BytesRejection::FailedToBufferBody(error) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => {
                Problem::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "payload_too_large",
                    "the body is larger than 2 MiB",
                )
            }
            _ => Problem::validation("the body broke off"),
        })?;
        serde_json::from_slice(&bytes).map(Self).map_err(|error| {
            let what = if error.is_data() {
                "it has another shape than this address takes"
            } else {
                "it is no JSON"
            };
            let place = json!({ "line": error.line(), "column": error.column() });
            Problem::validation(format!("the body cannot be read: {what}")).with_details(place)
        })
    }
}
