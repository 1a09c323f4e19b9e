//! The executor's own thread: renews leases, and writes down what a dropped runtime left behind. A blocked or dropped
//! runtime of the user cannot starve it.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::{Notify, mpsc};

use super::held::Held;
use crate::{
    clock,
    environment::{Runtime, on_own_thread},
    ledger::{Change, ClaimRequest, Ledger, LedgerError, Owner, change::Ended, record::AttemptVerdict},
    telemetry,
};

/// How often a lease is looked at in its length: a renewal is due after a third of it.
const TICKS_IN_A_LEASE: u32 = 8;
const TICK_MIN: Duration = Duration::from_millis(5);
const TICK_MAX: Duration = Duration::from_secs(1);

/// How often a last write is tried when the ledger does not answer, a tick apart.
const LAST_WRITE_TRIES: u32 = 20;

/// Handle of the thread; it ends when this is dropped and what was handed in is done.
pub(crate) struct Background {
    shared: Arc<Shared>,
    last_writes: mpsc::UnboundedSender<LastWrite>,
    next: AtomicU64,
}

struct Shared {
    renewals: Mutex<BTreeMap<u64, Arc<Held>>>,
    tick: Mutex<Duration>,
    /// A shorter lease than any before is to be looked after.
    shorter: Notify,
}

/// What is still to be written for a call that went away.
enum LastWrite {
    /// What became of an attempt.
    Change { held: Arc<Held>, change: Change },
    /// A claim that the ledger may have stored although it did not say so.
    GiveBack { ledger: Arc<dyn Ledger>, request: Box<ClaimRequest> },
}

impl Background {
    pub(crate) fn start(lease: Duration) -> Self {
        let shared = Arc::new(Shared {
            renewals: Mutex::default(),
            tick: Mutex::new(tick_for(lease)),
            shorter: Notify::new(),
        });
        let (last_writes, receiver) = mpsc::unbounded_channel();
        let work = shared.clone();
        on_own_thread("effectual-renewer", |runtime| run(work, runtime, receiver));
        Self { shared, last_writes, next: AtomicU64::new(0) }
    }

    /// Looks often enough for leases of this length.
    pub(crate) fn watch_lease(&self, lease: Duration) {
        let mut tick = self.shared.tick.lock().unwrap_or_else(PoisonError::into_inner);
        if tick_for(lease) < *tick {
            *tick = tick_for(lease);
            self.shared.shorter.notify_one();
        }
    }

    pub(crate) fn renew(&self, held: Arc<Held>) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.shared.renewals().insert(number, held);
        number
    }

    pub(crate) fn stop_renewing(&self, number: u64) {
        self.shared.renewals().remove(&number);
    }

    /// Every claim that is held.
    pub(crate) fn for_each(&self, visit: impl Fn(&Held)) {
        self.shared.renewals().values().for_each(|held| visit(held));
    }

    /// Makes a change on this thread, for a call that can no longer make it.
    pub(crate) fn write_last(&self, held: Arc<Held>, change: Change) {
        // The receiver lives until the sender is gone.
        let _ = self.last_writes.send(LastWrite::Change { held, change });
    }

    /// Releases the claim of a request that got no answer, if it was stored.
    pub(crate) fn give_back(&self, ledger: Arc<dyn Ledger>, request: ClaimRequest) {
        let _ = self.last_writes.send(LastWrite::GiveBack { ledger, request: Box::new(request) });
    }
}

impl Shared {
    fn renewals(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Held>>> {
        self.renewals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tick(&self) -> Duration {
        *self.tick.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn due(&self) -> Vec<Arc<Held>> {
        self.renewals().values().filter(|held| held.renewal_due()).cloned().collect()
    }
}

fn tick_for(lease: Duration) -> Duration {
    (lease / TICKS_IN_A_LEASE).clamp(TICK_MIN, TICK_MAX)
}

/// Told when every task that holds it is gone.
type Working = mpsc::Sender<Infallible>;

/// One task a lease and a last write: a slow answer for one does not delay the others.
async fn run(shared: Arc<Shared>, runtime: Runtime, mut last_writes: mpsc::UnboundedReceiver<LastWrite>) {
    let (working, mut idle) = mpsc::channel(1);
    loop {
        let mut tick = std::pin::pin!(clock::sleep(shared.tick()));
        let goes_on = loop {
            tokio::select! {
                biased;
                // First, because last writes must not put off the look at the leases, however many there are.
                () = &mut tick => break true,
                () = shared.shorter.notified() => break true,
                write = last_writes.recv() => match write {
                    Some(write) => drop(runtime.spawn(write.carry_out(shared.clone(), working.clone()))),
                    None => break false,
                },
            }
        };
        if !goes_on {
            break;
        }
        renew_due(&shared, &runtime, &working);
    }
    // The executor is gone; what was handed in is still written.
    drop(working);
    while idle.recv().await.is_some() {}
}

fn renew_due(shared: &Shared, runtime: &Runtime, working: &Working) {
    for held in shared.due() {
        if !held.begin_renewal() {
            continue;
        }
        let working = working.clone();
        drop(runtime.spawn(async move {
            if let Err(error) = held.renew().await {
                telemetry::renewal_failed(held.id(), &error);
            }
            held.end_renewal();
            drop(working);
        }));
    }
}

impl LastWrite {
    /// `_working` is dropped when it is done.
    async fn carry_out(self, shared: Arc<Shared>, _working: Working) {
        for _ in 0..LAST_WRITE_TRIES {
            let done = match &self {
                Self::Change { held, change } => held.last_change(change).await.map(|()| true),
                Self::GiveBack { ledger, request } => give_back(&**ledger, request).await,
            };
            match done {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => telemetry::ledger_retried("the last write of a call that went away", &error),
            }
            clock::sleep(shared.tick()).await;
        }
    }
}

/// Whether the claim was found and released. One that is not there may still be on its way.
async fn give_back(ledger: &dyn Ledger, request: &ClaimRequest) -> Result<bool, LedgerError> {
    let Some(history) = ledger.read(&request.id).await? else { return Ok(false) };
    if history.effect.token != request.token {
        return Ok(false);
    }
    let ended = Ended::found(AttemptVerdict::NotPerformed);
    let change = Change::End { ended, keep_claim: false, not_before_ms: None };
    ledger.change(&Owner::of(&history.effect), &change).await.map(|_| true)
}
