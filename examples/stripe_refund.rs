//! A refund at Stripe, or at any server that speaks its API.
//!
//! Shows: the Stripe adapter under an effect, its attempts, the key that was presented, and whether the answer was Stripe's
//! replay of an earlier one.
//!
//! Run: `STRIPE_API_BASE=http://localhost:8000 STRIPE_SECRET_KEY=sk_test_123 \
//!   cargo run --example stripe_refund -- ch_123 500`
//! The first argument is the charge, the second the amount in the smallest unit of its currency. `STRIPE_API_BASE` is
//! Stripe's own address if it is not set. The ledger is `stripe_refund.db` in the current folder, or `STRIPE_REFUND_LEDGER`.
//!
//! You will see: each attempt and its end, the provider key, `provider replay: yes` or `no`, and the refund. Run it again: the
//! stored outcome is replayed and Stripe is not asked. Run it with another amount: a mismatch, since this program makes one
//! refund a charge.

use std::{env, error::Error, process::ExitCode, time::Duration};

use effectual::{
    EffectContext, Executor, Receipt, SqliteLedger, effect,
    ledger::EffectHistory,
    provider::stripe::{CreateRefund, Refund, Stripe, StripeClient, StripeError, StripeObject},
};

#[effect(keying = business_identity, provider = Stripe, operation = "refund-charge")]
async fn refund_charge(
    cx: &EffectContext,
    #[key] charge: String,
    amount: u64,
    #[skip] stripe: StripeClient,
) -> effectual::Result<Refund, StripeError> {
    Ok(stripe.refunds().create(cx, &CreateRefund::new(charge).amount(amount)).await?)
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            let mut source = error.source();
            while let Some(cause) = source {
                eprintln!("  because: {cause}");
                source = cause.source();
            }
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let (charge, amount) = arguments()?;
    let mut stripe =
        StripeClient::new(env::var("STRIPE_SECRET_KEY").map_err(|_| "STRIPE_SECRET_KEY is not set")?)?;
    if let Ok(base) = env::var("STRIPE_API_BASE") {
        stripe = stripe.with_base(&base)?;
    }

    let ledger = env::var("STRIPE_REFUND_LEDGER").unwrap_or_else(|_| "stripe_refund.db".to_owned());
    let ledger = SqliteLedger::open(ledger).await?;
    let provider = Stripe::new(stripe.clone()).creates("refund-charge", StripeObject::Refund);
    let executor = Executor::builder(ledger).provider(provider).build()?;
    let receipt = Receipt::new();
    let scope = executor.tenant("example")?.with_receipt(&receipt);

    let refunded = refund_charge(&scope, charge, amount, stripe).await;

    if let Some(id) = receipt.effect_id()
        && let Some(history) = executor.inspect(&id).await?
    {
        print(&history, receipt.replayed());
    }
    executor.drain(Duration::from_secs(10)).await;
    let refund = refunded?;
    println!("refund {} of {} {}", refund.id, refund.amount, refund.currency);
    Ok(())
}

fn arguments() -> Result<(String, u64), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let (Some(charge), Some(amount), None) = (arguments.next(), arguments.next(), arguments.next()) else {
        return Err("usage: stripe_refund CHARGE AMOUNT".into());
    };
    let amount =
        amount.parse().map_err(|_| "the amount is a whole number in the smallest unit of the currency")?;
    Ok((charge, amount))
}

fn print(history: &EffectHistory, replayed: bool) {
    let effect = &history.effect;
    println!("effect {}: {}{}", effect.id, effect.state.as_str(), if replayed { ", replayed" } else { "" });
    for (attempt, end) in history.attempts() {
        println!("  attempt {attempt}: {}", end.map_or("open", |end| end.verdict.as_str()));
    }
    println!("provider key: {}", effect.provider_key);
    let replay = effect.outcome.as_ref().is_some_and(|outcome| outcome.provider_replay);
    println!("provider replay: {}", if replay { "yes" } else { "no" });
}
