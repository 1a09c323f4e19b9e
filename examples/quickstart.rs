//! An action that is safe to retry, with nothing to start: the ledger is an SQLite file.
//!
//! Shows: a provider that performs a refund and loses its first answer. The effect is sent again under the same key, the
//! provider recognises it, and the outcome is stored. Run again, and the stored outcome is replayed.
//!
//! Run: `cargo run --example quickstart -- --fresh`, then again without `--fresh`.
//!
//! You will see: two attempts under one key, the refund, and `performed at the provider: 1`, both times.

use std::{error::Error, path::PathBuf, sync::Arc};

use effectual::{EffectContext, Executor, Receipt, SqliteLedger, effect};

use provider::{BankError, BooksBank, Refund};

/// One effect a business operation: the order is its identity, another amount for the same order is an error, and the
/// bank is a handle that says nothing about what is asked.
#[effect(keying = business_identity, provider = BooksBank, retry(attempts = 3, base = "50ms"))]
async fn refund_order(
    cx: &EffectContext,
    #[key] order_id: String,
    amount_cents: u64,
    #[skip] bank: Arc<BooksBank>,
) -> effectual::Result<Refund, BankError> {
    let _permit = cx.send_permit().map_err(BankError::from)?;
    println!("attempt {}: asking the bank under the key {}", cx.attempt(), cx.idempotency_key());
    Ok(bank.refund(cx.idempotency_key(), &order_id, amount_cents)?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = folder(std::env::args().any(|argument| argument == "--fresh"))?;
    let bank = Arc::new(BooksBank::open(folder.join("books.txt")));

    let ledger = SqliteLedger::open(folder.join("ledger.db")).await?;
    let executor = Executor::builder(ledger).build()?;

    let receipt = Receipt::new();
    let scope = executor.tenant("acme")?.with_receipt(&receipt);
    let refund = refund_order(&scope, "order-1042".to_owned(), 4_999, bank.clone()).await?;

    let effect_id = receipt.effect_id().ok_or("a call that has ended has an identity")?;
    let history = executor.inspect(&effect_id).await?.ok_or("an effect that has ended is in the ledger")?;
    println!(
        "effect {effect_id}: {}",
        if receipt.replayed() { "replayed" } else { "performed by this call" }
    );
    for (attempt, end) in history.attempts() {
        println!("  attempt {attempt}: {}", end.map_or("open", |end| end.verdict.as_str()));
    }
    println!("refund {} of {} cents", refund.id, refund.amount_cents);

    executor.drain(std::time::Duration::from_secs(5)).await;
    println!("performed at the provider: {}", bank.performed()?);
    Ok(())
}

/// Beside the program, so that nothing is left elsewhere.
fn folder(fresh: bool) -> Result<PathBuf, Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let folder = program.parent().ok_or("a program lies in a folder")?.join("quickstart-data");
    if fresh && folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// A bank whose books are a file: it deduplicates on the key, and the answer to its first refund gets lost.
mod provider {
    use std::{fs::OpenOptions, io::Write, path::PathBuf};

    use effectual::{
        Failure, Profile, Provider, RecoveryClass, SendRefused,
        provider::{InFlightMeaning, KeyPlace},
    };
    use serde::{Deserialize, Serialize};

    /// What the bank gave back.
    #[derive(Debug, Clone, Serialize, Deserialize)]
    pub struct Refund {
        /// The bank's id of it.
        pub id: String,
        /// In cents.
        pub amount_cents: u64,
    }

    /// What can go wrong, and what each means for the effect.
    #[derive(Debug, thiserror::Error, Serialize, Deserialize, Failure)]
    pub enum BankError {
        /// Says nothing about what it means, so it means that nobody knows.
        #[error("the answer was lost")]
        AnswerLost,
        /// Nothing was asked of the bank; the refusal knows whether trying again helps.
        #[error("nothing was sent: {0}")]
        #[failure(transparent)]
        NotSent(#[from] SendRefused),
        /// The books could not be read or written; nothing was entered.
        #[error("the books are closed")]
        #[failure(not_performed)]
        BooksClosed,
    }

    /// The bank.
    pub struct BooksBank {
        books: PathBuf,
    }

    impl Provider for BooksBank {
        const NAME: &'static str = "books-bank";

        fn profile() -> Profile {
            let mut profile = Profile::undocumented(Self::NAME, "2026-11-30");
            profile.key_place = KeyPlace::Header("Idempotency-Key".to_owned());
            profile.window_s = Some(24 * 60 * 60);
            profile.in_flight = InFlightMeaning::Refuses;
            profile.on_unknown = RecoveryClass::Resend;
            profile
        }
    }

    impl BooksBank {
        /// Opens the books.
        pub fn open(books: PathBuf) -> Self {
            Self { books }
        }

        /// Enters a refund, or finds the one that was entered under this key.
        pub fn refund(&self, key: &str, order: &str, amount_cents: u64) -> Result<Refund, BankError> {
            let entries = self.entries().map_err(|_| BankError::BooksClosed)?;
            let refund = |number: usize| Refund { id: format!("refund-{number}"), amount_cents };
            if let Some(number) = entries.iter().position(|entry| entry.starts_with(key)) {
                return Ok(refund(number + 1));
            }
            let mut books = OpenOptions::new()
                .create(true)
                .append(true)
                .open(&self.books)
                .map_err(|_| BankError::BooksClosed)?;
            writeln!(books, "{key} {order} {amount_cents}").map_err(|_| BankError::BooksClosed)?;
            if entries.is_empty() {
                return Err(BankError::AnswerLost);
            }
            Ok(refund(entries.len() + 1))
        }

        /// How many refunds are in the books.
        pub fn performed(&self) -> std::io::Result<usize> {
            Ok(self.entries()?.len())
        }

        fn entries(&self) -> std::io::Result<Vec<String>> {
            match std::fs::read_to_string(&self.books) {
                Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
                Err(error) => Err(error),
            }
        }
    }
}
