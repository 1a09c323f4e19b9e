//! Effects that were left behind, finished without their callers: `pass` looks for them, `unattended` works on one.

mod pass;
mod report;
mod unattended;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

pub use self::report::RecoveryReport;
pub(crate) use self::{pass::pass, unattended::Unattended};
use super::core::{Core, Phase};
use crate::{clock, environment, ledger::UnsettledCursor, telemetry};

/// How an executor finishes effects that were left behind: by a crash, an outage, a caller that gave up.
///
/// On by default. Without `durable` effects it never submits anything: it asks providers, by a look-up or an accepted handle,
/// and makes visible what nobody can know. See [the page](crate::docs::recovery).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovery {
    pub(crate) every: Option<Duration>,
    pub(crate) pass_max: u32,
    pub(crate) concurrency: usize,
    pub(crate) backoff_max: Duration,
}

/// How soon a pass follows the last one, where nobody says.
const EVERY: Duration = Duration::from_secs(30);

impl Default for Recovery {
    fn default() -> Self {
        Self::every(EVERY)
    }
}

impl Recovery {
    /// A pass about this often, above 0: between half and one and a half times as long after the last one, at random, so that
    /// processes do not keep step.
    #[must_use]
    pub fn every(interval: Duration) -> Self {
        Self { every: Some(interval), ..Self::off() }
    }

    /// No pass but those of [`Executor::recover`](crate::Executor::recover).
    #[must_use]
    pub fn off() -> Self {
        Self { every: None, pass_max: 500, concurrency: 8, backoff_max: Duration::from_secs(300) }
    }

    /// How many effects one pass takes up at the most, from 1. Default 500.
    #[must_use]
    pub fn pass_max(mut self, effects: u32) -> Self {
        self.pass_max = effects.max(1);
        self
    }

    /// How many effects are worked on at a time, from 1. Default 8.
    #[must_use]
    pub fn concurrency(mut self, effects: usize) -> Self {
        self.concurrency = effects.max(1);
        self
    }

    /// The longest time for which an effect is left alone after a pass that did not finish it. Default 5 minutes. It begins
    /// with the interval and grows with the age of the doubt; a call of the effect waits for it too.
    #[must_use]
    pub fn backoff_max(mut self, backoff_max: Duration) -> Self {
        self.backoff_max = backoff_max;
        self
    }

    /// The shortest such time.
    fn backoff_min(&self) -> Duration {
        self.every.unwrap_or(EVERY).min(self.backoff_max)
    }
}

/// What passes leave for later ones.
pub(crate) struct Recoveries {
    pub(crate) settings: Recovery,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// Where the next pass goes on.
    after: Option<UnsettledCursor>,
    total: RecoveryReport,
    /// The operations without a handler that were told of.
    told: BTreeSet<String>,
}

impl Recoveries {
    pub(crate) fn new(settings: Recovery) -> Self {
        Self { settings, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn total(&self) -> RecoveryReport {
        self.kept().total.clone()
    }

    fn tell_no_handler(&self, operation: &str) {
        if self.kept().told.insert(operation.to_owned()) {
            telemetry::no_handler(operation);
        }
    }
}

/// Starts the passes, where there are to be any. They keep no executor alive.
pub(crate) fn start(core: &Arc<Core>) {
    let Some(every) = core.recoveries.settings.every else { return };
    let (weak, mut phases) = (Arc::downgrade(core), core.phases());
    // The first pass comes soon, since there may be a crash behind us.
    let mut share = environment::share() / 2.0;
    drop(core.runtime.spawn(async move {
        loop {
            tokio::select! {
                biased;
                _ = phases.wait_for(|phase| *phase >= Phase::Draining) => return,
                () = clock::sleep(every.mul_f64(share)) => {}
            }
            let Some(core) = weak.upgrade() else { return };
            if let Err(error) = pass(&core).await {
                telemetry::ledger_retried("a look for effects that were left behind", &error);
            }
            share = 0.5 + environment::share();
        }
    }));
}
