#![allow(unused_variables)]
use effectual::{EffectContext, EffectScope, Never, effect};

#[effect(keying = business_identity, attached)]
async fn refund(cx: &EffectContext, #[key] order_id: u64, #[skip] client: Client) -> effectual::Result<(), Never> {
    Ok(())
}

struct Client;

// The function stays known to its callers.
async fn caller(scope: &impl EffectScope) {
    let _ = refund(scope, 1, Client).await;
}

fn main() {}
