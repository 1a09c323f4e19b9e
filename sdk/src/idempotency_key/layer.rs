//! The layer.

use std::{fmt, sync::Arc};

use http::Extensions;
use tower_layer::Layer;

use super::{
    builder::{IdempotencyKeyBuilder, Source},
    service::IdempotencyKeyService,
    settings::Settings,
    shared::{Parts, Shared},
};
use crate::{identity::Tenant, ledger::requests::RequestStore};

/// Answers a request that is sent again under its `Idempotency-Key` with the stored answer, and does not run it again.
///
/// Mount it inside of the authentication, which puts the tenant into the request's extensions, and where routing is done.
/// Cloning is cheap, and all clones share one store.
#[derive(Clone)]
pub struct IdempotencyKeyLayer {
    pub(super) shared: Arc<Shared>,
    pub(super) settings: Arc<Settings>,
}

impl fmt::Debug for IdempotencyKeyLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyKeyLayer").field("store", &self.shared.store).finish_non_exhaustive()
    }
}

impl IdempotencyKeyLayer {
    /// The settings of a layer over a store.
    ///
    /// `tenant` finds whose request it is, in what the authentication left in the request's extensions; it sees neither
    /// headers nor body. Where it finds none, a request with a key gets 401 and does not run: there is no bucket for
    /// everybody.
    pub fn builder(
        store: impl RequestStore,
        tenant: impl Fn(&Extensions) -> Option<Tenant> + Send + Sync + 'static,
    ) -> IdempotencyKeyBuilder {
        let parts = Parts { store: Arc::new(store), tenant: Arc::new(tenant) };
        IdempotencyKeyBuilder { shared: Source::New(parts), settings: Settings::default() }
    }

    /// The settings of this layer, to be changed for further routes; what comes of it shares this one's store.
    pub fn adjust(&self) -> IdempotencyKeyBuilder {
        IdempotencyKeyBuilder {
            shared: Source::Shared(Arc::clone(&self.shared)),
            settings: (*self.settings).clone(),
        }
    }
}

impl<S> Layer<S> for IdempotencyKeyLayer {
    type Service = IdempotencyKeyService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        IdempotencyKeyService::new(inner, self.clone())
    }
}
