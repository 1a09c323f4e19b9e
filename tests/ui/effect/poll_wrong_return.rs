#![allow(unused_variables)]
use effectual::{EffectContext, Found, Never, effect};

#[effect(keying = business_identity, poll = exported)]
async fn export(cx: &EffectContext, #[key] month: u32) -> effectual::Result<u32, Never> {
    Ok(month)
}

async fn exported(cx: &EffectContext, handle: &str, month: u32) -> Result<Found<u32, Never>, Never> {
    Ok(Found::Done(month))
}

fn main() {}
