//! Callers that run inside a peer's workflows: one long workflow for each caller, one step for each effect.

use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::caller::Caller;

/// Callers on their way into the workflow that bears the same id, and what the workflows that ended have recorded.
#[derive(Default)]
pub(crate) struct Lanes {
    waiting: Mutex<HashMap<String, Caller>>,
    recorded: Mutex<Vec<(String, u64)>>,
    next: AtomicU64,
}

impl Lanes {
    /// The id of a workflow that finds the caller.
    pub(crate) fn enter(&self, caller: Caller) -> String {
        let id = format!("lane-{}", self.next.fetch_add(1, Ordering::Relaxed));
        self.waiting.lock().expect("nobody panicked").insert(id.clone(), caller);
        id
    }

    pub(crate) fn take(&self, id: &str) -> Caller {
        self.waiting.lock().expect("nobody panicked").remove(id).expect("a caller for each workflow")
    }

    /// The workflow has recorded so many steps, if it was not one that ran again.
    pub(crate) fn record(&self, id: &str, steps: u64, again: bool) {
        if again {
            return;
        }
        self.recorded.lock().expect("nobody panicked").push((id.to_owned(), steps));
    }

    /// A workflow to re-run: the ones with most steps first, each once until all were taken.
    pub(crate) fn recorded(&self, number: usize) -> (String, u64) {
        let mut recorded = self.recorded.lock().expect("nobody panicked");
        recorded.sort_unstable_by_key(|(_, steps)| std::cmp::Reverse(*steps));
        recorded[number % recorded.len()].clone()
    }
}
