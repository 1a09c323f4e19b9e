//! The `Idempotency-Key` layer under axum, over real sockets, on every store.

mod client;
mod rows;
mod support;

mod answers;
mod effects;
mod fuzzed;
mod hostile;
mod keys;
mod outages;
mod races;
mod stores;
mod transactions;
