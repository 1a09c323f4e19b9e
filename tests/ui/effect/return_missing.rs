#![allow(unused_variables)]
use effectual::{EffectContext, effect};

#[effect(keying = business_identity)]
async fn refund(cx: &EffectContext, #[key] order_id: u64) {
    let _ = order_id;
}

fn main() {}
