#![allow(unused_variables)]
use effectual::{EffectContext, Never, effect};

#[effect(keying = business_identity, provider = P)]
async fn refund<P: effectual::Provider>(cx: &EffectContext, #[key] order_id: u64) -> effectual::Result<(), Never> {
    Ok(())
}

fn main() {}
