//! Processor time: of this process, and of a database server's processes.

use std::{fs, time::Duration};

/// What this process and the server whose first process is `server` have used so far. Linux only.
pub(crate) fn used(server: Option<u32>) -> Duration {
    let own = of(std::process::id(), false);
    let Some(server) = server else { return own };
    let alive: Duration = children(server).into_iter().map(|pid| of(pid, false)).sum();
    own + alive + of(server, true)
}

/// The processes that `server` has started and that are alive. Linux only.
pub(crate) fn children(server: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Of one process; `ended` adds those of its children that have ended.
fn of(pid: u32, ended: bool) -> Duration {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return Duration::ZERO };
    // The name, in parentheses, may hold spaces.
    let rest = stat.rsplit(')').next().unwrap_or_default();
    let ticks =
        |at: usize| rest.split_whitespace().nth(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    let used = ticks(11) + ticks(12) + if ended { ticks(13) + ticks(14) } else { 0 };
    Duration::from_micros(used * 10_000)
}
