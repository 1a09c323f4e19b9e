//! A seeded scheduler over virtual time: which task runs next, how long it takes, and when a node stands still.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use crate::{
    environment::{
        Machine,
        simulated::{Work, enter},
    },
    ledger::judge_model::Random,
};

/// Where the simulated wall clocks begin, in milliseconds since the Unix epoch.
const WALL_START_MS: i64 = 1_800_000_000_000;

type TaskId = u64;
/// Which node a task belongs to. Node 0 is the world itself: it never stands still.
pub(super) type NodeId = usize;
pub(super) const WORLD: NodeId = 0;

/// The panic of a body that the plan asks for: everything else that panics is a mistake.
pub(super) struct PlannedPanic;

pub(super) struct Scheduler {
    state: Mutex<State>,
    ready: Arc<Mutex<BTreeSet<TaskId>>>,
}

struct State {
    now: Duration,
    random: Random,
    nodes: Vec<Node>,
    tasks: BTreeMap<TaskId, Slot>,
    spawned: TaskId,
    timers: u64,
    panicked: bool,
    running: NodeId,
    /// A digest of everything that was chosen, in order.
    trace: u64,
}

struct Slot {
    node: NodeId,
    /// Absent while it runs.
    work: Option<Work>,
    aborted: bool,
    waker: Waker,
}

#[derive(Default)]
struct Node {
    dead: bool,
    /// Its process is stopped; its clocks go on.
    stopped: bool,
    /// Its machine is suspended; its monotonic clock stands still.
    suspended: Option<Duration>,
    lag: Duration,
    wall_offset_ms: i64,
    timers: BTreeMap<(Duration, u64), Waker>,
}

/// What one step came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Ran,
    /// Nothing runs and nothing will.
    Idle,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Node {
    fn runs(&self) -> bool {
        !self.dead && !self.stopped && self.suspended.is_none()
    }

    fn monotonic(&self, now: Duration) -> Duration {
        self.suspended.unwrap_or(now) - self.lag
    }
}

