//! Serves request records: what writes nothing is answered from a read, the rest of a batch is one commit.

use std::sync::Arc;

use sqlx::{Connection, SqliteConnection};
use tokio::sync::mpsc;

use super::{Answered, Command, row};
use crate::{
    clock::{Moment, Until},
    ledger::{
        LedgerError,
        requests::{
            RecordKey, RequestRecord,
            judge::{self, Judgement},
        },
        sqlite::{checkpoint::Progress, error::Failure, open, settings::Settings},
    },
};

pub(in crate::ledger::sqlite) type Intake = mpsc::Receiver<Command>;

/// How many commands go into one commit.
const BATCH_MAX: usize = 128;

/// An answer, with whom it is for.
enum Reply {
    Begun(Result<super::Begun, LedgerError>),
    Changed(Result<super::Changed, LedgerError>),
    Read(row::Read),
    Swept(u64),
}

/// Answers until every caller's end is dropped.
pub(in crate::ledger::sqlite) async fn serve(
    settings: Arc<Settings>,
    progress: Arc<Progress>,
    mut intake: Intake,
) {
    let mut conn: Option<SqliteConnection> = None;
    let mut batch = Vec::new();
    while intake.recv_many(&mut batch, BATCH_MAX).await > 0 {
        match patiently(&settings, &progress, &mut conn, &batch).await {
            Ok(replies) => batch.drain(..).zip(replies).for_each(|(command, reply)| command.answer(reply)),
            // One of them has data that is refused; the others go through.
            Err(failure) if failure.data && batch.len() > 1 => {
                for command in batch.drain(..) {
                    let alone =
                        patiently(&settings, &progress, &mut conn, std::slice::from_ref(&command)).await;
                    match alone.map(|mut replies| replies.pop()) {
                        Ok(Some(reply)) => command.answer(reply),
                        Ok(None) => {}
                        Err(failure) => command.refuse(failure.error()),
                    }
                }
            }
            Err(failure) => batch.drain(..).for_each(|command| command.refuse(failure.error())),
        }
    }
    if let Some(conn) = conn {
        drop(conn.close().await);
    }
}

/// Goes on for as long as others are in the way.
async fn patiently(
    settings: &Settings,
    progress: &Progress,
    conn: &mut Option<SqliteConnection>,
    batch: &[Command],
) -> Result<Vec<Reply>, Failure> {
    let patience = Until::new(Moment::now(), settings.busy_patience);
    loop {
        match once(settings, progress, conn, batch).await {
            Err(failure) if failure.busy && !patience.is_past() => {}
            result => return result,
        }
    }
}

async fn once(
    settings: &Settings,
    progress: &Progress,
    conn: &mut Option<SqliteConnection>,
    batch: &[Command],
) -> Result<Vec<Reply>, Failure> {
    let mut open = match conn.take() {
        Some(conn) => conn,
        None => open::reopen(settings).await?,
    };
    match run(settings, progress, &mut open, batch).await {
        Ok(replies) => {
            *conn = Some(open);
            Ok(replies)
        }
        Err(error) => {
            let failure = Failure::of("storing a request in", &settings.path, &error);
            // What state the connection is in is not known.
            drop(open.close_hard().await);
            Err(failure)
        }
    }
}

async fn run(
    settings: &Settings,
    progress: &Progress,
    conn: &mut SqliteConnection,
    batch: &[Command],
) -> sqlx::Result<Vec<Reply>> {
    let mut replies = Vec::with_capacity(batch.len());
    let mut writes = false;
    for command in batch {
        let reply = command.without_writing(settings, conn).await?;
        writes |= reply.is_none();
        replies.push(reply);
    }
    if !writes {
        return Ok(replies.into_iter().flatten().collect());
    }
    let _turn = progress.turn().await;
    sqlx::query("BEGIN IMMEDIATE").execute(&mut *conn).await?;
    let mut all = Vec::with_capacity(batch.len());
    for (command, reply) in batch.iter().zip(replies) {
        all.push(match reply {
            Some(reply) => reply,
            None => command.apply(settings, conn).await?,
        });
    }
    sqlx::query("COMMIT").execute(&mut *conn).await?;
    progress.wrote_bytes(batch.iter().map(Command::bytes).sum());
    Ok(all)
}

