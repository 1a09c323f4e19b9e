#![allow(unused_variables)]
use effectual::{EffectContext, EffectScope, Fingerprint, Never, effect};

#[derive(Clone, Fingerprint)]
struct Reason(u8);

#[effect(keying = business_identity, durable)]
async fn refund(cx: &EffectContext, #[key] order_id: u64, reason: Reason) -> effectual::Result<(), Never> {
    Ok(())
}

// The function stays known to its callers.
async fn caller(scope: &impl EffectScope) {
    let _ = refund(scope, 1, Reason(1)).await;
}

fn main() {}
