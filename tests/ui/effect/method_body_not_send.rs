#![allow(unused_variables)]
use effectual::{EffectContext, EffectScope, Never, effect};

#[derive(Clone)]
struct Shop;

impl Shop {
    #[effect(keying = business_identity)]
    async fn refund(&self, cx: &EffectContext, #[key] order_id: u64) -> effectual::Result<(), Never> {
        let shared = std::rc::Rc::new(order_id);
        std::future::ready(()).await;
        let _ = *shared + 1;
        Ok(())
    }
}

// The method stays known to its callers.
async fn caller(scope: &impl EffectScope, shop: &Shop) {
    let _ = shop.refund(scope, 1).await;
}

fn main() {}
