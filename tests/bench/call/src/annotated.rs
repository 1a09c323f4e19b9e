//! An annotated function on the ledger in memory, and the same function without the attribute.

use effectual::{EffectContext, Executor, MemoryLedger, TenantScope, effect};

#[effect(keying = business_identity, on_unknown = hold)]
pub(crate) async fn order(
    _cx: &EffectContext,
    #[key] order: u64,
) -> effectual::Result<u64, effectual::Never> {
    Ok(order)
}

pub(crate) async fn plain(order: u64) -> u64 {
    tokio::task::coop::consume_budget().await;
    order
}

/// Where calls come from; the executor must stay.
pub(crate) fn scope() -> (Executor, TenantScope) {
    let executor = Executor::builder(MemoryLedger::new()).build().expect("an executor");
    let scope = executor.tenant("acme").expect("a tenant");
    (executor, scope)
}

/// Nothing else runs on its thread, so that what is counted there belongs to the calls.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}
