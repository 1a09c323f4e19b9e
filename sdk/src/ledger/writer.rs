//! The group commit: takes everything that waits when it becomes free, stores it in one go, and never waits for more.

mod intake;
mod lanes;
mod room;

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use tokio::sync::oneshot;

pub use self::room::WhenFull;
pub(crate) use self::{intake::Intake, room::Limits};
use self::{
    intake::{Line, Waiting},
    room::{Door, Room},
};
use super::{
    Change, Changed, Claim, ClaimRequest, LedgerError, LedgerErrorKind, Owner, ResolutionReply,
    ResolutionRequest,
};
use crate::identity::EffectId;

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

/// The callers' end; once all are gone the writers end.
#[derive(Clone)]
pub(crate) struct Queue {
    door: Arc<Door>,
    line: Arc<Open>,
}

/// Open for as long as there is a caller.
struct Open(Arc<Line>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

pub(crate) fn queue(limits: Limits) -> (Queue, Intake) {
    let line = Arc::<Line>::default();
    let queue = Queue { door: Door::new(limits), line: Arc::new(Open(Arc::clone(&line))) };
    (queue, Intake(line))
}

impl Queue {
    pub(crate) async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        let room = self.door.enter(request.id.tenant()).await?;
        match self.submit(Command::Claim(Box::new(request.clone())), Some(room)).await? {
            Reply::Claim(claim) => Ok(claim),
            _ => Err(closed()),
        }
    }

    pub(crate) async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        match self.submit(Command::Change(Box::new(owner.clone()), Box::new(change.clone())), None).await? {
            Reply::Change(changed) => Ok(changed),
            _ => Err(closed()),
        }
    }

    pub(crate) async fn resolve(&self, request: &ResolutionRequest) -> Result<ResolutionReply, LedgerError> {
        match self.submit(Command::Resolve(Box::new(request.clone())), None).await? {
            Reply::Resolve(reply) => Ok(reply),
            _ => Err(closed()),
        }
    }

    /// Once handed in, a command is carried out whether or not its caller still listens.
    async fn submit(&self, command: Command, room: Option<Room>) -> Result<Reply, LedgerError> {
        let (reply, answer) = oneshot::channel();
        self.line.0.push(Waiting { command, reply, _room: room })?;
        answer.await.map_err(|_| closed())?
    }
}

fn closed() -> LedgerError {
    LedgerError::new(LedgerErrorKind::Closed, "its writer has ended")
}

/// Serves the queue until every [`Queue`] is dropped.
pub(crate) async fn serve(intake: &Intake, io: &mut dyn LedgerIo) {
    let mut done = Done::default();
    loop {
        // Where more is waiting, the database gets it first, and the last batch is answered while it works.
        let batch = match intake.batch_at_once() {
            Some(batch) => batch,
            None => {
                std::mem::take(&mut done).answer();
                match intake.next_batch().await {
                    Some(batch) => batch,
                    None => return,
                }
            }
        };
        // A claim's room is free again.
        let (commands, replies): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|Waiting { command, reply, _room }| (command, reply)).unzip();
        let last = std::mem::take(&mut done);
        let (answers, ()) = tokio::join!(io.apply(&commands), async { last.answer() });
        debug_assert_eq!(answers.len(), replies.len(), "a batch is answered whole");
        done = Done { commands, replies, answers };
    }
}

/// A batch that is stored and not answered yet.
#[derive(Default)]
struct Done {
    commands: Vec<Command>,
    replies: Vec<oneshot::Sender<Result<Reply, LedgerError>>>,
    answers: Vec<Result<Reply, LedgerError>>,
}

impl Done {
    fn answer(self) {
        for (reply, answer) in self.replies.into_iter().zip(self.answers) {
            // A caller that went away has no use for the answer; what was stored stands.
            drop(reply.send(answer));
        }
        drop(self.commands);
    }
}

#[cfg(test)]
mod tests;
