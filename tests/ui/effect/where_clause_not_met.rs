#![allow(unused_variables)]
use effectual::{EffectContext, EffectScope, Never, effect};

#[effect(keying = business_identity)]
async fn refund<T>(cx: &EffectContext, #[key] order_id: T) -> effectual::Result<(), Never>
where
    T: effectual::Argument + effectual::Identity,
{
    Ok(())
}

async fn caller(scope: &impl EffectScope) {
    let _ = refund(scope, 0.5).await;
}

fn main() {}
