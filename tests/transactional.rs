//! `on_unknown = transactional` is known to the attribute, and refused at the start: no ledger offers it yet.
#![forbid(unsafe_code)]

use effectual::{EffectContext, Executor, MemoryLedger, Never, effect};

#[effect(keying = business_identity, on_unknown = transactional)]
#[allow(dead_code)]
async fn book(_cx: &EffectContext, #[key] order: u64) -> effectual::Result<u64, Never> {
    Ok(order)
}

#[tokio::test]
async fn refused_at_the_start_with_the_way_out() {
    let error = Executor::builder(MemoryLedger::new()).build().expect_err("no ledger offers it").to_string();
    for part in
        ["`book`", "transactional.rs", "`on_unknown = transactional`", "no ledger offers that yet", "`hold`"]
    {
        assert!(error.contains(part), "{error}");
    }
}
