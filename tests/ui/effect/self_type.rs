use effectual::{EffectContext, Never, effect};

struct Shop;

impl Shop {
    const FEE: u64 = 3;

    #[effect(keying = business_identity)]
    async fn refund(cx: &EffectContext, #[key] order_id: u64) -> effectual::Result<u64, Never> {
        let _ = cx;
        Ok(order_id + Self::FEE)
    }
}

fn main() {}
