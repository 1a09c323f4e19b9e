//! Sweeping: one pass, and the loop that makes one from time to time.

use std::sync::Arc;

use super::policy::RetentionPolicy;
use crate::{
    clock, environment,
    ledger::{Ledger, LedgerError, LedgerErrorKind, Sweep},
    telemetry,
};

/// What one pass came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pass {
    /// How many effects became tombstones.
    pub forgotten: u64,
    /// How many tombstones were removed.
    pub removed: u64,
}

/// Makes one pass: forgets whatever is due now, in batches, and pauses between them. For a job of one's own; an executor with a
/// [`sweep`](crate::ExecutorBuilder::sweep) does this by itself. Any number of processes may sweep one ledger at once.
///
/// # Errors
/// [`LedgerError`]; what was forgotten by then stays forgotten, and another pass goes on from there.
///
/// # Cancel safety
/// Safe: a batch is stored whole or not at all.
pub async fn sweep(ledger: &dyn Ledger, policy: &RetentionPolicy) -> Result<Pass, LedgerError> {
    let at_most = policy.batch_size();
    let forgotten = batches(ledger, policy, Sweep::Outcomes { at_most }).await?;
    let removed = match policy.tombstones_kept() {
        Some(kept) => {
            let kept_ms = i64::try_from(kept.as_millis()).unwrap_or(i64::MAX);
            batches(ledger, policy, Sweep::Tombstones { at_most, kept_ms }).await?
        }
        None => 0,
    };
    Ok(Pass { forgotten, removed })
}

async fn batches(ledger: &dyn Ledger, policy: &RetentionPolicy, batch: Sweep) -> Result<u64, LedgerError> {
    let mut effects = 0;
    loop {
        let swept = ledger.sweep(batch).await?;
        effects += u64::from(swept.effects);
        // Nothing done although there is more: somebody else holds it, and does it.
        if !swept.more || swept.effects == 0 {
            return Ok(effects);
        }
        clock::sleep(policy.between_batches()).await;
    }
}

/// Makes passes until `stop` resolves. Trouble of the ledger is told and waited out; a ledger that does not sweep ends it.
pub(crate) async fn run(ledger: Arc<dyn Ledger>, policy: RetentionPolicy, stop: impl Future<Output = ()>) {
    let passes = async {
        let mut delay = policy.until_next(true, environment::share());
        loop {
            clock::sleep(delay).await;
            match sweep(&*ledger, &policy).await {
                Ok(pass) => telemetry::swept(pass.forgotten, pass.removed),
                Err(error) => {
                    telemetry::sweep_failed(&error);
                    if matches!(error.kind(), LedgerErrorKind::Unsupported | LedgerErrorKind::Closed) {
                        return;
                    }
                }
            }
            delay = policy.until_next(false, environment::share());
        }
    };
    tokio::select! {
        biased;
        () = stop => {}
        () = passes => {}
    }
}
