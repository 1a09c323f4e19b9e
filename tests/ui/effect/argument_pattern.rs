#![allow(unused_variables)]
use effectual::{EffectContext, EffectScope, Never, effect};

#[effect(keying = business_identity)]
async fn refund(cx: &EffectContext, #[key] (order_id, line): (u64, u64)) -> effectual::Result<(), Never> {
    let _ = order_id + line;
    Ok(())
}

// The function stays known to its callers.
async fn caller(scope: &impl EffectScope) {
    let _ = refund(scope, (1, 2)).await;
}

fn main() {}
