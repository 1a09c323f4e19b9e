//! A round: callers in a closed loop on one contender, and what they saw.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    caller::{Caller, Keys, Shared},
    contender::Contender,
    cpu,
};

/// One round of one contender.
#[derive(Debug, Clone)]
pub(crate) struct Round {
    pub(crate) per_second: f64,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    /// Processor time a call, of this process and of the database server.
    pub(crate) cpu: Duration,
    pub(crate) calls: u64,
}

/// Who calls, for how long, and where the server's processor time is found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) callers: usize,
    pub(crate) length: Duration,
    pub(crate) server: Option<u32>,
}

/// Callers that perform effects.
pub(crate) async fn perform(name: &str, contender: &Arc<dyn Contender>, keys: &Keys, load: Load) -> Round {
    round(name, contender, keys, load, true).await
}

/// Callers that ask for effects that were performed.
pub(crate) async fn replay(name: &str, contender: &Arc<dyn Contender>, keys: &Keys, load: Load) -> Round {
    round(name, contender, keys, load, false).await
}

async fn round(name: &str, contender: &Arc<dyn Contender>, keys: &Keys, load: Load, fresh: bool) -> Round {
    let shared = Shared::new(name, load.callers, load.server);
    let tasks: Vec<_> = (0..load.callers)
        .map(|number| {
            let (contender, caller) =
                (Arc::clone(contender), Caller::new(number, keys, load.length, &shared));
            tokio::spawn(async move {
                if fresh { contender.performing(caller).await } else { contender.replaying(caller).await }
            })
        })
        .collect();
    shared.start.wait().await;
    let (cpu_before, began) = (cpu::used(load.server), Instant::now());
    for task in tasks {
        task.await.unwrap_or_else(|error| panic!("a caller of {name} failed: {error}"));
    }
    let seen = shared.take();
    let (ended, cpu_after) = seen.ended.expect("every caller has ended");
    let took = ended.saturating_duration_since(began);
    let mut latencies = seen.latencies;
    latencies.sort_unstable();
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
    let calls = latencies.len() as u64;
    Round {
        per_second: calls as f64 / took.as_secs_f64(),
        p50: at(0.5),
        p99: at(0.99),
        cpu: cpu_after.saturating_sub(cpu_before) / u32::try_from(calls).expect("fewer calls than fit"),
        calls,
    }
}
