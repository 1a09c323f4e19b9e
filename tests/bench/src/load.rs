//! Callers in a closed loop, and what they saw.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{contender::Contender, cpu};

/// One round of one contender.
#[derive(Debug, Clone)]
pub(crate) struct Round {
    pub(crate) per_second: f64,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    /// Processor time an effect, of this process and of the database server.
    pub(crate) cpu: Duration,
    pub(crate) effects: u64,
}

/// Which keys the callers use.
#[derive(Clone)]
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

/// So many callers, each with its next call as soon as the last has ended, for about `length`.
pub(crate) async fn round(
    contender: &Arc<dyn Contender>,
    callers: usize,
    keys: &Keys,
    length: Duration,
    server: Option<u32>,
) -> Round {
    let cpu_before = cpu::used(server);
    let began = Instant::now();
    let until = began + length;
    let tasks: Vec<_> = (0..callers)
        .map(|caller| {
            let (contender, keys) = (Arc::clone(contender), keys.clone());
            let mut random = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(caller as u64 + 1) | 1;
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                loop {
                    let sent = Instant::now();
                    if sent >= until {
                        return latencies;
                    }
                    contender.perform(keys.next(&mut random)).await;
                    latencies.push(sent.elapsed());
                }
            })
        })
        .collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await.expect("a caller"));
    }
    let took = began.elapsed();
    let cpu = cpu::used(server).saturating_sub(cpu_before);
    latencies.sort_unstable();
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
    let effects = latencies.len() as u64;
    Round {
        per_second: effects as f64 / took.as_secs_f64(),
        p50: at(0.5),
        p99: at(0.99),
        cpu: cpu / u32::try_from(effects).expect("fewer effects than fit"),
        effects,
    }
}
