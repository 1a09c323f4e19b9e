//! Effectual, as its users write it: through the attribute, with everything as it is by default.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use effectual::{EffectContext, Executor, Ledger, OutcomeCache, effect};

use crate::contender::{Contender, Provider};

/// The body does nothing: what is measured is everything around it.
#[effect(keying = business_identity, on_unknown = hold)]
pub(crate) async fn order(
    _cx: &EffectContext,
    #[key] order: u64,
    #[skip] provider: Arc<Provider>,
) -> effectual::Result<u64, effectual::Never> {
    provider.perform();
    Ok(order)
}

pub(crate) struct Effectual {
    executor: Executor,
    provider: Arc<Provider>,
}

impl Effectual {
    pub(crate) fn new(ledger: impl Ledger, provider: &Arc<Provider>) -> Self {
        let executor = Executor::builder(ledger).build().expect("an executor");
        Self { executor, provider: Arc::clone(provider) }
    }

    /// The same, with outcomes kept in the process' memory.
    pub(crate) fn cached(ledger: impl Ledger, provider: &Arc<Provider>) -> Self {
        let builder = Executor::builder(ledger).outcome_cache(OutcomeCache::new());
        Self { executor: builder.build().expect("an executor"), provider: Arc::clone(provider) }
    }

    pub(crate) fn executor(&self) -> &Executor {
        &self.executor
    }
}

#[async_trait]
impl Contender for Effectual {
    async fn perform(&self, key: u64) {
        let scope = self.executor.tenant("acme").expect("a tenant");
        let outcome = order(&scope, key, Arc::clone(&self.provider)).await.expect("an outcome");
        assert_eq!(outcome, key);
    }

    fn count(&self) -> &'static str {
        "SELECT count(*) FROM effectual_effects WHERE state = 'completed'"
    }

    async fn close(&self) {
        self.executor.drain(Duration::from_secs(30)).await;
    }
}
