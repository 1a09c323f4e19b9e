//! A `durable` effect stores its arguments, and what is `#[secret]` is not stored as it is.
#![forbid(unsafe_code)]

use effectual::{EffectContext, Executor, MemoryLedger, Never, effect};

#[effect(keying = business_identity, durable)]
#[allow(dead_code)]
async fn pay_out(
    _cx: &EffectContext,
    #[key] order: u64,
    #[secret] account: String,
) -> effectual::Result<u64, Never> {
    drop(account);
    Ok(order)
}

#[tokio::test]
async fn refused_at_the_start_with_the_way_out() {
    let builder = Executor::builder(MemoryLedger::new()).fingerprint_key("k1", *b"a secret of 16 b");
    let error = builder.build().expect_err("nothing encrypts it").to_string();
    for part in ["`pay_out`", "durable_secret.rs", "`#[secret]`", "`#[skip]`", "`.resource(…)`"] {
        assert!(error.contains(part), "{error}");
    }
}
