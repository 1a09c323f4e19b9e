//! An executor over the ledger in memory, and a provider that documents its window.

use effectual::{Executor, MemoryLedger, NodeExecution, Profile, Provider};

/// A provider that deduplicates on our key.
pub(crate) struct Bank;
