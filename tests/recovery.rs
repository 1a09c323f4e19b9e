//! Effects that were left behind, finished without their callers; counted at the provider.

#[path = "recovery/accepted.rs"]
mod accepted;
#[path = "recovery/durable.rs"]
mod durable;
#[path = "recovery/effects.rs"]
mod effects;
#[path = "recovery/passes.rs"]
mod passes;
#[path = "recovery/processes.rs"]
mod processes;
