#![allow(unused_variables)]
use effectual::{EffectContext, Never, Polled, effect};

#[effect(keying = business_identity, poll = exported, attached)]
async fn export(cx: &EffectContext, #[key] month: u32) -> effectual::Result<u32, Never> {
    Ok(month)
}

async fn exported(cx: &EffectContext, handle: &str, month: u32) -> Result<Polled<u32, Never>, Never> {
    Ok(Polled::Done(month))
}

fn main() {}
