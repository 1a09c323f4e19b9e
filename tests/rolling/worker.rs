//! What both programs do: call every effect of every order, from several tasks at once, and tell what came of it.

use std::{env, fmt, pin::Pin, sync::Arc, time::Duration};

use effectual::{
    EffectContext, EffectError, ErrorKind, Executor, Failure, Ledger, PostgresLedger, Receipt, SendRefused,
    SqliteLedger, TenantScope,
};
use effectual_tests::process::{tell, told};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

/// How many tasks call each effect.
const TASKS: u64 = 2;

const ORDERS: u64 = 8;

#[derive(Debug, thiserror::Error, Serialize, Deserialize, Failure)]
pub(crate) enum CountError {
    #[error("the permit was refused")]
    #[failure(not_performed)]
    NotSent,
    #[error("the answer was lost")]
    Lost,
}

impl From<SendRefused> for CountError {
    fn from(_: SendRefused) -> Self {
        Self::NotSent
    }
}

/// An effect, by what changed in its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// A field was added that was an argument before.
    Ship,
    /// A field was taken out that is an argument since.
    Bill,
    /// A field was added that was not known before at all.
    Stamp,
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Performs at the provider, which counts each effect of each order.
pub(crate) async fn perform(cx: &EffectContext, which: Which, order: u64) -> Result<u64, CountError> {
    let counter = env::var("ROLLING_COUNTER").expect("a word from the parent");
    let mut connection = TcpStream::connect(counter).await.map_err(|_| CountError::NotSent)?;
    let _permit = cx.send_permit()?;
    let mut asked = vec![which as u8];
    asked.extend(order.to_be_bytes());
    connection.write_all(&asked).await.map_err(|_| CountError::Lost)?;
    connection.read_u64().await.map_err(|_| CountError::Lost)
}

pub(crate) type Calling = Pin<Box<dyn Future<Output = Result<u64, EffectError<CountError>>> + Send>>;

async fn open() -> Arc<dyn Ledger> {
    let url = told().0.into_os_string().into_string().expect("a URL or a path in UTF-8");
    match env::var("ROLLING_LEDGER").expect("a word from the parent").as_str() {
        "sqlite" => Arc::new(SqliteLedger::open(url).await.expect("a ledger")),
        "postgres" => Arc::new(PostgresLedger::connect(url).await.expect("a ledger")),
        _ => Arc::new(PostgresLedger::builder(url).pooled(true).connect().await.expect("a pooled ledger")),
    }
}

/// The program: waits for the signal to go, and calls.
pub(crate) async fn run(call: fn(TenantScope, Which, u64) -> Calling) {
    let ledger = open().await;
    let executor =
        Executor::builder(Arc::clone(&ledger)).wait(Duration::from_secs(60)).build().expect("a valid set-up");
    let mut gate = TcpStream::connect(env::var("ROLLING_GATE").expect("a gate")).await.expect("the parent");
    let first = gate.read_u64().await.expect("the first order, which is the signal to go");
    let mut calls = JoinSet::new();
    for order in first..first + ORDERS {
        for which in [Which::Ship, Which::Bill, Which::Stamp] {
            for _ in 0..TASKS {
                let receipt = Receipt::new();
                let scope = executor.tenant("acme").expect("a tenant").with_receipt(&receipt);
                calls.spawn(async move {
                    match call(scope, which, order).await {
                        Ok(number) if receipt.replayed() => {
                            tell(format_args!("{which} {order} replayed {number}"))
                        }
                        Ok(number) => tell(format_args!("{which} {order} performed {number}")),
                        Err(error) if error.kind() == ErrorKind::SchemaAmbiguous => {
                            tell(format_args!("{which} {order} ambiguous"));
                        }
                        Err(error) => tell(format_args!("{which} {order} failed: {error}")),
                    }
                });
            }
        }
    }
    calls.join_all().await;
    executor.drain(Duration::from_secs(10)).await;
    ledger.close().await;
}
