//! The workflows of this host, and when a run of one is over.
//!
//! The two fixtures perform no effect: a run of theirs is over at a time that is known when it starts, so that nothing has
//! to run for it, and a restart changes nothing.

use effectual::witness::Problem;
use serde_json::{Map, Value};

/// What a caller may start.
pub const FIXTURES: [&str; 2] = ["conformance-noop", "conformance-delay"];

/// One node that sends one message. Only the test seams start it: it calls an address that it is given.
pub const DELIVERY: &str = "delivery";

/// The longest delay, in milliseconds: a day.
const DELAY_MAX_MS: u64 = 24 * 60 * 60 * 1_000;

/// How long a run of this fixture takes, in milliseconds.
///
/// # Errors
/// The answer for a workflow that is not there, or inputs that are not its own.
pub fn duration_ms(workflow: &str, inputs: &Map<String, Value>) -> Result<u64, Problem> {
    match workflow {
        "conformance-noop" => Ok(0),
        "conformance-delay" => match inputs.get("delayMs") {
            None => Ok(0),
            Some(delay) => delay.as_u64().filter(|delay| *delay <= DELAY_MAX_MS).ok_or_else(|| {
                Problem::validation(format!(
                    "`inputs.delayMs` is a number of milliseconds, 0 to {DELAY_MAX_MS}"
                ))
            }),
        },
        _ => Err(Problem::not_found("there is no such workflow")),
    }
}
