#![allow(unused_variables)]
use effectual::{EffectContext, EffectScope, Found, Never, effect};

async fn look_up(cx: &EffectContext) -> Result<Found<(), Never>, Never> {
    Ok(Found::Absent)
}

#[effect(keying = business_identity, on_unknown = reconcile(look_up))]
async fn refund(cx: &EffectContext, #[key] order_id: u64) -> effectual::Result<(), Never> {
    Ok(())
}

// The function stays known to its callers.
async fn caller(scope: &impl EffectScope) {
    let _ = refund(scope, 1).await;
}

fn main() {}
