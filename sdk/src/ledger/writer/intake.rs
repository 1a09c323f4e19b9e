//! What waits for the writers, and what goes into the next batch.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Notify, oneshot};

use super::{Command, Reply, closed, lanes::Lanes, room::Room};
use crate::ledger::LedgerError;

/// How many commands one commit carries at the most.
pub(super) const BATCH_MAX: usize = 256;

/// How much of a batch is for claims, however many changes wait.
const CLAIMS_SHARE: usize = BATCH_MAX / 4;

/// A command, and who waits for its answer.
pub(super) struct Waiting {
    pub(super) command: Command,
    pub(super) reply: oneshot::Sender<Result<Reply, LedgerError>>,
    /// A claim's, for as long as it waits.
    pub(super) _room: Option<Room>,
}

/// What the callers and the writers share.
#[derive(Default)]
pub(super) struct Line {
    state: Mutex<State>,
    /// Something waits, or no caller is left.
    news: Notify,
}

#[derive(Default)]
struct State {
    /// Changes of claims that are held and resolutions: a lease must not end because of who else wants one. They are no
    /// more than there are claims.
    changes: Lanes<Waiting>,
    claims: Lanes<Waiting>,
    /// No caller is left.
    is_closed: bool,
    /// No writer is left.
    is_over: bool,
}

impl Line {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, waiting: Waiting) -> Result<(), LedgerError> {
        {
            let mut state = self.state();
            if state.is_over {
                return Err(closed());
            }
            let State { changes, claims, .. } = &mut *state;
            let lanes = if matches!(waiting.command, Command::Claim(_)) { claims } else { changes };
            let tenant = waiting.command.id().tenant().clone();
            lanes.push(&tenant, waiting);
        }
        self.news.notify_one();
        Ok(())
    }

    /// No more is coming.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.news.notify_waiters();
    }
}

impl State {
    /// At most one command for each effect; the others keep their places and nobody else out.
    fn take(&mut self) -> Vec<Waiting> {
        let mut seen: HashSet<[u8; 32]> = HashSet::new();
        let mut fits = |waiting: &Waiting| seen.insert(*waiting.command.id().digest());
        let mut batch = Vec::new();
        self.changes.take(BATCH_MAX - self.claims.len().min(CLAIMS_SHARE), &mut batch, &mut fits);
        self.claims.take(BATCH_MAX - batch.len(), &mut batch, &mut fits);
        self.changes.take(BATCH_MAX - batch.len(), &mut batch, &mut fits);
        batch
    }

    fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.claims.is_empty()
    }
}

/// The writers' end: several writers may share one.
pub(crate) struct Intake(pub(super) Arc<Line>);

impl Intake {
    /// Waits for work and takes all there is, as far as it goes into one batch; `None` when all callers are gone.
    pub(super) async fn next_batch(&self) -> Option<Vec<Waiting>> {
        loop {
            // Made first: what happens between the look and the wait is not missed.
            let news = self.0.news.notified();
            if let Some(batch) = self.batch_at_once() {
                return Some(batch);
            }
            if self.0.state().is_closed {
                // What came in between.
                return self.batch_at_once();
            }
            news.await;
        }
    }

    /// The same, where work is there.
    pub(super) fn batch_at_once(&self) -> Option<Vec<Waiting>> {
        let mut state = self.0.state();
        if state.is_empty() {
            return None;
        }
        let batch = state.take();
        if !state.is_empty() {
            // Another writer may be free.
            self.0.news.notify_one();
        }
        Some(batch)
    }
}

impl Drop for Intake {
    /// What waits is not going to be stored: its callers are told.
    fn drop(&mut self) {
        let left = {
            let mut state = self.0.state();
            state.is_over = true;
            (std::mem::take(&mut state.changes), std::mem::take(&mut state.claims))
        };
        drop(left);
    }
}
