//! A caller in a closed loop: its next call begins when the last has ended.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::Barrier;

use crate::cpu;

/// Which keys the callers use.
#[derive(Debug, Clone)]
pub(crate) enum Keys {
    /// Each key once, counted on.
    Fresh(Arc<AtomicU64>),
    /// Keys below a number that were performed before.
    Known(u64),
}

impl Keys {
    fn next(&self, random: &mut u64) -> u64 {
        match self {
            Self::Fresh(next) => next.fetch_add(1, Ordering::Relaxed),
            Self::Known(below) => {
                *random ^= *random << 13;
                *random ^= *random >> 7;
                *random ^= *random << 17;
                *random % below
            }
        }
    }
}

/// What all callers of a round share.
pub(crate) struct Shared {
    /// All callers and whoever measures: what it takes to get callers going is not measured.
    pub(crate) start: Barrier,
    running: AtomicUsize,
    server: Option<u32>,
    /// Whose callers they are.
    of: String,
    seen: Mutex<Seen>,
}

/// What the callers saw.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) latencies: Vec<Duration>,
    /// When the last call ended, and the processor time used until then.
    pub(crate) ended: Option<(Instant, Duration)>,
}

impl Shared {
    pub(crate) fn new(of: &str, callers: usize, server: Option<u32>) -> Arc<Self> {
        Arc::new(Self {
            start: Barrier::new(callers + 1),
            running: AtomicUsize::new(callers),
            server,
            of: of.to_owned(),
            seen: Mutex::default(),
        })
    }

    pub(crate) fn take(&self) -> Seen {
        std::mem::take(&mut self.seen.lock().expect("a caller panicked"))
    }
}

/// One caller. Where it runs is the contender's choice.
pub(crate) struct Caller {
    shared: Arc<Shared>,
    number: usize,
    keys: Keys,
    random: u64,
    length: Duration,
    left: u64,
    until: Instant,
    sent: Instant,
    latencies: Vec<Duration>,
    finished: bool,
}

impl Caller {
    pub(crate) fn new(number: usize, keys: &Keys, length: Duration, shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::clone(shared),
            number,
            keys: keys.clone(),
            random: 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number as u64 + 1) | 1,
            length,
            left: u64::MAX,
            until: Instant::now(),
            sent: Instant::now(),
            latencies: Vec::new(),
            finished: false,
        }
    }

    /// Counted from 0 within a round.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// No more calls than so many.
    pub(crate) fn at_most(&mut self, calls: u64) {
        self.left = calls;
    }

    /// Whether its calls are counted down.
    pub(crate) fn is_limited(&self) -> bool {
        self.left != u64::MAX
    }

    /// Waits for all the others.
    pub(crate) async fn ready(&mut self) {
        self.shared.start.wait().await;
        self.sent = Instant::now();
        self.until = self.sent + self.length;
    }

    /// The key of the next call; none when the time is over.
    pub(crate) fn next(&mut self) -> Option<u64> {
        if self.sent >= self.until || self.left == 0 {
            self.finish();
            return None;
        }
        if self.is_limited() {
            self.left -= 1;
        }
        Some(self.keys.next(&mut self.random))
    }

    /// The call has ended.
    pub(crate) fn done(&mut self) {
        let now = Instant::now();
        self.latencies.push(now - self.sent);
        self.sent = now;
    }

    fn finish(&mut self) {
        self.finished = true;
        let mut seen = self.shared.seen.lock().expect("a caller panicked");
        seen.latencies.append(&mut self.latencies);
        if self.shared.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            seen.ended = Some((self.sent, cpu::used(self.shared.server)));
        }
    }
}

/// All others wait for a caller that never comes: a contender that fails ends the run.
impl Drop for Caller {
    fn drop(&mut self) {
        if !self.finished {
            eprintln!("a caller of {} went away before its time was over", self.shared.of);
            std::process::exit(1);
        }
    }
}
