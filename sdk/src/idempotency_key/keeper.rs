//! The layer's own thread, which renews the records of handlers that run: a blocked runtime of the user cannot starve it.

use std::{sync::Arc, thread, time::Duration};

use tokio::{
    runtime,
    sync::oneshot,
    task::{AbortHandle, JoinHandle},
};

use crate::{
    clock::{self, Moment, Until},
    ledger::requests::{Change, Changed, Owner, RequestStore},
    telemetry,
};

/// A renewal is due after a third of the lease, and a failed one is tried again after a part of this size.
const RENEWALS_IN_A_LEASE: u32 = 3;
const TRIES_IN_A_LEASE: u32 = 15;

/// The last fifth of a lease is left for a handler to stop in.
const MARGIN_OF_A_LEASE: u32 = 5;

pub(super) struct Keeper {
    runtime: runtime::Handle,
    /// Ends the thread when it is dropped.
    _goes_on: oneshot::Sender<()>,
}

/// A record that is being renewed, until this is dropped.
pub(super) struct Kept(JoinHandle<()>);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Whose record is renewed, and what stops when that fails.
pub(super) struct Keep {
    pub(super) store: Arc<dyn RequestStore>,
    pub(super) owner: Owner,
    pub(super) lease: Duration,
    pub(super) lease_ms: i64,
    /// From before the record was asked for.
    pub(super) since: Moment,
    pub(super) handler: AbortHandle,
}

impl Keeper {
    pub(super) fn start() -> std::io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (goes_on, ended) = oneshot::channel::<()>();
        thread::Builder::new().name("effectual-requests".to_owned()).spawn(move || {
            // Nothing is ever sent: the error is that the layer is gone.
            runtime.block_on(async { drop(ended.await) });
        })?;
        Ok(Self { runtime: handle, _goes_on: goes_on })
    }

    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.runtime.spawn(work));
    }

    pub(super) fn keep(&self, keep: Keep) -> Kept {
        Kept(self.runtime.spawn(keep.run()))
    }
}

impl Keep {
    /// Renews until the record is settled or lost; stops the handler where it is lost, before its lease ends.
    async fn run(self) {
        let holds_for = self.lease - self.lease / MARGIN_OF_A_LEASE;
        let mut holds = Until::new(self.since, holds_for);
        let mut pause = self.lease / RENEWALS_IN_A_LEASE;
        loop {
            clock::sleep(pause.min(holds.remaining())).await;
            let asked = Moment::now();
            let change = Change::Renew { lease_ms: self.lease_ms };
            match clock::within(holds.remaining(), self.store.change(&self.owner, &change)).await {
                Some(Ok(Changed::Done)) => {
                    holds = Until::new(asked, holds_for);
                    pause = self.lease / RENEWALS_IN_A_LEASE;
                    continue;
                }
                // The handler itself has completed it.
                Some(Ok(Changed::Settled)) => return,
                Some(Ok(Changed::Stale)) => break,
                Some(Err(error)) => telemetry::request_store_failed("renewing", &error),
                None => {}
            }
            if holds.is_past() {
                break;
            }
            pause = self.lease / TRIES_IN_A_LEASE;
        }
        telemetry::request_lost();
        self.handler.abort();
    }
}
