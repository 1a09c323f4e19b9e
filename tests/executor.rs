//! The life of a call, on every ledger, counted at the provider.

#[path = "executor/attached.rs"]
mod attached;
#[path = "executor/cached.rs"]
mod cached;
#[path = "executor/classes.rs"]
mod classes;
#[path = "executor/config.rs"]
mod config;
#[path = "executor/crowds.rs"]
mod crowds;
#[path = "executor/doubt.rs"]
mod doubt;
#[path = "executor/drain.rs"]
mod drain;
#[path = "executor/effects.rs"]
mod effects;
#[path = "executor/floods.rs"]
mod floods;
#[path = "executor/hostile.rs"]
mod hostile;
#[path = "executor/life.rs"]
mod life;
#[path = "executor/listing.rs"]
mod listing;
#[path = "executor/operators.rs"]
mod operators;
#[path = "executor/outages.rs"]
mod outages;
#[path = "executor/outcomes.rs"]
mod outcomes;
#[path = "executor/permits.rs"]
mod permits;
#[path = "executor/races.rs"]
mod races;
#[path = "executor/recipe.rs"]
mod recipe;
#[path = "executor/runtimes.rs"]
mod runtimes;
#[path = "executor/values.rs"]
mod values;
#[path = "executor/verdicts.rs"]
mod verdicts;
#[path = "executor/versions.rs"]
mod versions;
#[path = "executor/waiting.rs"]
mod waiting;