impl Command {
    /// The answer, where nothing has to be written for it.
    async fn without_writing(
        &self,
        settings: &Settings,
        conn: &mut SqliteConnection,
    ) -> sqlx::Result<Option<Reply>> {
        fn answer<R>(judgement: Judgement<R>, of: fn(Result<R, LedgerError>) -> Reply) -> Option<Reply> {
            judgement.write.is_none().then(|| of(Ok(judgement.reply)))
        }
        let Some(key) = self.key() else { return Ok(None) };
        let held = match row::read(conn, key.digest()).await? {
            Ok(held) => held,
            Err(error) => return Ok(Some(self.failed(error))),
        };
        let now = settings.now();
        Ok(match self {
            Self::Begin(request, _) => answer(judge::begin(held.as_ref(), request, now), Reply::Begun),
            Self::Change(owner, change, _) => {
                answer(judge::change(held.as_ref(), owner, change, now), Reply::Changed)
            }
            Self::Read(..) => Some(Reply::Read(Ok(held))),
            Self::Sweep(..) => None,
        })
    }

    /// Judges under the write lock, so that what is judged is what is stored.
    async fn apply(&self, settings: &Settings, conn: &mut SqliteConnection) -> sqlx::Result<Reply> {
        let now = settings.now();
        match self {
            Self::Sweep(limit, _) => Ok(Reply::Swept(row::sweep(conn, now, *limit).await?)),
            Self::Begin(request, _) => {
                let of = |held: Option<&RequestRecord>| judge::begin(held, request, now);
                Ok(Reply::Begun(judge_and_store(conn, &request.key, of).await?))
            }
            Self::Change(owner, change, _) => {
                let of = |held: Option<&RequestRecord>| judge::change(held, owner, change, now);
                Ok(Reply::Changed(judge_and_store(conn, &owner.key, of).await?))
            }
            Self::Read(key, _) => Ok(Reply::Read(row::read(conn, key.digest()).await?)),
        }
    }

    fn key(&self) -> Option<&RecordKey> {
        match self {
            Self::Begin(request, _) => Some(&request.key),
            Self::Change(owner, ..) => Some(&owner.key),
            Self::Read(key, _) => Some(key),
            Self::Sweep(..) => None,
        }
    }

    fn failed(&self, error: LedgerError) -> Reply {
        match self {
            Self::Begin(..) => Reply::Begun(Err(error)),
            Self::Change(..) => Reply::Changed(Err(error)),
            _ => Reply::Read(Err(error)),
        }
    }

    /// About how much a command adds to the log.
    fn bytes(&self) -> u64 {
        const PAGE: u64 = 4096;
        match self {
            Self::Change(_, super::Change::Complete { answer: Ok(response), .. }, _) => {
                PAGE + response.body.len() as u64
            }
            _ => PAGE,
        }
    }

    /// A caller that went away has no use for the answer.
    fn answer(self, reply: Reply) {
        fn send<T>(to: Answered<T>, value: Result<T, LedgerError>) {
            drop(to.send(value));
        }
        match (self, reply) {
            (Self::Begin(_, to), Reply::Begun(value)) => send(to, value),
            (Self::Change(_, _, to), Reply::Changed(value)) => send(to, value),
            (Self::Read(_, to), Reply::Read(value)) => send(to, value),
            (Self::Sweep(_, to), Reply::Swept(count)) => send(to, Ok(count)),
            // Each command makes its own kind of reply; dropping the sender would say that the store is closed.
            _ => {}
        }
    }

    fn refuse(self, error: LedgerError) {
        match self {
            Self::Begin(_, to) => drop(to.send(Err(error))),
            Self::Change(_, _, to) => drop(to.send(Err(error))),
            Self::Read(_, to) => drop(to.send(Err(error))),
            Self::Sweep(_, to) => drop(to.send(Err(error))),
        }
    }
}

/// Reads, lets judge and stores, in the connection's open transaction.
pub(super) async fn judge_and_store<R>(
    conn: &mut SqliteConnection,
    key: &RecordKey,
    judge: impl Fn(Option<&RequestRecord>) -> Judgement<R>,
) -> sqlx::Result<Result<R, LedgerError>> {
    let held = match row::read(conn, key.digest()).await? {
        Ok(held) => held,
        Err(error) => return Ok(Err(error)),
    };
    let judgement = judge(held.as_ref());
    if let Some(write) = &judgement.write
        && !row::store(conn, held.as_ref(), write).await?
    {
        return Err(sqlx::Error::Protocol("a request's row changed under the write lock".to_owned()));
    }
    Ok(Ok(judgement.reply))
}
