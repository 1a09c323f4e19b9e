use effectual::{EffectContext, Never, effect};

trait Refunds {
    #[effect(keying = business_identity)]
    async fn refund(cx: &EffectContext, order_id: u64) -> effectual::Result<(), Never>;
}

fn main() {}
