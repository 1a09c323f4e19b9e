//! The pages behind the interface: what is promised, how it works, and how to run it.
//!
//! Begin with [`guarantees`]. [`identity`](crate::identity) has its page on the module itself.

/// What holds, what enforces it, and the test that shows it.
#[doc = include_str!("guarantees.md")]
pub mod guarantees {}

/// The states of an effect, and who moves them on.
#[doc = include_str!("state_machine.md")]
pub mod state_machine {}

/// What an attempt's end means, and what is tried again.
#[doc = include_str!("retries.md")]
pub mod retries {}

/// Profiles, provider keys, look-ups, and writing an adapter.
#[doc = include_str!("providers.md")]
pub mod providers {}

/// Where effects are kept: SQLite, PostgreSQL, memory.
#[doc = include_str!("ledgers.md")]
pub mod ledgers {}

/// What an effect costs, how it was measured, and what one ledger carries.
#[doc = include_str!("performance.md")]
pub mod performance {}

/// Effects that are SQL in the ledger's own database.
#[doc = include_str!("transactional.md")]
pub mod transactional {}

/// Effects that were left behind: the automatic recovery, accepted effects, durable submission.
#[doc = include_str!("recovery.md")]
pub mod recovery {}

/// What a run did, for its tenant to read; and what of the specification's second half is done where.
#[doc = include_str!("witness.md")]
pub mod witness {}

/// Deployments in more than one region: what is claimed, and what it takes.
#[doc = include_str!("multi_region.md")]
pub mod multi_region {}

/// How long outcomes are kept, what stays of them, and encryption at rest.
#[doc = include_str!("retention.md")]
pub mod retention {}

/// Ending a process without losing an effect.
#[doc = include_str!("shutdown.md")]
pub mod shutdown {}

/// The caller's side: requests that are sent again under one idempotency key.
#[cfg(feature = "tower")]
#[doc = include_str!("http.md")]
pub mod http {}

/// Errors and what to do, spans and events, escaped effects.
#[doc = include_str!("operations.md")]
pub mod operations {}

/// Kills, stops, broken wires and the soak: what is thrown at it, how to run it, and what was found.
#[doc = include_str!("crash_tests.md")]
pub mod crash_tests {}

/// The executor in a world where everything goes wrong, and the mutation table.
#[doc = include_str!("simulation.md")]
pub mod simulation {}

/// The rooms of the crate, who may import whom, the vocabulary, and what is left out.
#[doc = include_str!("architecture.md")]
pub mod architecture {}
