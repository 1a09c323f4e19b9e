//! What a seed plans: which faults there are in its world, how often, and who calls when.

use std::time::Duration;

use super::{
    effects::{KINDS, Kind},
    provider::WINDOW,
};
use crate::ledger::judge_model::Random;

/// A world's plan. Of the faults each world has some: where all go on at once, few effects get anywhere.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) seats: usize,
    pub(super) effects: Vec<Kind>,
    pub(super) calls: Vec<CallPlan>,
    /// For how long things go wrong.
    pub(super) length: Duration,
    /// How long nothing happens before the last callers come.
    pub(super) rest: Duration,
    /// Nothing befalls nodes and ledger; bodies of `resend` ask for no permit.
    pub(super) calm: bool,
    /// How often, of a thousand times.
    pub(super) ledger_faults: i64,
    pub(super) provider_faults: i64,
    pub(super) ledger_latency: Duration,
    pub(super) network_latency: Duration,
    /// Whether the ledger tells of changes.
    pub(super) announces: bool,
    /// Whether the ledger's client judges, and the database compares.
    pub(super) judges_early: bool,
    pub(super) stops: bool,
    /// A machine that is suspended loses monotonic time; its wall clock then tells the truth.
    pub(super) suspends: bool,
    pub(super) wall_jumps: bool,
    pub(super) crashes: bool,
    pub(super) drains: bool,
    pub(super) ledger_clock_jumps: bool,
}

/// One call.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallPlan {
    pub(super) at: Duration,
    pub(super) seat: usize,
    pub(super) effect: usize,
    pub(super) amount: u64,
    /// The caller goes away after this long.
    pub(super) gives_up: Option<Duration>,
}

fn millis(random: &mut Random, from: i64, to: i64) -> Duration {
    Duration::from_millis((from + random.below(to - from)).unsigned_abs())
}

fn index(random: &mut Random, count: usize) -> usize {
    usize::try_from(random.below(i64::try_from(count).unwrap_or(1))).unwrap_or(0)
}

impl Plan {
    /// Whether nodes are kept from saying what became of their attempts.
    pub(super) fn harms_nodes(&self) -> bool {
        !self.calm && (self.stops || self.suspends || self.wall_jumps || self.crashes || self.drains)
    }

    pub(super) fn draw(random: &mut Random) -> Self {
        let seats = 1 + index(random, 3);
        // Where nothing befalls nodes and ledger, a body can do without a permit: what the library checks before is all there is.
        let calm = random.one_in(6);
        let kinds = if calm && random.one_in(2) { &[Kind::Resend] } else { &KINDS[..] };
        let effects: Vec<_> = (0..=index(random, 2)).map(|_| random.pick(kinds)).collect();
        let length = millis(random, 400, 4_000);
        let gives_up = random.one_in(2);
        let mismatches = random.one_in(4);
        // Callers that come at once race; callers that come later meet what was left behind.
        let longest = i64::try_from(length.as_millis()).unwrap_or(1);
        let longest = if random.one_in(3) { 100 } else { longest };
        let calls = (0..3 + index(random, 10)).map(|_| CallPlan {
            at: millis(random, 0, longest),
            seat: index(random, seats),
            effect: index(random, effects.len()),
            amount: if mismatches && random.one_in(3) { 20 } else { 10 },
            gives_up: (gives_up && random.one_in(3)).then(|| millis(random, 0, 600)),
        });
        let mut calls: Vec<_> = calls.collect();
        let resends = effects.iter().any(|kind| matches!(kind, Kind::Resend | Kind::Quiet));
        let length = if resends && (calm || random.one_in(3)) {
            // Callers that come when the provider's window is about to close, and find a doubt.
            calls.truncate(if calm { 1 } else { calls.len() });
            let first = calls.iter().map(|call| call.at).min().unwrap_or_default();
            for _ in 0..3 {
                let at = first + WINDOW - millis(random, 150, 600);
                calls.push(CallPlan {
                    at,
                    seat: index(random, seats),
                    amount: 10,
                    gives_up: None,
                    ..calls[0]
                });
            }
            first + WINDOW + Duration::from_millis(300)
        } else {
            length
        };
        let suspends = !calm && random.one_in(4);
        let rest_max = if random.one_in(4) { 8_000 } else { 2_500 };
        let ledger_latency_max = if !calm && random.one_in(3) { 60 } else { 6 };
        let network_latency_max = if random.one_in(3) { 120 } else { 20 };
        Self {
            seats,
            effects,
            calls,
            length,
            rest: millis(random, 1_400, rest_max),
            calm,
            ledger_faults: if calm { 0 } else { random.pick(&[0, 0, 50, 200, 400]) },
            provider_faults: if calm { 900 } else { random.pick(&[0, 200, 500, 900]) },
            ledger_latency: millis(random, 1, ledger_latency_max),
            network_latency: millis(random, 1, network_latency_max),
            announces: random.one_in(2),
            judges_early: random.one_in(2),
            stops: !calm && random.one_in(2),
            suspends,
            wall_jumps: !calm && !suspends && random.one_in(4),
            crashes: !calm && random.one_in(2),
            drains: !calm && random.one_in(4),
            ledger_clock_jumps: !calm && random.one_in(3),
        }
    }
}
