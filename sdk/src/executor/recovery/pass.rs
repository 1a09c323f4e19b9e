//! One pass: page by page, what is due is taken up, within bounds.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tracing::Instrument as _;

use super::{
    report::RecoveryReport,
    unattended::{Came, Skip, prepare},
};
use crate::{
    environment::{self, Task},
    executor::core::{Core, Phase},
    ledger::{LedgerError, Unsettled, UnsettledQuery, claim, record::LedgerTime},
    telemetry,
};

/// How many effects a page looks at, and how many pages a pass does: together, what one pass costs the ledger at the most.
const PAGE: u32 = 200;
const PAGES_MAX: u32 = 50;

/// Looks at what is due, from where the last pass stopped, and takes up what this process can move on.
pub(crate) async fn pass(core: &Arc<Core>) -> Result<RecoveryReport, LedgerError> {
    let room = Arc::new(Semaphore::new(core.recoveries.settings.concurrency));
    let mut pass = Pass {
        core,
        report: RecoveryReport { passes: 1, ..RecoveryReport::default() },
        running: Vec::new(),
        room,
    };
    let looked = pass.look().await;
    for task in std::mem::take(&mut pass.running) {
        pass.ended(task).await;
    }
    let report = pass.report;
    if report.taken > 0 {
        telemetry::recovery_passed(report.taken, report.completed, report.escaped);
    }
    core.recoveries.kept().total.add(&report);
    looked.map(|()| report)
}

struct Pass<'a> {
    core: &'a Arc<Core>,
    report: RecoveryReport,
    /// What was taken up.
    running: Vec<Task<Came>>,
    /// A permit for each that is worked on at a time.
    room: Arc<Semaphore>,
}

impl Pass<'_> {
    async fn look(&mut self) -> Result<(), LedgerError> {
        let mut after = self.core.recoveries.kept().after;
        for _ in 0..PAGES_MAX {
            let query = UnsettledQuery { due_only: true, after, limit: PAGE };
            let mut page = self.core.ledger().unsettled(&query).await?;
            // From somewhere within the page, so that several processes begin at different effects.
            let count = page.effects.len();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
            page.effects.rotate_left(((environment::share() * count as f64) as usize).min(count));
            for unsettled in page.effects {
                if self.is_full() || !self.is_open() {
                    // The next pass begins with this page.
                    return Ok(());
                }
                self.take_up(unsettled, page.now).await?;
            }
            after = page.next;
            self.core.recoveries.kept().after = after;
            if after.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.running.len() >= usize::try_from(self.core.recoveries.settings.pass_max).unwrap_or(usize::MAX)
    }

    fn is_open(&self) -> bool {
        self.core.phase() == Phase::Open
    }

    async fn take_up(&mut self, unsettled: Unsettled, now: LedgerTime) -> Result<(), LedgerError> {
        self.report.due += 1;
        let record = unsettled.effect.clone();
        // Its body may live on although its lease has ended; another attempt beside it is not for this process.
        if self.core.callers.here(&record.id).is_some() {
            self.report.lost += 1;
            return Ok(());
        }
        let call = match prepare(self.core, unsettled).await? {
            Ok(call) => call,
            Err(Skip::NoHandler) => {
                self.core.recoveries.tell_no_handler(&record.operation);
                *self.report.no_handler.entry(record.operation.to_string()).or_default() += 1;
                return Ok(());
            }
            Err(Skip::Unreadable(argument)) => {
                telemetry::input_unreadable(&record.id, argument);
                self.report.unreadable += 1;
                return Ok(());
            }
        };
        // The judgement of the claim tells beforehand where it would change nothing.
        if claim::judge(Some(&record), &call.request(), now).write.is_none() {
            self.report.waiting += 1;
            return Ok(());
        }
        // Never closed.
        let permit = Arc::clone(&self.room).acquire_owned().await;
        let span = telemetry::call_span(call.settings.descriptor.operation);
        let work = async move {
            let came = call.recover().await;
            drop(permit);
            came
        };
        self.running.push(self.core.runtime.spawn(work.instrument(span)));
        Ok(())
    }

    async fn ended(&mut self, task: Task<Came>) {
        // A task that is gone without a word left the effect to its guard.
        let came = task.await.unwrap_or(Came::Failed);
        let report = &mut self.report;
        report.taken += u64::from(!matches!(came, Came::Lost | Came::Failed));
        *match came {
            Came::Completed => &mut report.completed,
            Came::Refused => &mut report.refused,
            Came::Released => &mut report.released,
            Came::Escaped => &mut report.escaped,
            Came::Accepted => &mut report.accepted,
            Came::Lost => &mut report.lost,
            Came::Failed => &mut report.failed,
        } += 1;
    }
}
