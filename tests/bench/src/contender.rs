//! What is measured: something that performs one effect, and answers for it again.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;

use crate::caller::Caller;

/// One system on one database.
#[async_trait]
pub(crate) trait Contender: Send + Sync {
    /// Performs the effect of `key`, whose body does nothing but count. Durable when it returns.
    async fn perform(&self, key: u64);

    /// Answers for a `key` that was performed, from what is stored.
    async fn replay(&self, key: u64) {
        self.perform(key).await;
    }

    /// One caller that performs until its time is over.
    async fn performing(&self, mut caller: Caller) {
        caller.ready().await;
        while let Some(key) = caller.next() {
            self.perform(key).await;
            caller.done();
        }
    }

    /// One caller that asks again until its time is over.
    async fn replaying(&self, mut caller: Caller) {
        caller.ready().await;
        while let Some(key) = caller.next() {
            self.replay(key).await;
            caller.done();
        }
    }

    /// Whether it can answer again at all.
    fn replays(&self) -> bool {
        true
    }

    /// Counts the effects whose outcome is stored.
    fn count(&self) -> &'static str;

    /// Ends what it runs by itself.
    async fn close(&self) {}
}

/// Where the effects happen: how often each contender really performed is counted here, not asked of it.
#[derive(Debug, Default)]
pub(crate) struct Provider(AtomicU64);

impl Provider {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn perform(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn performed(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
