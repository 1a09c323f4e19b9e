#![allow(unused_variables)]
use effectual::{EffectContext, EffectScope, Never, effect};

struct Shop(std::cell::Cell<u64>);

impl Shop {
    #[effect(keying = business_identity, attached)]
    async fn refund(&self, cx: &EffectContext, #[key] order_id: u64) -> effectual::Result<(), Never> {
        Ok(())
    }
}

// The method stays known to its callers.
async fn caller(scope: &impl EffectScope, shop: &Shop) {
    let _ = shop.refund(scope, 1).await;
}

fn main() {}
