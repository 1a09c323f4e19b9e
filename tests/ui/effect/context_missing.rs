#![allow(unused_variables)]
use effectual::{EffectScope, Never, effect};

#[effect(keying = business_identity)]
async fn refund() -> effectual::Result<(), Never> {
    Ok(())
}

// The function stays known to its callers.
async fn caller(scope: &impl EffectScope) {
    let _ = refund().await;
}

fn main() {}
