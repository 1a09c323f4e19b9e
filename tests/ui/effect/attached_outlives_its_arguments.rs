#![allow(unused_variables)]
use effectual::{EffectContext, EffectScope, Never, effect};

#[effect(keying = business_identity, attached)]
async fn refund(cx: &EffectContext, #[key] order_id: &str) -> effectual::Result<(), Never> {
    Ok(())
}

fn caller(scope: &impl EffectScope) -> effectual::Attached<'static, (), Never> {
    let order_id = String::from("o-1");
    refund(scope, &order_id)
}

fn main() {}
