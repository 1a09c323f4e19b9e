//! What is measured: something that performs one effect, and answers for it again.

use async_trait::async_trait;

/// One system on one database.
#[async_trait]
pub(crate) trait Contender: Send + Sync {
    /// Performs the effect of `key`, whose body does nothing. Durable when it returns.
    async fn perform(&self, key: u64);

    /// Answers for a `key` that was performed, from what is stored.
    async fn replay(&self, key: u64) {
        self.perform(key).await;
    }

    /// Ends what it runs by itself.
    async fn close(&self) {}
}
