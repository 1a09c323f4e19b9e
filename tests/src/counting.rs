//! A ledger that counts what is asked of it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use effectual::{
    EffectId, Ledger, LedgerError, LedgerErrorKind, RunId,
    ledger::{
        By, Change, Changed, Claim, ClaimRequest, EffectHistory, EffectTransaction, Forgot, Owner, Payload,
        ResolutionReply, ResolutionRequest, RunPage, RunRow, Sweep, Swept, Transactions, UnsettledPage,
        UnsettledQuery,
    },
};

/// The ledger behind it, and the counts. Clones share everything.
#[derive(Debug, Clone)]
pub struct Counting {
    inner: Arc<dyn Ledger>,
    claims: Arc<AtomicU64>,
    reads: Arc<AtomicU64>,
    fails: Arc<AtomicBool>,
}

impl Counting {
    /// Over this ledger.
    pub fn new(inner: &Arc<dyn Ledger>) -> Self {
        Self { inner: inner.clone(), claims: Arc::default(), reads: Arc::default(), fails: Arc::default() }
    }

    /// How many claims were made.
    pub fn claims(&self) -> u64 {
        self.claims.load(Ordering::SeqCst)
    }

    /// Answers the next claim with an error, after a while.
    pub fn fail_next_claim(&self) {
        self.fails.store(true, Ordering::SeqCst);
    }

    /// How often an effect was read.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Ledger for Counting {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        self.claims.fetch_add(1, Ordering::SeqCst);
        if self.fails.swap(false, Ordering::SeqCst) {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            return Err(LedgerError::new(LedgerErrorKind::Unavailable, "told to fail"));
        }
        self.inner.claim(request).await
    }

    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        self.inner.change(owner, change).await
    }

    async fn resolve(&self, request: &ResolutionRequest) -> Result<ResolutionReply, LedgerError> {
        self.inner.resolve(request).await
    }

    fn transactions(&self) -> Transactions {
        self.inner.transactions()
    }

    async fn begin(&self, limit: Duration) -> Result<Box<dyn EffectTransaction>, LedgerError> {
        self.inner.begin(limit).await
    }

    async fn read(&self, id: &EffectId) -> Result<Option<EffectHistory>, LedgerError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.inner.read(id).await
    }

    async fn unsettled(&self, query: &UnsettledQuery) -> Result<UnsettledPage, LedgerError> {
        self.inner.unsettled(query).await
    }

    async fn input(&self, id: &EffectId) -> Result<Option<Payload>, LedgerError> {
        self.inner.input(id).await
    }

    async fn sweep(&self, batch: Sweep) -> Result<Swept, LedgerError> {
        self.inner.sweep(batch).await
    }

    async fn forget(&self, id: &EffectId, by: &By) -> Result<Forgot, LedgerError> {
        self.inner.forget(id, by).await
    }

    async fn of_run(&self, run: &RunId, page: &RunPage) -> Result<Vec<RunRow>, LedgerError> {
        self.inner.of_run(run, page).await
    }

    async fn changed(&self, id: &EffectId) {
        self.inner.changed(id).await;
    }

    fn announces(&self) -> bool {
        self.inner.announces()
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
