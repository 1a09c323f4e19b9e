//! A worker process: calls the orders that it is told to, all at once.

use std::sync::Arc;

use effectual::{EffectError, ErrorKind, Ledger, PostgresLedger, SqliteLedger, TenantScope};
use tokio::{net::TcpStream, sync::mpsc, time::Duration};

use crate::{
    Failed,
    effects::{self, BankError, Teller},
    wire::{say, split},
};

async fn open(ledger: &str, place: &str) -> Result<Arc<dyn Ledger>, Failed> {
    Ok(match ledger {
        "sqlite" => Arc::new(SqliteLedger::open(place).await?),
        kind => Arc::new(PostgresLedger::builder(place).pooled(kind == "pooled").connect().await?),
    })
}

/// What the board is told of a call's end.
fn word(end: Result<u32, EffectError<BankError>>) -> String {
    match end {
        Ok(number) => format!("={number}"),
        Err(error) => match error.kind() {
            ErrorKind::Escaped => format!("! {error}").replace('\n', " "),
            ErrorKind::RetryLater
            | ErrorKind::InFlight
            | ErrorKind::Failed
            | ErrorKind::Ledger
            | ErrorKind::Draining => {
                let delay = error.retry_after().unwrap_or_default().as_millis();
                format!("~{}", delay.max(200))
            }
            _ => format!("{:?}: {error}", error.kind()).replace('\n', " "),
        },
    }
}

async fn call(scope: TenantScope, order: u32, teller: Teller, ends: mpsc::UnboundedSender<String>) {
    let end = effects::call(&scope, order, teller).await;
    // Nobody listens any more once the worker ends.
    drop(ends.send(format!("end {order} {}\n", word(end))));
}

pub(crate) async fn work(arguments: &[String]) -> Result<(), Failed> {
    let [ledger, place, bank, board, number] = arguments else {
        return Err("not a worker's arguments".into());
    };
    let ledger = open(ledger, place).await?;
    let executor = effects::executor(Arc::clone(&ledger))?;
    let scope = executor.tenant("acme")?;
    let teller = Teller::new(bank);
    let (mut reads, mut writes) = split(TcpStream::connect(board).await?)?;
    say(&mut writes, &format!("worker {number}\n")).await?;
    let (ends, mut ended) = mpsc::unbounded_channel::<String>();
    tokio::spawn(async move {
        let mut lines = Vec::new();
        while ended.recv_many(&mut lines, 256).await > 0 {
            if say(&mut writes, &lines.concat()).await.is_err() {
                return;
            }
            lines.clear();
        }
    });
    let mut hushed = None;
    while let Some(line) = reads.next_line().await? {
        match line.split_once(' ') {
            Some(("go", order)) => {
                tokio::spawn(call(scope.clone(), order.parse()?, teller.clone(), ends.clone()));
            }
            _ if line == "hush" => {
                hushed = Some(Arc::clone(&teller.sending).write_owned().await);
                ends.send("hushed\n".to_owned())?;
            }
            _ if line == "speak" => drop(hushed.take()),
            _ => break,
        }
    }
    executor.drain(Duration::from_secs(10)).await;
    ledger.close().await;
    Ok(())
}
