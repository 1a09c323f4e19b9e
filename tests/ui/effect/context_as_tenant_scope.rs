#![allow(unused_variables)]
use effectual::{EffectScope, Never, effect, executor::TenantScope};

#[effect(keying = business_identity)]
async fn refund(cx: &TenantScope, #[key] order_id: u64) -> effectual::Result<(), Never> {
    Ok(())
}

// The function stays known to its callers.
async fn caller(scope: &impl EffectScope) {
    let _ = refund(scope, 1).await;
}

fn main() {}
