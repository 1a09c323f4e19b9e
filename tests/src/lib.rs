//! What the tests share: where the servers are, how a test says that it was left out, a database of its own, and a
//! network that loses answers in front of a real provider.

pub mod charges;
pub mod counted;
pub mod counting;
pub mod database;
mod http;
pub mod ledgers;
pub mod microburst;
pub mod pg_proxy;
pub mod process;
pub mod program;
pub mod random;
pub mod recorder;
pub mod scripted;
pub mod servers;
pub mod vault;
pub mod wait;
pub mod wire;
