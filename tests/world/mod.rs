//! An executor over the ledger in memory, and a provider that documents its window.

use std::sync::Arc;

use effectual::provider::KeyPlace;
use effectual::{Executor, Ledger, MemoryLedger, NodeExecution, Profile, Provider, RecoveryClass};

/// A provider that deduplicates on our key.
pub(crate) struct Bank;

impl Provider for Bank {
    const NAME: &'static str = "bank";

    fn profile() -> Profile {
        let mut profile = Profile::undocumented(Self::NAME, "2026-01-01");
        profile.key_place = KeyPlace::Header("Idempotency-Key".into());
        profile.window_s = Some(24 * 60 * 60);
        profile.on_unknown = RecoveryClass::Resend;
        profile
    }
}

/// A node of a run, over a ledger of its own.
pub(crate) fn node() -> NodeExecution {
    let ledger: Arc<dyn Ledger> = Arc::new(MemoryLedger::new());
    let executor = Executor::builder(ledger).build().expect("the set-up is in order");
    let tenant = executor.tenant("acme").expect("a tenant");
    let run = tenant.run("acme/run-0000000000000001").expect("a run");
    run.node("charge").expect("a node")
}
