//! Which orders are out, which are to be called again, and what was reported of them.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use effectual_tests::random::Random;
use tokio::time::Instant;

use crate::effects::{Class, LEASE};

/// How long after a worker's death its orders are called again: when their leases are over.
const AFTER_A_DEATH: Duration = LEASE.saturating_add(Duration::from_millis(200));

/// What is known of one order.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Order {
    /// The number that its calls gave; 0 for none.
    pub(crate) reported: u32,
    /// Nothing is left to be called for.
    pub(crate) is_over: bool,
    /// How many calls of any order had been begun when the number was first reported: later ones give it too.
    reported_at: u64,
}

#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) orders: Vec<Order>,
    again: BinaryHeap<Reverse<(Instant, u32)>>,
    /// How many calls are out.
    out: usize,
    /// How many calls were begun.
    begun: u64,
    pub(crate) problems: Vec<String>,
    /// What was said of orders that escaped.
    pub(crate) escaped: HashMap<u32, String>,
    has_looked_again: bool,
}

#[derive(Default)]
pub(crate) struct Board {
    inner: Mutex<Inner>,
    pub(crate) kills: AtomicU64,
    pub(crate) stops: AtomicU64,
    pub(crate) replays: AtomicU64,
}

impl Board {
    pub(crate) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next order to be called: one that is due again, or a new one while there are to be any. Some new ones are
    /// called by two at the same time. With the number of the call.
    pub(crate) fn next(&self, are_new: bool, random: &mut Random) -> Option<(u32, u64)> {
        let now = Instant::now();
        let mut inner = self.inner();
        let due = inner.again.peek().is_some_and(|Reverse((at, _))| *at <= now);
        let again = due.then(|| inner.again.pop()).flatten().map(|Reverse((_, order))| order);
        let order = match again {
            Some(order) => order,
            None if !are_new => return None,
            None => {
                let order = u32::try_from(inner.orders.len()).ok()?;
                inner.orders.push(Order::default());
                if random.one_in(50) {
                    inner.again.push(Reverse((now, order)));
                }
                order
            }
        };
        inner.out += 1;
        inner.begun += 1;
        Some((order, inner.begun))
    }

    /// The order was not called after all.
    pub(crate) fn put_back(&self, order: u32) {
        let mut inner = self.inner();
        inner.out -= 1;
        inner.later(order, Duration::from_millis(50));
    }

    /// A call ended: `=NUMBER`, `! WHY` for escaped, `~MS` for later, or what must not be.
    pub(crate) fn ended(&self, order: u32, call: u64, word: &str, random: &mut Random) {
        let mut inner = self.inner();
        inner.out -= 1;
        let known = inner.orders[order as usize];
        if let Some(number) = word.strip_prefix('=').and_then(|number| number.parse().ok()) {
            if known.reported != 0 {
                self.replays.fetch_add(1, Ordering::Relaxed);
                if known.reported != number {
                    inner.problem(order, &format!("gave {} and then {number}", known.reported));
                }
            } else if random.one_in(30) {
                inner.later(order, Duration::from_millis(100));
            }
            let reported_at = if known.reported == 0 { inner.begun } else { known.reported_at };
            inner.orders[order as usize] = Order { reported: number, is_over: true, reported_at };
        } else if let Some(why) = word.strip_prefix("! ") {
            if known.reported != 0 {
                // Of two calls at the same time, the one that escaped may be heard of last.
                if call > known.reported_at {
                    inner.problem(order, &format!("gave an outcome, and escaped in a later call: {why}"));
                }
            } else if Class::of(order) == Class::Hold {
                inner.orders[order as usize].is_over = true;
                inner.escaped.insert(order, why.to_owned());
            } else {
                inner.later(order, Duration::from_millis(1_500));
            }
        } else if let Some(delay) = word.strip_prefix('~').and_then(|delay| delay.parse().ok()) {
            inner.later(order, Duration::from_millis(delay));
        } else {
            inner.problem(order, word);
        }
    }

    /// A worker died with these.
    pub(crate) fn died(&self, orders: impl Iterator<Item = u32>) {
        let mut inner = self.inner();
        for order in orders {
            inner.out -= 1;
            inner.later(order, AFTER_A_DEATH);
        }
    }

    /// Whether nothing is left to be called. Before it is, everything that escaped is called once more: an attempt that was
    /// stopped may have come back since, and said that it did not act.
    pub(crate) fn is_over(&self) -> bool {
        let mut inner = self.inner();
        if inner.out > 0 || !inner.again.is_empty() {
            return false;
        }
        if std::mem::replace(&mut inner.has_looked_again, true) {
            return true;
        }
        let escaped: Vec<_> = inner.escaped.drain().map(|(order, _)| order).collect();
        escaped.into_iter().for_each(|order| inner.later(order, Duration::ZERO));
        inner.again.is_empty()
    }
}

impl Inner {
    fn later(&mut self, order: u32, delay: Duration) {
        self.again.push(Reverse((Instant::now() + delay, order)));
    }

    fn problem(&mut self, order: u32, what: &str) {
        self.problems.push(format!("order {order} ({:?}): {what}", Class::of(order)));
    }
}
