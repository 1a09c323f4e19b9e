#![allow(unused_variables)]
use effectual::{EffectContext, EffectScope, Never, effect};

#[effect(
    keying = business_identity,
    operation = "refund-order",
    version = 1,
    on_unknown = hold,
    attempt_timeout = "1s",
    lease = "60s",
    wait = "1s",
    retry(attempts = 1, base = "1s", max = "2s", elapsed = "3s"),
    attached,
    provider = Never,
    crate = ::effectual,
    keying = activity_recipe,
    operation = "refund",
    version = 2,
    on_unknown = rerun,
    attempt_timeout = "2s",
    lease = "61s",
    wait = "2s",
    retry(attempts = 2),
    attached,
    provider = Never,
    crate = ::effectual
)]
async fn refund(cx: &EffectContext, #[key] order_id: u64) -> effectual::Result<(), Never> {
    Ok(())
}

// The function stays known to its callers.
async fn caller(scope: &impl EffectScope) {
    let _ = refund(scope, 1).await;
}

fn main() {}
