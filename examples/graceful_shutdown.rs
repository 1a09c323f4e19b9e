//! A process that is asked to end, and leaves nothing unsaid.
//!
//! Shows: `Executor::drain`. New effects are refused; a body that runs goes on, its lease renewed, until it ends or the
//! deadline comes. Then it is aborted, and its effect labelled escaped: it may have acted, and nobody may guess.
//!
//! Run: `cargo run --example graceful_shutdown`, and press Ctrl-C, or send it SIGTERM; with `-- --now` it ends by itself. The
//! ledger is in memory.
//!
//! You will see: a refund that ends within the deadline completed, one that never ends escaped, and a third refused because
//! the shutdown had begun.

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use effectual::{EffectContext, EffectId, Executor, Failure, MemoryLedger, Receipt, SendRefused, effect};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

/// How long the bodies that run have.
const DEADLINE: Duration = Duration::from_millis(500);

#[effect(keying = business_identity)]
async fn refund_order(
    cx: &EffectContext,
    #[key] order_id: String,
    #[skip] bank: Arc<Bank>,
) -> effectual::Result<u32, BankError> {
    let _permit = cx.send_permit().map_err(BankError::from)?;
    Ok(bank.refund(&order_id).await)
}

/// What can go wrong, and what each means for the effect.
#[derive(Debug, thiserror::Error, Serialize, Deserialize, Failure)]
enum BankError {
    /// Nothing was asked of the bank.
    #[error("nothing was sent: {0}")]
    #[failure(not_performed, retry)]
    NotSent(#[from] SendRefused),
}

/// A bank that takes its time: for `order-1` until the shutdown has begun, for `order-2` for ever.
#[derive(Default)]
struct Bank {
    performed: AtomicU32,
    asked: Notify,
    shutdown: Notify,
}

impl Bank {
    async fn refund(&self, order_id: &str) -> u32 {
        let number = self.performed.fetch_add(1, Ordering::SeqCst) + 1;
        self.asked.notify_one();
        match order_id {
            "order-1" => self.shutdown.notified().await,
            _ => std::future::pending().await,
        }
        number
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let executor = Executor::builder(MemoryLedger::new()).build()?;
    let bank = Arc::new(Bank::default());
    let mut calls = Vec::new();
    for order in ["order-1", "order-2"] {
        let receipt = Receipt::new();
        let scope = executor.tenant("acme")?.with_receipt(&receipt);
        let call = tokio::spawn(refund_order(&scope, order.to_owned(), bank.clone()));
        bank.asked.notified().await;
        println!("{order}: the bank is at work");
        calls.push((order, receipt, call));
    }

    stop_signal().await?;
    println!("shutting down");
    let drain = tokio::spawn({
        let executor = executor.clone();
        async move { executor.drain(DEADLINE).await }
    });
    tokio::task::yield_now().await;
    bank.shutdown.notify_one();

    let drained = drain.await?;
    println!("cut off at the deadline: {}, not written down: {}", drained.unfinished, drained.unwritten);
    for (order, receipt, call) in calls {
        let said = match call.await? {
            Ok(number) => format!("refund {number}"),
            Err(error) => format!("{:?}", error.kind()),
        };
        let id = receipt.effect_id().ok_or("a call that has ended has an identity")?;
        println!("{order}: {said}, {} in the ledger", state(&executor, &id).await?);
    }
    let late = refund_order(&executor.tenant("acme")?, "order-3".to_owned(), bank.clone()).await;
    println!(
        "order-3: {}",
        late.map_or_else(|error| format!("{:?}", error.kind()), |number| number.to_string())
    );
    println!("performed at the provider: {}", bank.performed.load(Ordering::SeqCst));
    Ok(())
}

async fn state(executor: &Executor, id: &EffectId) -> Result<&'static str, Box<dyn Error>> {
    let history = executor.inspect(id).await?.ok_or("an effect that has ended is in the ledger")?;
    Ok(history.effect.state.as_str())
}

/// Resolves with Ctrl-C or SIGTERM, or at once with `--now`.
async fn stop_signal() -> std::io::Result<()> {
    if std::env::args().any(|argument| argument == "--now") {
        return Ok(());
    }
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            pressed = tokio::signal::ctrl_c() => pressed,
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}
