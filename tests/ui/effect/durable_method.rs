#![allow(unused_variables)]
use effectual::{EffectContext, Never, effect};

#[derive(Clone)]
struct Shop;

impl Shop {
    #[effect(keying = business_identity, durable)]
    async fn refund(&self, cx: &EffectContext, #[key] order_id: u64) -> effectual::Result<(), Never> {
        Ok(())
    }
}

fn main() {}
