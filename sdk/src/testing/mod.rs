//! For tests only: what a ledger of one's own can be held against.

pub mod conformance;
