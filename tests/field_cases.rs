//! What went wrong elsewhere for people who do this job, each case as a test that is named after it. Further cases are with
//! the tests of the part that they are about.
#![forbid(unsafe_code)]

#[path = "field_cases/bank.rs"]
mod bank;
#[path = "field_cases/claims.rs"]
mod claims;
#[path = "field_cases/deadlines.rs"]
mod deadlines;
#[path = "field_cases/dropped.rs"]
mod dropped;
#[path = "executor/effects.rs"]
#[allow(dead_code, reason = "shared with the tests of the executor, which need all of it")]
mod effects;
#[path = "field_cases/gone.rs"]
mod gone;
#[path = "field_cases/identity.rs"]
mod identity;
#[path = "field_cases/killed.rs"]
mod killed;
#[path = "field_cases/memory.rs"]
mod memory;
#[path = "field_cases/mismatch.rs"]
mod mismatch;
#[path = "retention/place.rs"]
#[allow(dead_code, reason = "shared with the tests of retention, which need all of it")]
mod place;
#[path = "field_cases/processes.rs"]
mod processes;
#[path = "field_cases/provider.rs"]
mod provider;
#[path = "field_cases/rows.rs"]
mod rows;
#[path = "field_cases/tenants.rs"]
mod tenants;
#[path = "field_cases/transactions.rs"]
mod transactions;
