use effectual::{EffectContext, Never, effect};

#[async_trait::async_trait]
trait Refunds {
    async fn refund(&self, cx: &EffectContext, order_id: u64) -> effectual::Result<(), Never>;
}

struct Shop;

#[async_trait::async_trait]
impl Refunds for Shop {
    #[effect(keying = business_identity)]
    async fn refund(&self, cx: &EffectContext, #[key] order_id: u64) -> effectual::Result<(), Never> {
        let _ = (cx, order_id);
        Ok(())
    }
}

fn main() {}
