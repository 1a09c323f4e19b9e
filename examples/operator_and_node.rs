//! One refund, asked for by a workflow and by an operator.
//!
//! Shows: `keying = business_identity`. The order is the identity, so it makes no difference where the refund is asked for:
//! in a node of a run, or from an operator's route, which knows of no run. Both get the one outcome. Another amount for the
//! same order is an error, wherever it is asked for: a second refund on purpose would need a key field that says so.
//!
//! Run: `cargo run --example operator_and_node -- --fresh`, then again without `--fresh`.
//!
//! You will see: the refund made in the node, replayed to the operator, a mismatch, and `performed at the provider: 1`. Run
//! again, the node gets the replay too.

use std::{error::Error, sync::Arc};

use effectual::{EffectContext, EffectScope, Executor, Failure, Receipt, SendRefused, SqliteLedger, effect};
use effectual_examples::{Books, folder};
use serde::{Deserialize, Serialize};

#[effect(keying = business_identity)]
async fn refund_order(
    cx: &EffectContext,
    #[key] order_id: String,
    amount_cents: u64,
    #[skip] bank: Arc<Books>,
) -> effectual::Result<String, BankError> {
    let _permit = cx.send_permit().map_err(BankError::from)?;
    let entry = format!("{} {order_id} {amount_cents}", cx.idempotency_key());
    Ok(bank.enter(&entry).map(|number| format!("refund-{number}")).map_err(|_| BankError::Lost)?)
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

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = folder("operator_and_node")?;
    let bank = Arc::new(Books::at(folder.join("books.txt")));
    let executor = Executor::builder(SqliteLedger::open(folder.join("ledger.db")).await?).build()?;
    let tenant = executor.tenant("acme")?;

    let receipt = Receipt::new();
    let node = tenant.run("acme/run-2026-11-30-0001")?.node("refund")?.with_receipt(&receipt);
    let by_node = ask(&node, 4_999, &bank).await;
    println!("the run's node: {}, {}", by_node?, how(&receipt));
    let of_node = receipt.effect_id();

    // An operator's route, with the tenant of its credential and no run.
    let route = tenant.clone().with_receipt(&receipt);
    let by_operator = ask(&route, 4_999, &bank).await;
    println!("the operator's route: {}, {}", by_operator?, how(&receipt));
    println!("one effect: {}", receipt.effect_id() == of_node);

    if let Err(error) = ask(&route, 5_999, &bank).await {
        println!("another amount: {:?}", error.kind());
    }

    executor.drain(std::time::Duration::from_secs(5)).await;
    println!("performed at the provider: {}", bank.performed()?);
    Ok(())
}

/// The same call from everywhere: what differs is only the scope.
async fn ask(
    scope: &impl EffectScope,
    amount_cents: u64,
    bank: &Arc<Books>,
) -> effectual::Result<String, BankError> {
    refund_order(scope, "order-1042".to_owned(), amount_cents, bank.clone()).await
}

fn how(receipt: &Receipt) -> &'static str {
    if receipt.replayed() { "replayed" } else { "performed by this call" }
}
