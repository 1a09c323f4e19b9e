//! The witness: `GET /runs/{runId}/effects` tells a tenant what its run did, attempt by attempt.
//!
//! The [page on the witness](crate::docs::witness) says what is shown, and what of the idempotency specification is done
//! where.
//!
//! ```
//! use std::sync::Arc;
//!
//! use async_trait::async_trait;
//! use axum::{Router, http::request::Parts};
//! use effectual::{Ledger, RunId, Tenant, witness::{self, Denied, WitnessHost}};
//!
//! struct Host;
//!
//! #[async_trait]
//! impl WitnessHost for Host {
//!     async fn authorize(&self, request: &Parts) -> Result<Tenant, Denied> {
//!         // Put there by the host's authentication, which runs before.
//!         request.extensions.get::<Tenant>().cloned().ok_or(Denied::Unauthenticated)
//!     }
//!
//!     async fn has_run(&self, run: &RunId) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
//!         Ok(run.opaque().starts_with("known"))
//!     }
//! }
//!
//! fn app(ledger: Arc<dyn Ledger>) -> Router {
//!     Router::new().merge(witness::router(ledger, Host))
//! }
//! ```

mod answer;
mod page;
mod path;
mod problem;
mod router;
mod view;

pub use self::{
    path::{RunPathError, run_id_from_path, run_id_to_path},
    problem::Problem,
    router::{Denied, WitnessHost, authorized_run, router},
    view::{OUTSIDE_ANY_NODE, PROJECTION_SCHEMA},
};
