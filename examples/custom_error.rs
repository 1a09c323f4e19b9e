//! An error type of your own, and what each of its variants leads to.
//!
//! Shows: a made-up carrier's client, which knows nothing of this library, under an effect whose error says by
//! `derive(Failure)` what became of an attempt. *Not performed* releases the effect, by itself tried again where that
//! helps; *refused* is stored, and replayed as the same error; whatever says nothing is *unknown*, and held.
//!
//! Run: `cargo run --example custom_error`. The ledger is in memory.
//!
//! You will see: for six parcels how two calls ended and how often the carrier was asked. Nothing that may have been
//! performed is asked for again.

use std::{error::Error, sync::Arc, time::Duration};

use effectual::{EffectContext, Executor, Failure, MemoryLedger, SendRefused, effect, retry::RetryPolicy};
use serde::{Deserialize, Serialize};

use carrier::{Carrier, CarrierError};

/// What the effect's callers get to see, and what each means for the effect.
#[derive(Debug, thiserror::Error, Serialize, Deserialize, Failure)]
enum LabelError {
    /// Final: stored, and every call gets it.
    #[error("no such address: {reason}")]
    #[failure(refused)]
    NoSuchAddress { reason: String },
    /// The carrier asked for a pause.
    #[error("the carrier is busy")]
    #[failure(not_performed, retry, retry_after = pause)]
    Busy { pause: Option<Duration> },
    /// Not the carrier, but the way to it.
    #[error("the carrier cannot be reached")]
    #[failure(not_performed, retry)]
    Unreachable,
    /// Another attempt would be answered the same way, and a new credential another: returned and not stored.
    #[error("the carrier does not take our credential")]
    #[failure(not_performed)]
    Credential,
    /// Nothing was sent.
    #[error("nothing was sent: {0}")]
    #[failure(not_performed, retry)]
    NotSent(#[from] SendRefused),
    /// Says nothing about what it means, so it means that nobody knows.
    #[error("no answer")]
    NoAnswer,
}

/// The one place that has to know the client's errors.
impl From<CarrierError> for LabelError {
    fn from(error: CarrierError) -> Self {
        match error {
            CarrierError::Connect => Self::Unreachable,
            CarrierError::TimedOut => Self::NoAnswer,
            CarrierError::Status(401 | 403, _) => Self::Credential,
            CarrierError::Status(429, _) => Self::Busy { pause: Some(Duration::from_millis(20)) },
            CarrierError::Status(422, reason) => Self::NoSuchAddress { reason },
            // 5xx too: the label may have been printed.
            CarrierError::Status(..) => Self::NoAnswer,
        }
    }
}

#[effect(keying = business_identity, on_unknown = hold)]
async fn print_label(
    cx: &EffectContext,
    #[key] parcel: String,
    #[skip] carrier: Arc<Carrier>,
) -> effectual::Result<u32, LabelError> {
    let _permit = cx.send_permit().map_err(LabelError::from)?;
    Ok(carrier.print_label(&parcel).await.map_err(LabelError::from)?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let retry = RetryPolicy::default().attempts_max(3).base(Duration::from_millis(10));
    let executor = Executor::builder(MemoryLedger::new()).retry(retry).build()?;
    let scope = executor.tenant("acme")?;
    let carrier = Arc::new(Carrier::default());
    for parcel in ["plain", "busy once", "never reached", "bad credential", "bad address", "lost"] {
        println!("{parcel}:");
        for call in 1..=2 {
            match print_label(&scope, parcel.to_owned(), carrier.clone()).await {
                Ok(label) => println!("  call {call}: label {label}"),
                Err(error) => match error.error() {
                    Some(own) => println!("  call {call}: {:?}, {own}", error.kind()),
                    None => println!("  call {call}: {:?}", error.kind()),
                },
            }
            println!("    asked: {}, performed: {}", carrier.asked(parcel), carrier.performed(parcel));
        }
    }
    executor.drain(Duration::from_secs(5)).await;
    Ok(())
}

/// Stands for a crate of somebody else.
mod carrier {
    use std::{
        collections::HashMap,
        sync::{Mutex, MutexGuard, PoisonError},
    };

    /// What the client says when it gets no label.
    #[derive(Debug)]
    pub enum CarrierError {
        /// No connection.
        Connect,
        /// No answer in time.
        TimedOut,
        /// An answer that is not a success, and its reason.
        Status(u16, String),
    }

    /// How often each parcel was asked for, and how often a label was printed for it.
    #[derive(Default)]
    pub struct Carrier(Mutex<HashMap<String, (u32, u32)>>);

    impl Carrier {
        fn books(&self) -> MutexGuard<'_, HashMap<String, (u32, u32)>> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        /// How often it was asked for this parcel.
        pub fn asked(&self, parcel: &str) -> u32 {
            self.books().get(parcel).map_or(0, |(asked, _)| *asked)
        }

        /// How many labels it printed for this parcel.
        pub fn performed(&self, parcel: &str) -> u32 {
            self.books().get(parcel).map_or(0, |(_, performed)| *performed)
        }

        /// Prints a label and gives its number.
        pub async fn print_label(&self, parcel: &str) -> Result<u32, CarrierError> {
            let mut books = self.books();
            let (asked, performed) = books.entry(parcel.to_owned()).or_default();
            *asked += 1;
            match parcel {
                "busy once" if *asked == 1 => return Err(CarrierError::Status(429, String::new())),
                "never reached" => return Err(CarrierError::Connect),
                "bad credential" => return Err(CarrierError::Status(401, String::new())),
                "bad address" => return Err(CarrierError::Status(422, "no street".to_owned())),
                _ => {}
            }
            *performed += 1;
            if parcel == "lost" { Err(CarrierError::TimedOut) } else { Ok(100 + *performed) }
        }
    }
}
