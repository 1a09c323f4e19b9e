//! Keeping and forgetting: what goes, what stays, who is told, and what happens beside it.
#![forbid(unsafe_code)]

#[path = "retention/cached.rs"]
mod cached;
#[path = "retention/crash.rs"]
mod crash;
#[path = "executor/effects.rs"]
#[allow(dead_code, reason = "shared with the tests of the executor, which need all of it")]
mod effects;
#[path = "retention/forgetting.rs"]
mod forgetting;
#[path = "retention/place.rs"]
mod place;
#[path = "retention/plans.rs"]
mod plans;
#[path = "retention/races.rs"]
mod races;
#[path = "retention/sealing.rs"]
mod sealing;
#[path = "retention/secrets.rs"]
mod secrets;
#[path = "retention/sweeping.rs"]
mod sweeping;
