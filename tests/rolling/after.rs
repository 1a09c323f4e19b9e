//! The program after the deploy: the line is in the key of a shipment, the depot no longer in that of a bill, and a stamp has a
//! line at all.

mod worker;

use effectual::{EffectContext, TenantScope, effect};
use worker::{Calling, CountError, Which, perform, run};

#[effect(keying = business_identity, operation = "rolling-ship", version = 2)]
async fn ship(
    cx: &EffectContext,
    #[key] order: u64,
    #[key(since = 2)] line: u32,
) -> effectual::Result<u64, CountError> {
    let _ = line;
    Ok(perform(cx, Which::Ship, order).await?)
}

#[effect(keying = business_identity, operation = "rolling-bill", version = 2)]
async fn bill(
    cx: &EffectContext,
    #[key] order: u64,
    #[key(until = 2)] depot: String,
) -> effectual::Result<u64, CountError> {
    let _ = depot;
    Ok(perform(cx, Which::Bill, order).await?)
}

#[effect(keying = business_identity, operation = "rolling-stamp", version = 2)]
async fn stamp(
    cx: &EffectContext,
    #[key] order: u64,
    #[key(since = 2)] line: u32,
) -> effectual::Result<u64, CountError> {
    let _ = line;
    Ok(perform(cx, Which::Stamp, order).await?)
}

fn call(scope: TenantScope, which: Which, order: u64) -> Calling {
    Box::pin(async move {
        match which {
            Which::Ship => ship(&scope, order, 7).await,
            Which::Bill => bill(&scope, order, "north".to_owned()).await,
            Which::Stamp => stamp(&scope, order, 7).await,
        }
    })
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    run(call).await;
}
