//! The group commit: callers put in a command and wait; a writer takes all that wait, commits once, and answers.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::{Mutex, mpsc, oneshot};

use super::{Claim, Settle, digest, tables::Table};
use crate::contender::{Contender, Provider};

/// How many commands one commit carries at the most.
pub(crate) const BATCH_MAX: usize = 256;

pub(crate) enum Command {
    Claim(Claim, oneshot::Sender<bool>),
    Settle(Settle, oneshot::Sender<bool>),
    Read([u8; 32], oneshot::Sender<Option<Vec<u8>>>),
}

pub(crate) type Intake = Mutex<mpsc::Receiver<Command>>;

/// The callers' end.
pub(crate) struct Group {
    sender: mpsc::Sender<Command>,
    provider: Arc<Provider>,
    table: Table,
}

/// A batch, by kind.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) claims: Vec<Claim>,
    pub(crate) claimants: Vec<oneshot::Sender<bool>>,
    pub(crate) settles: Vec<Settle>,
    pub(crate) settlers: Vec<oneshot::Sender<bool>>,
    pub(crate) reads: Vec<[u8; 32]>,
    pub(crate) readers: Vec<oneshot::Sender<Option<Vec<u8>>>>,
}

pub(crate) fn queue(table: Table, provider: &Arc<Provider>) -> (Group, Intake) {
    let (sender, receiver) = mpsc::channel(4096);
    (Group { sender, provider: Arc::clone(provider), table }, Mutex::new(receiver))
}

/// Waits for the first command and takes what else is there.
pub(crate) async fn next(intake: &Intake) -> Option<Batch> {
    let mut taken = Vec::with_capacity(BATCH_MAX);
    if intake.lock().await.recv_many(&mut taken, BATCH_MAX).await == 0 {
        return None;
    }
    let mut batch = Batch::default();
    for command in taken {
        match command {
            Command::Claim(claim, reply) => {
                batch.claims.push(claim);
                batch.claimants.push(reply);
            }
            Command::Settle(settle, reply) => {
                batch.settles.push(settle);
                batch.settlers.push(reply);
            }
            Command::Read(digest, reply) => {
                batch.reads.push(digest);
                batch.readers.push(reply);
            }
        }
    }
    Some(batch)
}

impl Group {
    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> T {
        let (reply, answer) = oneshot::channel();
        drop(self.sender.send(command(reply)).await);
        answer.await.expect("an answer")
    }
}

#[async_trait]
impl Contender for Group {
    async fn perform(&self, key: u64) {
        let claim = Claim::of(key);
        assert!(self.ask(|reply| Command::Claim(claim.clone(), reply)).await, "nobody else has the claim");
        self.provider.perform();
        let settle = Settle::of(&claim, key);
        assert!(self.ask(|reply| Command::Settle(settle, reply)).await, "the claim is the caller's");
    }

    async fn replay(&self, key: u64) {
        let payload = self.ask(|reply| Command::Read(digest(key), reply)).await;
        assert_eq!(payload.as_deref(), Some(key.to_string().as_bytes()), "the outcome is stored");
    }

    fn count(&self) -> &'static str {
        self.table.count()
    }
}
