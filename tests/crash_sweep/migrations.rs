//! Processes that are killed while they make the ledger.
