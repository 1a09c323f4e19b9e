//! Effectual, as its users write it: through the attribute, with everything as it is by default.

use async_trait::async_trait;
use effectual::{EffectContext, Executor, Ledger, effect};

use crate::contender::Contender;

/// The body does nothing: what is measured is everything around it.
#[effect(keying = business_identity, on_unknown = hold)]
async fn order(_cx: &EffectContext, #[key] order: u64) -> effectual::Result<u64, effectual::Never> {
    Ok(order)
}

pub(crate) struct Effectual {
    executor: Executor,
}

impl Effectual {
    pub(crate) fn new(ledger: impl Ledger) -> Self {
        Self { executor: Executor::builder(ledger).build().expect("an executor") }
    }
}

#[async_trait]
impl Contender for Effectual {
    async fn perform(&self, key: u64) {
        let scope = self.executor.tenant("acme").expect("a tenant");
        order(&scope, key).await.expect("an outcome");
    }

    async fn close(&self) {
        self.executor.drain(std::time::Duration::from_secs(30)).await;
    }
}
