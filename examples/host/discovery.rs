//! `GET /.well-known/openwop`: what this host does, and nothing that it does not.

use std::sync::Arc;

use axum::{Json, extract::State};
use serde_json::{Value, json};

use crate::{
    app::{EFFECTS_KEPT_FOR, Host, REQUESTS_KEPT_FOR},
    workflows,
};

/// The version of OpenWOP that is spoken.
pub const VERSION: &str = "2.0";

pub async fn document(State(host): State<Arc<Host>>) -> Json<Value> {
    let mut idempotency = json!({
        "layer1RetentionSeconds": REQUESTS_KEPT_FOR.as_secs(),
        "layer2RetentionSeconds": EFFECTS_KEPT_FOR.as_secs(),
        "crossRegion": host.regions.cross_region().as_str(),
    });
    if host.regions.multi_region() {
        idempotency["multiRegion"] = json!({});
    }
    let mut document = json!({
        "protocolVersions": [VERSION],
        "preferredVersion": VERSION,
        "implementation": { "name": "effectual-example-host", "version": env!("CARGO_PKG_VERSION") },
        "fixtures": workflows::FIXTURES,
        "idempotency": idempotency,
    });
    if host.test_seams.is_some() {
        document["conformance"] = json!({ "seamsProfile": "openwop-conformance-seams-v2" });
    }
    Json(document)
}
