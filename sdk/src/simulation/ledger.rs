//! A node's ledger: the production queue and group commit, over a connection to the database that has faults.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::sync::oneshot;

use super::{
    chaos,
    scheduler::{NodeId, WORLD},
    store::Store,
    world::World,
};
use crate::{
    clock,
    identity::EffectId,
    ledger::{
        Change, Changed, Claim, ClaimRequest, EffectHistory, Ledger, LedgerError, LedgerErrorKind, Owner,
        Payload, ResolutionReply, ResolutionRequest, UnsettledPage, UnsettledQuery,
        writer::{self, Command, LedgerIo, Queue, Reply},
    },
};

pub(super) struct NodeLedger {
    world: Arc<World>,
    queue: Queue,
    announces: bool,
}

impl fmt::Debug for NodeLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeLedger").finish_non_exhaustive()
    }
}

fn unavailable() -> LedgerError {
    LedgerError::new(LedgerErrorKind::Unavailable, "a simulated fault")
}

impl NodeLedger {
    /// Opens the ledger on a node; its writer is one of the node's tasks.
    pub(super) fn open(world: &Arc<World>, node: NodeId) -> Self {
        let (queue, intake) = writer::queue(writer::Limits::default());
        let mut io = Io { world: world.clone() };
        world.scheduler.spawn_on(node, async move { writer::serve(&intake, &mut io).await });
        Self { world: world.clone(), queue, announces: world.plan.announces }
    }

    /// Reads, which takes its time and may fail.
    async fn asked<T>(&self, read: impl FnOnce(&Store) -> T) -> Result<T, LedgerError> {
        clock::sleep(self.world.ledger_latency()).await;
        if self.world.fault(self.world.plan.ledger_faults) {
            return Err(unavailable());
        }
        let answer = read(&self.world.store);
        clock::sleep(self.world.ledger_latency()).await;
        Ok(answer)
    }
}

#[async_trait]
impl Ledger for NodeLedger {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        self.queue.claim(request).await
    }

    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        self.queue.change(owner, change).await
    }

    async fn read(&self, id: &EffectId) -> Result<Option<EffectHistory>, LedgerError> {
        self.asked(|store| store.read(id)).await
    }

    async fn resolve(&self, request: &ResolutionRequest) -> Result<ResolutionReply, LedgerError> {
        self.queue.resolve(request).await
    }

    async fn unsettled(&self, query: &UnsettledQuery) -> Result<UnsettledPage, LedgerError> {
        self.asked(|store| store.unsettled(query)).await
    }

    async fn input(&self, id: &EffectId) -> Result<Option<Payload>, LedgerError> {
        self.asked(|store| store.input(id)).await
    }

    async fn changed(&self, _: &EffectId) {
        if !self.announces {
            return std::future::pending().await;
        }
        let mut changes = self.world.store.changes();
        drop(changes.changed().await);
        clock::sleep(self.world.ledger_latency()).await;
    }

    fn announces(&self) -> bool {
        self.announces
    }

    fn name(&self) -> &'static str {
        "simulated"
    }

    async fn close(&self) {}
}

/// What becomes of one commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// BUSY, or a serialization failure: nothing was stored.
    Refused,
    /// The connection is lost before the commit.
    LostBefore,
    /// It is stored, and the acknowledgement is lost.
    LostAfter,
    /// The connection is lost, and it is stored some time later all the same.
    StoredLater,
}

struct Io {
    world: Arc<World>,
}

#[async_trait]
impl LedgerIo for Io {
    async fn apply(&mut self, batch: &[Command]) -> Vec<Result<Reply, LedgerError>> {
        let world = &self.world;
        clock::sleep(world.ledger_latency()).await;
        let fault = self.fault();
        // Some databases let their client judge first; some judge where they store.
        let early = world.plan.judges_early;
        let judged = early.then(|| judge(&world.store, batch, true));
        clock::sleep(world.ledger_latency()).await;
        let (told, told_to) = oneshot::channel();
        let (on, commands) = (self.world.clone(), batch.to_vec());
        let latency = match fault {
            Fault::StoredLater => {
                Duration::from_millis(world.scheduler.random(|random| random.below(400)).unsigned_abs())
            }
            _ => world.ledger_latency(),
        };
        if !matches!(fault, Fault::Refused | Fault::LostBefore) {
            // From here on it is the database's, whatever becomes of the node.
            self.world.scheduler.spawn_on(WORLD, async move {
                clock::sleep(latency).await;
                let judged = judged.unwrap_or_else(|| judge(&on.store, &commands, true));
                drop(told.send(on.store.commit(&commands, judged)));
            });
        }
        chaos::strike_here(&self.world);
        let answer = match fault {
            Fault::None => told_to.await.ok(),
            Fault::LostAfter => {
                drop(told_to.await);
                None
            }
            _ => None,
        };
        clock::sleep(world.ledger_latency()).await;
        match answer {
            Some(replies) => replies.into_iter().map(Ok).collect(),
            None => batch.iter().map(|_| Err(unavailable())).collect(),
        }
    }
}

impl Io {
    fn fault(&self) -> Fault {
        if !self.world.fault(self.world.plan.ledger_faults) {
            return Fault::None;
        }
        let faults =
            [Fault::Refused, Fault::LostBefore, Fault::LostAfter, Fault::LostAfter, Fault::StoredLater];
        self.world.scheduler.random(|random| random.pick(&faults))
    }
}

fn judge(store: &Store, batch: &[Command], trust_owners: bool) -> Vec<super::store::Judged> {
    batch.iter().map(|command| store.judge(command, trust_owners)).collect()
}
