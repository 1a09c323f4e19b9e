#![allow(unused_variables)]
use effectual::{EffectContext, EffectScope, Never, effect};

#[effect(
    keying = business_identity,
    retry(attempts = 1, attempts = 2, base = "1s", base = "2s", max = "3s", max = "4s", elapsed = "5s", elapsed = "6s")
)]
async fn refund(cx: &EffectContext, #[key] order_id: u64) -> effectual::Result<(), Never> {
    Ok(())
}

// The function stays known to its callers.
async fn caller(scope: &impl EffectScope) {
    let _ = refund(scope, 1).await;
}

fn main() {}
