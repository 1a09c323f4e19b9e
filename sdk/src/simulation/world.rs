//! One run of the simulation: what the seed plans, the nodes, the callers, and the end.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{
    chaos,
    effects::{Asked, Kind},
    ledger::NodeLedger,
    plan::{CallPlan, Plan},
    provider::Books,
    scheduler::{NodeId, Scheduler, Step, WORLD},
    store::{Counts, Store},
    watch::{Ended, Seen, Watch, at_the_end},
};
use crate::{
    ErrorKind, Executor, OutcomeCache, Receipt, clock, environment::simulated::enter, retry::RetryPolicy,
};

pub(super) const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(200);
pub(super) const MARGIN: Duration = Duration::from_millis(100);
pub(super) const LEASE: Duration = Duration::from_millis(1_000);
const WAIT: Duration = Duration::from_millis(1_500);

/// A run that takes more steps goes round in circles.
const STEPS_MAX: u32 = 200_000;

pub(super) struct World {
    pub(super) scheduler: Arc<Scheduler>,
    pub(super) store: Arc<Store>,
    pub(super) books: Books,
    pub(super) watch: Watch,
    pub(super) plan: Plan,
    /// Whether executors keep outcomes in memory.
    caches: bool,
    /// From now on nothing goes wrong any more.
    healed: AtomicBool,
    ended: AtomicBool,
    seats: Vec<Mutex<Seat>>,
}

/// Where a process runs; when it dies, another takes its place.
struct Seat {
    node: NodeId,
    executor: Option<Executor>,
}

/// What a run came to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ran {
    pub(super) trace: u64,
    pub(super) steps: u32,
    pub(super) seen: Seen,
    pub(super) counts: Counts,
}

/// Runs a seed to its end.
pub(super) fn run(seed: u64) -> Result<Ran, String> {
    let scheduler = Scheduler::new(seed);
    let plan = scheduler.random(Plan::draw);
    let seats = (0..plan.seats).map(|_| Mutex::new(Seat { node: WORLD, executor: None })).collect();
    let world = Arc::new(World {
        store: Store::new(scheduler.clone()),
        scheduler,
        books: Books::default(),
        watch: Watch::default(),
        plan,
        caches: seed.is_multiple_of(3),
        healed: AtomicBool::new(false),
        ended: AtomicBool::new(false),
        seats,
    });
    let script = world.clone();
    world.scheduler.spawn_on(WORLD, async move { script.script().await });
    let end = world.run_to_the_end();
    world.seats.iter().for_each(|seat| drop(world.seat(seat).executor.take()));
    world.scheduler.end();
    end.map_err(|what| format!("{what}\n{:?}", world.plan))
}

impl World {
    fn run_to_the_end(&self) -> Result<Ran, String> {
        for steps in 0..STEPS_MAX {
            let step = self.scheduler.step();
            if let Some(violation) = self.watch.violation() {
                return Err(violation);
            }
            if self.scheduler.panicked() {
                return Err("a task of the library panicked".to_owned());
            }
            if self.ended.load(Ordering::Relaxed) {
                let (seen, counts) = (self.watch.seen(), self.store.counts());
                return Ok(Ran { trace: self.scheduler.trace(), steps, seen, counts });
            }
            if step == Step::Idle {
                return Err("nothing runs and nothing will".to_owned());
            }
        }
        Err("the run does not come to an end".to_owned())
    }

    async fn script(self: Arc<Self>) {
        for number in 0..self.seats.len() {
            self.start(number);
            chaos::begin(&self, number);
        }
        for call in &self.plan.calls {
            let (world, call) = (self.clone(), *call);
            self.scheduler.spawn_on(WORLD, async move {
                clock::sleep(call.at).await;
                world.begin(call);
            });
        }
        clock::sleep(self.plan.length).await;
        self.healed.store(true, Ordering::Relaxed);
        self.store.set_clock(0);
        (0..self.seats.len()).for_each(|number| self.resume(number));
        clock::sleep(self.plan.rest).await;
        self.start(0);
        for (order, kind) in self.plan.effects.iter().enumerate() {
            self.last_caller(u64::try_from(order).unwrap_or(0), *kind).await;
        }
        self.ended.store(true, Ordering::Relaxed);
    }

