//! What the library's witness asks of this host.

use std::{error::Error, sync::Arc};

use axum::http::request::Parts;
use effectual::{
    RunId, Tenant,
    witness::{Denied, WitnessHost},
};

use crate::app::Host;

/// The host, as the witness knows it.
pub struct Guard(pub Arc<Host>);

#[async_trait::async_trait]
impl WitnessHost for Guard {
    async fn authorize(&self, request: &Parts) -> Result<Tenant, Denied> {
        // Every key of this host may read its tenant's runs; one with scopes would look for `runs:read` here.
        request.extensions.get::<Tenant>().cloned().ok_or(Denied::Unauthenticated)
    }

    async fn has_run(&self, run: &RunId) -> Result<bool, Box<dyn Error + Send + Sync>> {
        Ok(self.0.store.get(run).await?.is_some())
    }
}
