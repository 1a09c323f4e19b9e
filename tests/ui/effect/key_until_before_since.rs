#![allow(unused_variables)]
use effectual::{EffectContext, EffectScope, Never, effect};

#[effect(keying = business_identity, version = 3)]
async fn refund(cx: &EffectContext, #[key] order_id: u64, #[key(since = 3, until = 2)] line: u32) -> effectual::Result<(), Never> {
    Ok(())
}

// The function stays known to its callers.
async fn caller(scope: &impl EffectScope) {
    let _ = refund(scope, 1, 1).await;
}

fn main() {}
