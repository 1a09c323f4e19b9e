//! The program before the deploy.

mod worker;

use effectual::{EffectContext, TenantScope, effect};
use worker::{Calling, CountError, Which, perform, run};

#[effect(keying = business_identity, operation = "rolling-ship")]
async fn ship(cx: &EffectContext, #[key] order: u64, line: u32) -> effectual::Result<u64, CountError> {
    let _ = line;
    Ok(perform(cx, Which::Ship, order).await?)
}

#[effect(keying = business_identity, operation = "rolling-bill")]
async fn bill(
    cx: &EffectContext,
    #[key] order: u64,
    #[key] depot: String,
) -> effectual::Result<u64, CountError> {
    let _ = depot;
    Ok(perform(cx, Which::Bill, order).await?)
}

#[effect(keying = business_identity, operation = "rolling-stamp")]
async fn stamp(cx: &EffectContext, #[key] order: u64) -> effectual::Result<u64, CountError> {
    Ok(perform(cx, Which::Stamp, order).await?)
}

fn call(scope: TenantScope, which: Which, order: u64) -> Calling {
    Box::pin(async move {
        match which {
            Which::Ship => ship(&scope, order, 7).await,
            Which::Bill => bill(&scope, order, "north".to_owned()).await,
            Which::Stamp => stamp(&scope, order).await,
        }
    })
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    run(call).await;
}
