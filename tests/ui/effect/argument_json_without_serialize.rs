#![allow(unused_variables)]
use effectual::{EffectContext, EffectScope, Never, effect};

#[derive(Clone)]
struct Note;

#[effect(keying = business_identity)]
async fn refund(cx: &EffectContext, #[key] order_id: u64, #[fingerprint(json)] note: Note) -> effectual::Result<(), Never> {
    Ok(())
}

// The function stays known to its callers.
async fn caller(scope: &impl EffectScope) {
    let _ = refund(scope, 1, Note).await;
}

fn main() {}
