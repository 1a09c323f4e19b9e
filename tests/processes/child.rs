//! What each of the processes does.

use std::{env, sync::Arc, time::Duration};

use effectual::{
    EffectContext, Executor, Failure, Ledger, PostgresLedger, Receipt, SendRefused, SqliteLedger, effect,
};
use effectual_tests::process;
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

use crate::TASKS;

/// Which ledger.
pub(crate) const LEDGER: &str = "EFFECTUAL_TEST_CHILD_LEDGER";
/// Where the provider is.
pub(crate) const COUNTER: &str = "EFFECTUAL_TEST_CHILD_COUNTER";
/// Where the signal to go is awaited.
pub(crate) const GATE: &str = "EFFECTUAL_TEST_CHILD_GATE";

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

#[effect(keying = business_identity)]
async fn count(
    cx: &EffectContext,
    #[key] order: String,
    #[skip] counter: String,
) -> effectual::Result<u64, CountError> {
    let _ = order;
    let mut connection = TcpStream::connect(&counter).await.map_err(|_| CountError::NotSent)?;
    let _permit = cx.send_permit().map_err(CountError::from)?;
    connection.write_all(b"perform!").await.map_err(|_| CountError::Lost)?;
    Ok(connection.read_u64().await.map_err(|_| CountError::Lost)?)
}

fn told(name: &str) -> String {
    env::var(name).expect("a word from the parent")
}

async fn ledger() -> Arc<dyn Ledger> {
    let (url, _) = process::told();
    let url = url.into_os_string().into_string().expect("a URL or a path in UTF-8");
    match told(LEDGER).as_str() {
        "sqlite" => Arc::new(SqliteLedger::open(url).await.expect("a ledger")),
        "postgres" => Arc::new(PostgresLedger::connect(url).await.expect("a ledger")),
        "pooled" => {
            Arc::new(PostgresLedger::builder(url).pooled(true).connect().await.expect("a pooled ledger"))
        }
        other => panic!("no ledger {other}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by its parent, in processes of their own"]
async fn calls_one_effect() {
    let ledger = ledger().await;
    let executor =
        Executor::builder(Arc::clone(&ledger)).wait(Duration::from_secs(60)).build().expect("a valid set-up");
    let mut gate = TcpStream::connect(told(GATE)).await.expect("the parent");
    gate.read_u8().await.expect("the signal to go");
    let mut calls = JoinSet::new();
    for _ in 0..TASKS {
        let receipt = Receipt::new();
        let scope = executor.tenant("acme").expect("a tenant").with_receipt(&receipt);
        calls.spawn(async move {
            let number = count(&scope, "o-1".into(), told(COUNTER)).await.expect("one outcome for all");
            let how = if receipt.replayed() { "replayed" } else { "performed" };
            process::tell(format_args!("{how}: {number}"));
        });
    }
    calls.join_all().await;
    executor.drain(Duration::from_secs(10)).await;
    ledger.close().await;
}
