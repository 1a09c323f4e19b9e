#![allow(unused_variables)]
use effectual::{EffectContext, Never, effect};

trait Refunds {
    fn refund(&self, cx: &EffectContext, order_id: u64) -> impl Future<Output = effectual::Result<(), Never>> + Send;
}

#[derive(Clone)]
struct Shop;

impl Refunds for Shop {
    #[effect(keying = business_identity)]
    async fn refund(&self, cx: &EffectContext, #[key] order_id: u64) -> effectual::Result<(), Never> {
        Ok(())
    }
}

fn main() {}