    fn seat<'a>(&self, seat: &'a Mutex<Seat>) -> std::sync::MutexGuard<'a, Seat> {
        seat.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new process takes the seat.
    pub(super) fn start(self: &Arc<Self>, number: usize) {
        let node = self.scheduler.add_node();
        let ledger = NodeLedger::open(self, node);
        let retry = RetryPolicy::default()
            .attempts_max(3)
            .base(Duration::from_millis(20))
            .delay_max(Duration::from_millis(200))
            .elapsed_max(Duration::from_secs(3));
        let builder = Executor::builder(ledger)
            .attempt_timeout(ATTEMPT_TIMEOUT)
            .margin(MARGIN)
            .lease(LEASE)
            .wait(WAIT)
            .retry(retry)
            .recovery(crate::Recovery::off())
            .provider(Asked(self.clone()));
        let builder = if self.caches { builder.outcome_cache(OutcomeCache::new()) } else { builder };
        let executor = enter(self.scheduler.machine(node), || builder.build());
        let executor = executor.expect("a valid set-up");
        *self.seat(&self.seats[number]) = Seat { node, executor: Some(executor) };
    }

    pub(super) fn node(&self, number: usize) -> NodeId {
        self.seat(&self.seats[number]).node
    }

    pub(super) fn executor(&self, number: usize) -> Option<Executor> {
        self.seat(&self.seats[number]).executor.clone()
    }

    /// The seat of a node that lives.
    pub(super) fn seat_of(&self, node: NodeId) -> Option<usize> {
        (0..self.seats.len()).find(|number| self.node(*number) == node)
    }

    pub(super) fn is_healed(&self) -> bool {
        self.healed.load(Ordering::Relaxed)
    }

    /// The process is gone.
    pub(super) fn kill(&self, number: usize) {
        let (node, executor) = {
            let mut seat = self.seat(&self.seats[number]);
            (seat.node, seat.executor.take())
        };
        self.scheduler.kill(node);
        enter(self.scheduler.machine(node), || drop(executor));
    }

    pub(super) fn resume(&self, number: usize) {
        let node = self.node(number);
        self.scheduler.stop(node, false);
        self.scheduler.wake_up(node);
    }

    /// Whether something goes wrong here, of a thousand times.
    pub(super) fn fault(&self, per_mille: i64) -> bool {
        !self.is_healed() && self.scheduler.random(|random| random.below(1_000)) < per_mille
    }

    pub(super) fn ledger_latency(&self) -> Duration {
        self.up_to(self.plan.ledger_latency)
    }

    pub(super) fn network_latency(&self) -> Duration {
        self.up_to(self.plan.network_latency)
    }

    /// A caller on the seat's present node.
    fn begin(self: &Arc<Self>, call: CallPlan) {
        let (node, executor) = {
            let seat = self.seat(&self.seats[call.seat]);
            (seat.node, seat.executor.clone())
        };
        let Some(executor) = executor else { return };
        let (world, kind) = (self.clone(), self.plan.effects[call.effect]);
        let order = u64::try_from(call.effect).unwrap_or(0);
        self.scheduler.spawn_on(node, async move {
            let calling = world.call(&executor, kind, order, call.amount);
            match call.gives_up {
                None => drop(calling.await),
                Some(after) => tokio::select! {
                    biased;
                    _ = calling => {}
                    () = clock::sleep(after) => {}
                },
            }
        });
    }

    fn call(
        self: &Arc<Self>,
        executor: &Executor,
        kind: Kind,
        order: u64,
        amount: u64,
    ) -> Pin<Box<dyn Future<Output = Ended> + Send>> {
        let receipt = Receipt::new();
        let scope = executor.tenant("sim").expect("a tenant").with_receipt(&receipt);
        let (world, call) = (self.clone(), kind.call(self, &scope, order, amount));
        Box::pin(async move {
            let result = call.await;
            match receipt.effect_id() {
                Some(id) => world.watch.returned(&world, &id, amount, result),
                None => {
                    world.watch.violated("a call ended without a receipt");
                    Ended { kind: None, retry_after: None }
                }
            }
        })
    }

    /// Calls until the effect goes no further, from a node where nothing goes wrong.
    async fn last_caller(self: &Arc<Self>, order: u64, kind: Kind) {
        let Some(executor) = self.executor(0) else { return };
        let receipt = Receipt::new();
        let mut amount = 10;
        let mut ended = Ended { kind: None, retry_after: None };
        for _ in 0..10 {
            let scope = executor.tenant("sim").expect("a tenant").with_receipt(&receipt);
            let (told, end) = tokio::sync::oneshot::channel();
            let (world, call) = (self.clone(), kind.call(self, &scope, order, amount));
            let receipt = receipt.clone();
            self.scheduler.spawn_on(self.node(0), async move {
                let result = call.await;
                if let Some(id) = receipt.effect_id() {
                    let _ = told.send(world.watch.returned(&world, &id, amount, result));
                }
            });
            let Ok(end) = end.await else { return self.watch.violated("the last call went away") };
            ended = end;
            match ended.kind {
                Some(ErrorKind::Mismatch) => amount = 30 - amount,
                Some(ErrorKind::RetryLater | ErrorKind::InFlight) => {}
                Some(ErrorKind::Escaped) if ended.retry_after.is_some() => {}
                _ => break,
            }
            clock::sleep(ended.retry_after.unwrap_or_default() + Duration::from_millis(2)).await;
        }
        let id = receipt.effect_id().expect("a call ended");
        if let Err(what) = at_the_end(self, kind, &id, ended) {
            self.watch.violated(what);
        }
    }
}
