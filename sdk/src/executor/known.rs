//! What this process knows of a settled effect, and what it answers by that without asking the ledger again.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    drive::{Call, mismatch, stored},
    erased::CallEnd,
    held::millis,
};
use crate::{
    clock::Moment,
    identity::RunId,
    ledger::{
        EffectRecord,
        claim::answered::{self, Answered},
        record::LedgerTime,
    },
};

/// How many runs are remembered as having met one effect.
const RUNS_MAX: usize = 16;

/// When the ledger was asked: taken before that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) at: Moment,
    /// How often this process had overruled an outcome by then.
    pub(crate) overruled: u64,
}

/// The row of a settled effect, and what was known when it was learned.
#[derive(Debug)]
pub(crate) struct Known {
    record: Arc<EffectRecord>,
    /// The ledger's clock when it answered.
    at: LedgerTime,
    asked: Asked,
    /// Runs whose first touch is stored.
    runs: Mutex<VecDeque<RunId>>,
}

impl Known {
    /// What the ledger answered to a call of `run`, at `at` of its clock.
    pub(crate) fn new(record: Arc<EffectRecord>, at: LedgerTime, asked: Asked, run: Option<&RunId>) -> Self {
        Self { record, at, asked, runs: Mutex::new(run.into_iter().cloned().collect()) }
    }

    pub(crate) fn record(&self) -> &EffectRecord {
        &self.record
    }

    pub(crate) fn asked(&self) -> &Asked {
        &self.asked
    }

    /// The ledger's clock, at the latest it can be: the answer was given after it was asked for, and in whole milliseconds.
    fn ledger_now(&self) -> LedgerTime {
        self.at.saturating_add(millis(self.asked.at.elapsed())).saturating_add(1)
    }

    fn runs(&self) -> MutexGuard<'_, VecDeque<RunId>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nothing is to be stored for a call of this run.
    fn is_met_by(&self, run: Option<&RunId>) -> bool {
        match run {
            None => true,
            Some(run) => self.record.place.run.as_ref() == Some(run) || self.runs().contains(run),
        }
    }

    /// Adds the runs that an older answer knew of, as many as are remembered.
    pub(crate) fn add_runs_of(&self, older: &Self) {
        let older: Vec<RunId> = older.runs().iter().cloned().collect();
        let mut runs = self.runs();
        let new: Vec<_> = older.into_iter().filter(|run| !runs.contains(run)).collect();
        for run in new.into_iter().rev().take(RUNS_MAX.saturating_sub(runs.len())) {
            runs.push_front(run);
        }
    }
}

impl Call {
    /// The end of this call by what is known; `None` where the ledger is to be asked: the outcome may be past its retention,
    /// or this call's run has yet to be stored as having met the effect.
    pub(crate) fn end_by(&self, known: &Known) -> Option<CallEnd> {
        match answered::judge(&known.record, &self.fingerprints, known.ledger_now())? {
            Answered::Mismatch { arguments } => Some(mismatch(&arguments).into()),
            Answered::Expired => None,
            Answered::Settled => {
                known.is_met_by(self.scope.place.run.as_ref()).then(|| stored(&known.record, true))
            }
        }
    }
}
