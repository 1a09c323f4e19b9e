//! The peers, each with the best settings that its documentation names.

pub(crate) mod agent_effects;
pub(crate) mod dbos;
pub(crate) mod durare;
mod lanes;
