//! A workflow's node that is executed again and repeats nothing.
//!
//! Shows: `keying = activity_recipe`, for actions that have no business key. The identity is the place: run, node, and the
//! how-manieth call of this execution. The place is taken when the function is called, so a second execution may poll its
//! effects in any order. A fork of the run has a run id of its own, and performs.
//!
//! Run: `cargo run --example workflow_node -- --fresh`, then again without `--fresh`.
//!
//! You will see: two mails sent by the first execution, the same two replayed by the second, which polls them the other way
//! round, and a third sent by the fork: `performed at the provider: 3`. Run again, all three are replayed.

use std::{error::Error, sync::Arc};

use effectual::{
    EffectContext, Executor, Failure, NodeExecution, Receipt, SendRefused, SqliteLedger, effect,
};
use effectual_examples::{Books, folder};
use serde::{Deserialize, Serialize};

const RUN: &str = "acme/order-1042-2026-11";
const FORK: &str = "acme/order-1042-2026-11-fork";

/// The text says nothing about which mail it is: two equal mails of one node are two effects.
#[effect(keying = activity_recipe)]
async fn send_mail(
    cx: &EffectContext,
    text: String,
    #[skip] post: Arc<Books>,
) -> effectual::Result<usize, MailError> {
    let _permit = cx.send_permit().map_err(MailError::from)?;
    Ok(post.enter(&format!("{} {text}", cx.idempotency_key())).map_err(|_| MailError::Lost)?)
}

/// What can go wrong, and what each means for the effect.
#[derive(Debug, thiserror::Error, Serialize, Deserialize, Failure)]
enum MailError {
    /// Nothing was sent.
    #[error("nothing was sent: {0}")]
    #[failure(not_performed, retry)]
    NotSent(#[from] SendRefused),
    /// Says nothing about what it means, so it means that nobody knows.
    #[error("the post office did not answer")]
    Lost,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = folder("workflow_node")?;
    let post = Arc::new(Books::at(folder.join("post.txt")));
    let executor = Executor::builder(SqliteLedger::open(folder.join("ledger.db")).await?).build()?;
    let tenant = executor.tenant("acme")?;

    let node = tenant.run(RUN)?.node("notify")?;
    let (to_buyer, to_seller) = (receipted(&node), receipted(&node));
    let (buyer, seller) = (
        send_mail(&to_buyer.1, "your order is on its way".to_owned(), post.clone()),
        send_mail(&to_seller.1, "please ship the order".to_owned(), post.clone()),
    );
    let (buyer, seller) = (buyer.await?, seller.await?);
    println!("first execution: buyer, then seller");
    println!("  to the buyer: mail {buyer}, {}", how(&to_buyer.0));
    println!("  to the seller: mail {seller}, {}", how(&to_seller.0));

    // As a workflow engine does after a crash: the node from its beginning, in a new `NodeExecution`.
    let node = tenant.run(RUN)?.node("notify")?;
    let (to_buyer, to_seller) = (receipted(&node), receipted(&node));
    let (buyer, seller) = (
        send_mail(&to_buyer.1, "your order is on its way".to_owned(), post.clone()),
        send_mail(&to_seller.1, "please ship the order".to_owned(), post.clone()),
    );
    println!("second execution: seller, then buyer");
    println!("  to the seller: mail {}, {}", seller.await?, how(&to_seller.0));
    println!("  to the buyer: mail {}, {}", buyer.await?, how(&to_buyer.0));

    let (to_buyer, fork) = receipted(&tenant.run(FORK)?.node("notify")?);
    let mail = send_mail(&fork, "your order is on its way".to_owned(), post.clone()).await?;
    println!("a fork of the run:");
    println!("  to the buyer: mail {mail}, {}", how(&to_buyer));

    executor.drain(std::time::Duration::from_secs(5)).await;
    println!("performed at the provider: {}", post.performed()?);
    Ok(())
}

/// The same execution, whose calls also say whether they were replayed. Clones count their calls together.
fn receipted(node: &NodeExecution) -> (Receipt, NodeExecution) {
    let receipt = Receipt::new();
    let node = node.clone().with_receipt(&receipt);
    (receipt, node)
}

fn how(receipt: &Receipt) -> &'static str {
    if receipt.replayed() { "replayed" } else { "performed by this call" }
}
