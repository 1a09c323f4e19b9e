use effectual::{EffectContext, Never, effect};

struct Shop;

impl Shop {
    #[effect(keying = business_identity)]
    async fn refund(&self, cx: &EffectContext, #[key] order_id: u64) -> effectual::Result<(), Never> {
        let _ = (cx, order_id);
        Ok(())
    }
}

fn main() {}
