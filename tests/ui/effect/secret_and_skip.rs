#![allow(unused_variables)]
use effectual::{EffectContext, EffectScope, Never, effect};

#[effect(keying = business_identity)]
async fn refund(cx: &EffectContext, #[key] order_id: u64, #[skip] #[secret] card: u64) -> effectual::Result<(), Never> {
    Ok(())
}

// The function stays known to its callers.
async fn caller(scope: &impl EffectScope) {
    let _ = refund(scope, 1, 2).await;
}

fn main() {}
