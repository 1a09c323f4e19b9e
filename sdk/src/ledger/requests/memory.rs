//! Request records in the memory of one process.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;

use super::{
    Begin, Begun, Change, Changed, Owner, RecordKey, RequestRecord, RequestStore,
    judge::{self, Judgement, Write},
};
use crate::{
    clock,
    ledger::{LedgerError, LedgerErrorKind},
};

/// How many records there may be unless set otherwise.
const RECORDS_MAX: usize = 100_000;

/// Records that are gone when the process ends, and that no other process sees. For tests and for trying things out.
///
/// Cloning is cheap, and all clones are one store.
#[derive(Debug, Clone)]
pub struct MemoryRequests {
    kept: Arc<Mutex<HashMap<[u8; 32], RequestRecord>>>,
    records_max: usize,
}

impl Default for MemoryRequests {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryRequests {
    /// An empty store of at most 100,000 records.
    #[must_use]
    pub fn new() -> Self {
        Self { kept: Arc::default(), records_max: RECORDS_MAX }
    }

    /// With room for `records_max` records. A request that would need one more is refused with
    /// [`LedgerErrorKind::Full`]: none that is still to be kept is dropped for it.
    #[must_use]
    pub fn records_max(mut self, records_max: usize) -> Self {
        self.records_max = records_max;
        self
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<[u8; 32], RequestRecord>> {
        // Rows are replaced whole, so that a panic under the lock leaves none half made.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn apply<R>(
        &self,
        key: &RecordKey,
        judge: impl FnOnce(Option<&RequestRecord>) -> Judgement<R>,
    ) -> Result<R, LedgerError> {
        let mut kept = self.kept();
        let held = kept.get(key.digest());
        let is_new = held.is_none();
        let judgement = judge(held);
        match judgement.write {
            Some(Write::Put(_)) if is_new && kept.len() >= self.records_max => {
                return Err(LedgerError::new(
                    LedgerErrorKind::Full,
                    format!("{} request records are in memory; use a database", kept.len()),
                ));
            }
            Some(Write::Put(record)) => drop(kept.insert(*key.digest(), *record)),
            Some(Write::Drop) => drop(kept.remove(key.digest())),
            None => {}
        }
        Ok(judgement.reply)
    }
}

#[async_trait]
impl RequestStore for MemoryRequests {
    async fn begin(&self, request: &Begin) -> Result<Begun, LedgerError> {
        self.apply(&request.key, |held| judge::begin(held, request, clock::wall_ms()))
    }

    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        self.apply(&owner.key, |held| judge::change(held, owner, change, clock::wall_ms()))
    }

    async fn read(&self, key: &RecordKey) -> Result<Option<RequestRecord>, LedgerError> {
        Ok(self.kept().get(key.digest()).cloned())
    }

    async fn sweep(&self, limit: u32) -> Result<u64, LedgerError> {
        let now = clock::wall_ms();
        let mut kept = self.kept();
        let over = kept.iter().filter(|(_, record)| judge::is_over(record, now));
        let over: Vec<_> = over.map(|(digest, _)| *digest).take(limit as usize).collect();
        for digest in &over {
            kept.remove(digest);
        }
        Ok(over.len() as u64)
    }

    fn name(&self) -> &'static str {
        "memory"
    }
}
