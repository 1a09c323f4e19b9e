//! API keys, and whose they are.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use effectual::{Tenant, witness::Problem};

use crate::app::Host;

/// The tenants' keys. Only their digests are kept, so that no debugger or log shows one.
pub struct ApiKeys(Vec<(blake3::Hash, Tenant)>);

impl ApiKeys {
    /// Reads `tenant=key,…`.
    ///
    /// # Errors
    /// A text that says which entry is wrong, by its number.
    pub fn parse(text: &str) -> Result<Self, String> {
        let entry = |(at, entry): (usize, &str)| {
            let wrong = || format!("HOST_API_KEYS: entry {} is not `tenant=key`", at + 1);
            let (tenant, key) = entry.split_once('=').filter(|(_, key)| !key.is_empty()).ok_or_else(wrong)?;
            Ok((blake3::hash(key.as_bytes()), Tenant::parse(tenant).map_err(|_| wrong())?))
        };
        text.split(',').enumerate().map(entry).collect::<Result<_, String>>().map(Self)
    }

    /// Takes the same time whichever key it is, and whether it is one: digests are compared in constant time, all of them.
    fn tenant_of(&self, key: &str) -> Option<&Tenant> {
        let digest = blake3::hash(key.as_bytes());
        self.0.iter().fold(None, |found, (known, tenant)| if *known == digest { Some(tenant) } else { found })
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut lines = headers.get_all(header::AUTHORIZATION).iter();
    let (line, None) = (lines.next()?, lines.next()) else { return None };
    let (scheme, key) = line.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
}

/// Puts the tenant of the request's key into its extensions, where everything behind finds it. Nothing else says whose a
/// request is.
pub async fn authenticate(State(host): State<Arc<Host>>, mut request: Request, next: Next) -> Response {
    let tenant = bearer(request.headers()).and_then(|key| host.keys.tenant_of(key)).cloned();
    match tenant {
        Some(tenant) => {
            request.extensions_mut().insert(tenant);
            next.run(request).await
        }
        None => Problem::unauthenticated().into_response(),
    }
}
