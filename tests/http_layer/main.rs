//! The `Idempotency-Key` layer under axum, over real sockets, on every store.

mod client;
mod support;

mod answers;
mod hostile;
mod keys;
mod outages;
mod races;
