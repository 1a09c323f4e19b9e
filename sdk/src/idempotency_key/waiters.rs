//! Who waits for a request that runs in this process. Of others the store tells when it is asked again.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

#[derive(Default)]
pub(super) struct Waiters {
    by_record: Mutex<HashMap<[u8; 32], Arc<Notify>>>,
}

/// One that waits; nothing stays of it when it goes.
pub(super) struct Waiting<'a> {
    waiters: &'a Waiters,
    record: [u8; 32],
    pub(super) ended: Arc<Notify>,
}

impl Waiters {
    fn by_record(&self) -> MutexGuard<'_, HashMap<[u8; 32], Arc<Notify>>> {
        self.by_record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wait_for(&self, record: [u8; 32]) -> Waiting<'_> {
        let ended = Arc::clone(self.by_record().entry(record).or_default());
        Waiting { waiters: self, record, ended }
    }

    pub(super) fn ended(&self, record: &[u8; 32]) {
        if let Some(ended) = self.by_record().get(record) {
            ended.notify_waiters();
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut by_record = self.waiters.by_record();
        // The map's own, and this one.
        if Arc::strong_count(&self.ended) == 2 {
            by_record.remove(&self.record);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stays_of_those_who_waited() {
        let waiters = Waiters::default();
        let (one, other) = (waiters.wait_for([1; 32]), waiters.wait_for([1; 32]));
        drop(one);
        assert_eq!(waiters.by_record().len(), 1);
        waiters.ended(&[1; 32]);
        drop(other);
        assert!(waiters.by_record().is_empty());
    }
}
