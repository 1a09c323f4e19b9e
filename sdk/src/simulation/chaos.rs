//! What befalls the nodes.

use std::{sync::Arc, time::Duration};

use super::{
    scheduler::WORLD,
    world::{LEASE, MARGIN, World},
};
use crate::clock;

/// What can befall a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blow {
    /// Its process is stopped, and goes on.
    Stop,
    /// Its machine is suspended, and wakes up.
    Suspend,
    WallJump,
    /// Its process dies, and another takes its place.
    Crash,
    /// It drains and ends, and another takes its place.
    Drain,
    LedgerClockJump,
}

/// Begins the blows to one seat. They end when the world is healed.
pub(super) fn begin(world: &Arc<World>, seat: usize) {
    let plan = &world.plan;
    let possible = [
        (plan.stops, Blow::Stop),
        (plan.suspends, Blow::Suspend),
        (plan.wall_jumps, Blow::WallJump),
        (plan.crashes, Blow::Crash),
        (plan.drains, Blow::Drain),
        (plan.ledger_clock_jumps, Blow::LedgerClockJump),
    ];
    let blows: Vec<_> = possible.into_iter().filter_map(|(is, blow)| is.then_some(blow)).collect();
    if blows.is_empty() {
        return;
    }
    let world = world.clone();
    world.clone().scheduler.spawn_on(WORLD, async move {
        loop {
            clock::sleep(world.up_to(Duration::from_millis(900))).await;
            if world.is_healed() {
                return;
            }
            let blow = world.scheduler.random(|random| random.pick(&blows));
            world.strike(seat, blow).await;
        }
    });
}

/// Perhaps stops or ends the process whose task runs now, where that hurts most.
pub(super) fn strike_here(world: &Arc<World>) {
    let (stops, crashes) = (world.plan.stops || world.plan.suspends, world.plan.crashes);
    let node = world.scheduler.running();
    let seat = world.seat_of(node);
    let (Some(seat), true) = (seat, (stops || crashes) && world.fault(60)) else { return };
    let blow = match world.scheduler.random(|random| random.one_in(3)) {
        true if crashes => Blow::Crash,
        _ if world.plan.stops => Blow::Stop,
        _ if world.plan.suspends => Blow::Suspend,
        _ => return,
    };
    let world = world.clone();
    world.clone().scheduler.spawn_on(WORLD, async move {
        if world.node(seat) == node {
            world.strike(seat, blow).await;
        }
    });
}

impl World {
    async fn strike(self: &Arc<Self>, seat: usize, blow: Blow) {
        let node = self.node(seat);
        match blow {
            Blow::Stop => {
                self.scheduler.stop(node, true);
                clock::sleep(self.up_to(LEASE * 5 / 2)).await;
                self.scheduler.stop(node, false);
            }
            Blow::Suspend => {
                self.scheduler.suspend(node);
                clock::sleep(self.up_to(LEASE * 5 / 2)).await;
                self.scheduler.wake_up(node);
            }
            Blow::WallJump => {
                let ms = self.scheduler.random(|random| random.pick(&[-60_000, -700, -50, 50, 700, 60_000]));
                self.scheduler.shift_wall(node, ms);
            }
            Blow::Crash => {
                self.kill(seat);
                clock::sleep(self.up_to(LEASE)).await;
                self.start(seat);
            }
            Blow::Drain => {
                let Some(executor) = self.executor(seat) else { return };
                let within = self.up_to(Duration::from_millis(400));
                let world = self.clone();
                self.scheduler.spawn_on(node, async move {
                    let _ = executor.drain(within).await;
                    // The process ends once it is told, and not from within.
                    world.scheduler.spawn_on(WORLD, {
                        let world = world.clone();
                        async move {
                            if world.node(seat) == node {
                                world.kill(seat);
                                world.start(seat);
                            }
                        }
                    });
                });
            }
            Blow::LedgerClockJump => {
                // A forward step within the margin is what the guarantees allow for.
                let margin = i64::try_from(MARGIN.as_millis()).unwrap_or(0);
                let offset = self.scheduler.random(|random| random.below(margin) - margin / 2);
                self.store.set_clock(offset / 2);
            }
        }
    }
}
