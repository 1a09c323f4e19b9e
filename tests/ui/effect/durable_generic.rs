#![allow(unused_variables)]
use effectual::{EffectContext, Fingerprint, Never, effect};

#[effect(keying = business_identity, durable)]
async fn refund<T: Fingerprint + Clone + Send + Sync + 'static>(
    cx: &EffectContext,
    #[key] order_id: u64,
    reason: T,
) -> effectual::Result<(), Never> {
    Ok(())
}

#[effect(keying = business_identity, operation = "notify", durable)]
async fn notify(
    cx: &EffectContext,
    #[key] order_id: u64,
    #[skip] sink: impl Fn(u64) + Clone + Send + Sync + 'static,
) -> effectual::Result<(), Never> {
    Ok(())
}

fn main() {}
