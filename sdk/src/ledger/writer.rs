//! The group commit: takes everything that waits when it becomes free, stores it in one go, and never waits for more.

use std::collections::HashSet;

use async_trait::async_trait;
use tokio::sync::{Mutex, mpsc, oneshot};

use super::{
    Change, Changed, Claim, ClaimRequest, LedgerError, LedgerErrorKind, Owner, ResolutionReply,
    ResolutionRequest,
};
use crate::identity::EffectId;

/// How many commands one commit carries at the most.
const BATCH_MAX: usize = 256;

/// How many commands may wait; a caller beyond that waits for room.
const QUEUE_MAX: usize = 4096;

/// Something to judge and store.
#[derive(Debug, Clone)]
pub(crate) enum Command {
    Claim(Box<ClaimRequest>),
    Change(Box<Owner>, Box<Change>),
    Resolve(Box<ResolutionRequest>),
}

impl Command {
    pub(crate) fn id(&self) -> &EffectId {
        match self {
            Self::Claim(request) => &request.id,
            Self::Change(owner, _) => &owner.id,
            Self::Resolve(request) => &request.id,
        }
    }
}

/// The answer to a command, of the same kind.
#[derive(Debug)]
pub(crate) enum Reply {
    Claim(Claim),
    Change(Changed),
    Resolve(ResolutionReply),
}

/// What a backend gives the writer: one batch in, one answer for each command out, durable when it returns.
///
/// No two commands of a batch are for the same effect. A batch that the database refuses for the data of one command
/// must be tried again item by item, so that only the offender fails.
#[async_trait]
pub(crate) trait LedgerIo: Send {
    async fn apply(&mut self, batch: &[Command]) -> Vec<Result<Reply, LedgerError>>;
}

struct Waiting {
    command: Command,
    reply: oneshot::Sender<Result<Reply, LedgerError>>,
}

/// The callers' end.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    sender: mpsc::Sender<Waiting>,
}

/// The writers' end: several writers may share one.
pub(crate) struct Intake {
    inner: Mutex<IntakeInner>,
}

struct IntakeInner {
    receiver: mpsc::Receiver<Waiting>,
    /// What would have been the second command for one effect in a batch, in order of arrival.
    deferred: Vec<Waiting>,
}

pub(crate) fn queue() -> (Queue, Intake) {
    let (sender, receiver) = mpsc::channel(QUEUE_MAX);
    (Queue { sender }, Intake { inner: Mutex::new(IntakeInner { receiver, deferred: Vec::new() }) })
}

impl Queue {
    pub(crate) async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        match self.submit(Command::Claim(Box::new(request.clone()))).await? {
            Reply::Claim(claim) => Ok(claim),
            _ => Err(closed()),
        }
    }

    pub(crate) async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        match self.submit(Command::Change(Box::new(owner.clone()), Box::new(change.clone()))).await? {
            Reply::Change(changed) => Ok(changed),
            _ => Err(closed()),
        }
    }

    pub(crate) async fn resolve(&self, request: &ResolutionRequest) -> Result<ResolutionReply, LedgerError> {
        match self.submit(Command::Resolve(Box::new(request.clone()))).await? {
            Reply::Resolve(reply) => Ok(reply),
            _ => Err(closed()),
        }
    }

    /// Once handed in, a command is carried out whether or not its caller still listens.
    async fn submit(&self, command: Command) -> Result<Reply, LedgerError> {
        let (reply, answer) = oneshot::channel();
        self.sender.send(Waiting { command, reply }).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }
}

fn closed() -> LedgerError {
    LedgerError::new(LedgerErrorKind::Closed, "its writer has ended")
}

impl Intake {
    /// Waits for work and takes all there is, at most one command for each effect; `None` when all callers are gone.
    async fn next_batch(&self) -> Option<Vec<Waiting>> {
        let mut inner = self.inner.lock().await;
        let mut taken = std::mem::take(&mut inner.deferred);
        if taken.is_empty() {
            let received = inner.receiver.recv_many(&mut taken, BATCH_MAX).await;
            if received == 0 {
                return None;
            }
        }
        let mut sorted = Sorted::default();
        taken.into_iter().for_each(|waiting| sorted.add(waiting));
        // Many callers of one effect must not keep the others out of the batch.
        while sorted.has_room() {
            match inner.receiver.try_recv() {
                Ok(waiting) => sorted.add(waiting),
                Err(_) => break,
            }
        }
        inner.deferred = sorted.deferred;
        Some(sorted.batch)
    }
}

/// What goes into this batch, and what waits for the next.
#[derive(Default)]
struct Sorted {
    batch: Vec<Waiting>,
    deferred: Vec<Waiting>,
    seen: HashSet<EffectId>,
}

impl Sorted {
    fn has_room(&self) -> bool {
        self.batch.len() < BATCH_MAX && self.deferred.len() < QUEUE_MAX
    }

    fn add(&mut self, waiting: Waiting) {
        let fits = self.batch.len() < BATCH_MAX && self.seen.insert(waiting.command.id().clone());
        if fits { self.batch.push(waiting) } else { self.deferred.push(waiting) }
    }
}

/// Serves the queue until every [`Queue`] is dropped.
pub(crate) async fn serve(intake: &Intake, io: &mut dyn LedgerIo) {
    while let Some(batch) = intake.next_batch().await {
        let (commands, replies): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|waiting| (waiting.command, waiting.reply)).unzip();
        let answers = io.apply(&commands).await;
        debug_assert_eq!(answers.len(), replies.len(), "a batch is answered whole");
        for (reply, answer) in replies.into_iter().zip(answers) {
            // A caller that went away has no use for the answer; what was stored stands.
            drop(reply.send(answer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{identity::Tenant, ledger::record::AttemptToken};

    fn waiting(effect: u8, number: u32) -> Waiting {
        let tenant = Tenant::parse("acme").expect("a valid tenant");
        let id = EffectId::new(tenant, [effect; 32]);
        let owner = Owner { id, fence: 1, token: AttemptToken([1; 16]), attempt: number, seen: None };
        let (reply, _) = oneshot::channel();
        Waiting { command: Command::Change(Box::new(owner), Box::new(Change::Label)), reply }
    }

    fn described(batch: &[Waiting]) -> Vec<(u8, u32)> {
        let of = |waiting: &Waiting| match &waiting.command {
            Command::Change(owner, _) => (owner.id.digest()[0], owner.attempt),
            _ => (0, 0),
        };
        batch.iter().map(of).collect()
    }

    #[tokio::test]
    async fn many_commands_for_one_effect_keep_nobody_out_and_keep_their_order() {
        let (queue, intake) = queue();
        for number in 1..=600 {
            queue.sender.send(waiting(1, number)).await.expect("an open queue");
        }
        for effect in 2..=9 {
            queue.sender.send(waiting(effect, 1)).await.expect("an open queue");
        }
        let first = intake.next_batch().await.expect("a batch");
        let others = (2..=9).map(|effect| (effect, 1));
        assert_eq!(described(&first), [(1, 1)].into_iter().chain(others).collect::<Vec<_>>());
        for number in 2..=600 {
            let next = intake.next_batch().await.expect("a batch");
            assert_eq!(described(&next), [(1, number)]);
        }
    }
}
