//! A process that dies at the worst moment, and the next one that carries on.
//!
//! Shows: the bank performs a refund, and the process dies before it can write the answer down. The next process cannot know
//! that, and waits until the dead one's lease has ended. It then asks the bank again under the stored key, which the bank
//! recognises: class `resend`.
//!
//! Run: `cargo run --example crash_and_resume -- --fresh`, which dies, then again without `--fresh`.
//!
//! You will see: the first run abort in attempt 1. The second makes attempt 2 under the same key after about a second and
//! ends with `performed at the provider: 1`. A third replays the stored outcome.

use std::{error::Error, sync::Arc, time::Duration};

use effectual::{
    EffectContext, Executor, Failure, Profile, Provider, Receipt, RecoveryClass, SendRefused, SqliteLedger,
    effect,
    provider::{InFlightMeaning, KeyPlace},
};
use effectual_examples::{Books, folder};
use serde::{Deserialize, Serialize};

#[effect(keying = business_identity, provider = Bank)]
async fn refund_order(
    cx: &EffectContext,
    #[key] order_id: String,
    amount_cents: u64,
    #[skip] bank: Arc<Bank>,
) -> effectual::Result<Refund, BankError> {
    println!("attempt {}: asking the bank under the key {}", cx.attempt(), cx.idempotency_key());
    let _permit = cx.send_permit().map_err(BankError::from)?;
    let refund = bank.refund(cx.idempotency_key(), &order_id, amount_cents)?;
    if cx.attempt() == 1 {
        println!("the bank has refunded, and this process dies before it can write that down");
        std::process::abort();
    }
    Ok(refund)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = folder("crash_and_resume")?;
    let bank = Arc::new(Bank(Books::at(folder.join("books.txt"))));
    // Far shorter than in production, so that the second run need not wait a minute for the dead one's lease.
    let executor = Executor::builder(SqliteLedger::open(folder.join("ledger.db")).await?)
        .attempt_timeout(Duration::from_millis(500))
        .margin(Duration::from_millis(200))
        .lease(Duration::from_secs(1))
        .build()?;

    let receipt = Receipt::new();
    let scope = executor.tenant("acme")?.with_receipt(&receipt);
    let refund = refund_order(&scope, "order-1042".to_owned(), 4_999, bank.clone()).await?;

    let effect_id = receipt.effect_id().ok_or("a call that has ended has an identity")?;
    let history = executor.inspect(&effect_id).await?.ok_or("an effect that has ended is in the ledger")?;
    println!("{}", if receipt.replayed() { "replayed" } else { "performed by this call" });
    for (attempt, end) in history.attempts() {
        println!("  attempt {attempt}: {}", end.map_or("open", |end| end.verdict.as_str()));
    }
    println!("{} of {} cents", refund.id, refund.amount_cents);

    executor.drain(Duration::from_secs(5)).await;
    println!("performed at the provider: {}", bank.0.performed()?);
    Ok(())
}

/// What the bank gave back.
#[derive(Debug, Serialize, Deserialize)]
struct Refund {
    id: String,
    amount_cents: u64,
}

/// What can go wrong, and what each means for the effect.
#[derive(Debug, thiserror::Error, Serialize, Deserialize, Failure)]
enum BankError {
    /// Nothing was asked of the bank.
    #[error("nothing was sent: {0}")]
    #[failure(not_performed, retry)]
    NotSent(#[from] SendRefused),
    /// Says nothing about what it means, so it means that nobody knows.
    #[error("the bank did not answer")]
    Lost,
}

/// A bank that performs one refund a key, and remembers keys for a day.
struct Bank(Books);

impl Provider for Bank {
    const NAME: &'static str = "bank";

    fn profile() -> Profile {
        let mut profile = Profile::undocumented(Self::NAME, "2026-11-30");
        profile.key_place = KeyPlace::Header("Idempotency-Key".to_owned());
        profile.window_s = Some(24 * 60 * 60);
        profile.in_flight = InFlightMeaning::Refuses;
        profile.on_unknown = RecoveryClass::Resend;
        profile
    }
}

impl Bank {
    fn refund(&self, key: &str, order: &str, amount_cents: u64) -> Result<Refund, BankError> {
        let number = match self.0.find(key).map_err(|_| BankError::Lost)? {
            Some(number) => number,
            None => self.0.enter(&format!("{key} {order} {amount_cents}")).map_err(|_| BankError::Lost)?,
        };
        Ok(Refund { id: format!("refund-{number}"), amount_cents })
    }
}