impl Scheduler {
    pub(super) fn new(seed: u64) -> Arc<Self> {
        let state = State {
            now: Duration::ZERO,
            random: Random(seed),
            nodes: vec![Node::default()],
            tasks: BTreeMap::new(),
            spawned: 0,
            timers: 0,
            panicked: false,
            running: WORLD,
            trace: seed,
        };
        Arc::new(Self { state: Mutex::new(state), ready: Arc::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(super) fn now(&self) -> Duration {
        self.state().now
    }

    /// The true time in milliseconds since the Unix epoch.
    pub(super) fn true_ms(&self) -> i64 {
        WALL_START_MS + i64::try_from(self.now().as_millis()).unwrap_or(i64::MAX)
    }

    pub(super) fn random<R>(&self, draw: impl FnOnce(&mut Random) -> R) -> R {
        draw(&mut self.state().random)
    }

    pub(super) fn trace(&self) -> u64 {
        self.state().trace
    }

    pub(super) fn panicked(&self) -> bool {
        self.state().panicked
    }

    pub(super) fn add_node(&self) -> NodeId {
        let mut state = self.state();
        let lag = state.now;
        // A process' monotonic clock begins anywhere; from zero is as good.
        state.nodes.push(Node { lag, ..Node::default() });
        state.nodes.len() - 1
    }

    pub(super) fn machine(self: &Arc<Self>, node: NodeId) -> Arc<OnNode> {
        Arc::new(OnNode { scheduler: self.clone(), node })
    }

    pub(super) fn spawn_on(&self, node: NodeId, work: impl Future<Output = ()> + Send + 'static) -> TaskId {
        let mut state = self.state();
        let id = state.spawned;
        state.spawned += 1;
        if state.nodes[node].dead {
            // Dropped outside the lock: its drop may ask us.
            drop(state);
            return id;
        }
        let waker = Waker::from(Arc::new(TaskWaker { id, ready: self.ready.clone() }));
        state.tasks.insert(id, Slot { node, work: Some(Box::pin(work)), aborted: false, waker });
        lock(&self.ready).insert(id);
        id
    }

    fn abort(&self, id: TaskId) {
        if let Some(slot) = self.state().tasks.get_mut(&id) {
            slot.aborted = true;
            lock(&self.ready).insert(id);
        }
    }

    pub(super) fn stop(&self, node: NodeId, stopped: bool) {
        self.state().nodes[node].stopped = stopped;
    }

    pub(super) fn suspend(&self, node: NodeId) {
        let mut state = self.state();
        let now = state.now;
        state.nodes[node].suspended.get_or_insert(now);
    }

    pub(super) fn wake_up(&self, node: NodeId) {
        let mut state = self.state();
        let now = state.now;
        let node = &mut state.nodes[node];
        if let Some(since) = node.suspended.take() {
            node.lag += now - since;
        }
    }

    pub(super) fn shift_wall(&self, node: NodeId, ms: i64) {
        self.state().nodes[node].wall_offset_ms += ms;
    }

    /// The node whose task runs now.
    pub(super) fn running(&self) -> NodeId {
        self.state().running
    }

    /// The node's process is gone, with everything that it had in memory.
    pub(super) fn kill(self: &Arc<Self>, node: NodeId) {
        let mut state = self.state();
        state.nodes[node].dead = true;
        let ids: Vec<_> =
            state.tasks.iter().filter(|(_, slot)| slot.node == node).map(|(id, _)| *id).collect();
        let gone: Vec<_> = ids.into_iter().filter_map(|id| state.tasks.remove(&id)).collect();
        let timers = std::mem::take(&mut state.nodes[node].timers);
        drop(state);
        enter(self.machine(node), || drop((gone, timers)));
    }

    /// Ends the world: tasks hold their scheduler, and it holds them.
    pub(super) fn end(self: &Arc<Self>) {
        let nodes = self.state().nodes.len();
        (0..nodes).for_each(|node| self.kill(node));
    }

    /// Runs one task up to its next wait; where none can run, time goes on to the next timer.
    pub(super) fn step(self: &Arc<Self>) -> Step {
        loop {
            self.fire();
            match self.pick() {
                Some(id) => {
                    self.run(id);
                    return Step::Ran;
                }
                None if self.advance() => {}
                None => return Step::Idle,
            }
        }
    }

    fn pick(&self) -> Option<TaskId> {
        let mut state = self.state();
        let mut ready = lock(&self.ready);
        ready.retain(|id| state.tasks.contains_key(id));
        let runs = |id: &&TaskId| state.tasks.get(*id).is_some_and(|slot| state.nodes[slot.node].runs());
        let count = ready.iter().filter(runs).count();
        if count == 0 {
            return None;
        }
        let at = usize::try_from(state.random.clone().below(i64::try_from(count).unwrap_or(1))).unwrap_or(0);
        let id = ready.iter().filter(runs).nth(at).copied()?;
        ready.remove(&id);
        drop(ready);
        state.random.next();
        state.trace = (state.trace ^ id ^ (u64::from(state.now.subsec_nanos()) << 20))
            .wrapping_mul(0x0000_0100_0000_01b3)
            .rotate_left(17);
        if state.random.one_in(6) {
            // Work takes time.
            let micros = state.random.below(4_000).unsigned_abs();
            state.now += Duration::from_micros(micros);
        }
        Some(id)
    }

    fn run(self: &Arc<Self>, id: TaskId) {
        let mut state = self.state();
        let Some(slot) = state.tasks.get_mut(&id) else { return };
        let (node, waker, aborted) = (slot.node, slot.waker.clone(), slot.aborted);
        let Some(mut work) = slot.work.take() else { return };
        state.running = node;
        drop(state);
        let left = enter(self.machine(node), || {
            if !aborted && work.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                return Some(work);
            }
            drop(work);
            None
        });
        let mut state = self.state();
        match left {
            Some(work) => {
                if let Some(slot) = state.tasks.get_mut(&id) {
                    slot.work = Some(work);
                    return;
                }
                drop(state);
                enter(self.machine(node), || drop(work));
            }
            None => drop(state.tasks.remove(&id)),
        }
    }

    /// Wakes whose time has come.
    fn fire(&self) {
        let mut state = self.state();
        let now = state.now;
        let mut due = Vec::new();
        for node in state.nodes.iter_mut().filter(|node| !node.timers.is_empty()) {
            let monotonic = node.monotonic(now);
            while let Some(first) = node.timers.first_entry() {
                if first.key().0 > monotonic {
                    break;
                }
                due.push(first.remove());
            }
        }
        drop(state);
        due.into_iter().for_each(Waker::wake);
    }

    /// Lets time go on to the next timer; `false` if there is none.
    fn advance(&self) -> bool {
        let mut state = self.state();
        let first = |node: &Node| {
            let (at, _) = *node.timers.first_key_value()?.0;
            node.suspended.is_none().then(|| at.saturating_add(node.lag))
        };
        let Some(next) = state.nodes.iter().filter_map(first).min() else { return false };
        state.now = state.now.max(next);
        true
    }
}

struct TaskWaker {
    id: TaskId,
    ready: Arc<Mutex<BTreeSet<TaskId>>>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        lock(&self.ready).insert(self.id);
    }
}

/// A node as its code sees it.
pub(super) struct OnNode {
    scheduler: Arc<Scheduler>,
    pub(super) node: NodeId,
}

impl Machine for OnNode {
    fn monotonic(&self) -> Duration {
        let state = self.scheduler.state();
        state.nodes[self.node].monotonic(state.now)
    }

    fn wall_ms(&self) -> i64 {
        let offset = self.scheduler.state().nodes[self.node].wall_offset_ms;
        self.scheduler.true_ms() + offset
    }

    fn sleep(&self, duration: Duration) -> Work {
        Box::pin(Sleep {
            on: Self { scheduler: self.scheduler.clone(), node: self.node },
            until: self.monotonic().saturating_add(duration),
            timer: None,
        })
    }

    fn spawn(&self, work: Work) -> Box<dyn Fn() + Send + Sync> {
        let id = self.scheduler.spawn_on(self.node, work);
        let scheduler = Arc::downgrade(&self.scheduler);
        Box::new(move || {
            if let Some(scheduler) = scheduler.upgrade() {
                scheduler.abort(id);
            }
        })
    }

    fn random(&self) -> [u8; 16] {
        let (one, two) = self.scheduler.random(|random| (random.next(), random.next()));
        (u128::from(one) << 64 | u128::from(two)).to_le_bytes()
    }

    fn panicked(&self, why: &(dyn Any + Send)) {
        self.scheduler.state().panicked |= !why.is::<PlannedPanic>();
    }
}

struct Sleep {
    on: OnNode,
    until: Duration,
    timer: Option<(Duration, u64)>,
}

impl std::future::Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut state = this.on.scheduler.state();
        let now = state.now;
        if state.nodes[this.on.node].monotonic(now) >= this.until {
            return Poll::Ready(());
        }
        if this.timer.is_none() {
            state.timers += 1;
            this.timer = Some((this.until, state.timers));
        }
        if let Some(timer) = this.timer {
            state.nodes[this.on.node].timers.insert(timer, cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            self.on.scheduler.state().nodes[self.on.node].timers.remove(&timer);
        }
    }
}
