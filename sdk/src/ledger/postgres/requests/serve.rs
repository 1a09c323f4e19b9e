//! Serves request records: each command reads, lets judge, and stores by compare-and-set until that holds.

use std::sync::Arc;

use sqlx::{
    Arguments as _, AssertSqlSafe, PgConnection, Row as _,
    error::BoxDynError,
    postgres::{PgArguments, PgRow},
};
use tokio::sync::Mutex;

use super::{
    Command, Intake, row,
    sql::{PLAIN, Statements},
};
use crate::{
    clock::{self, Moment, Until},
    ledger::{
        LedgerError, LedgerErrorKind,
        postgres::{
            connect::{Connector, Link, Setback},
            error::{Trouble, report},
            session::{Session, behind_offset},
        },
        record::LedgerTime,
        requests::{
            Begin, Begun, Change, Changed, Owner, RecordKey, RequestRecord,
            judge::{self, Judgement, Write},
        },
    },
};

/// How often a command may lose to others in a row before they are let go first.
const LOST_MAX: u32 = 32;

/// Answers until every caller's end is dropped; one of several that share an intake.
pub(in crate::ledger::postgres) async fn serve(connector: Connector, intake: Arc<Mutex<Intake>>) {
    let mut link = Link::new(connector, None);
    loop {
        let command = intake.lock().await.recv().await;
        let Some(command) = command else { break };
        command.answer(&mut link).await;
    }
    link.close().await;
}

/// What is judged.
#[derive(Clone, Copy)]
pub(super) enum Ask<'a> {
    Begin(&'a Begin),
    Change(&'a Owner, &'a Change),
}

pub(super) enum Reply {
    Begun(Begun),
    Changed(Changed),
    Read(Option<RequestRecord>),
    Swept(u64),
}

impl Ask<'_> {
    fn key(&self) -> &RecordKey {
        match self {
            Self::Begin(request) => &request.key,
            Self::Change(owner, _) => &owner.key,
        }
    }

    fn judge(&self, held: Option<&RequestRecord>, now: LedgerTime) -> (Reply, Option<Write>) {
        match self {
            Self::Begin(request) => {
                let Judgement { reply, write } = judge::begin(held, request, now);
                (Reply::Begun(reply), write)
            }
            Self::Change(owner, change) => {
                let Judgement { reply, write } = judge::change(held, owner, change, now);
                (Reply::Changed(reply), write)
            }
        }
    }
}

impl Command {
    /// A caller that went away has no use for the answer.
    async fn answer(self, link: &mut Link) {
        let answer = patiently(link, &self).await;
        match (self, answer) {
            (Self::Begin(_, to), Ok(Reply::Begun(begun))) => drop(to.send(Ok(begun))),
            (Self::Begin(_, to), Err(error)) => drop(to.send(Err(error))),
            (Self::Change(_, _, to), Ok(Reply::Changed(changed))) => drop(to.send(Ok(changed))),
            (Self::Change(_, _, to), Err(error)) => drop(to.send(Err(error))),
            (Self::Read(_, to), Ok(Reply::Read(held))) => drop(to.send(Ok(held))),
            (Self::Read(_, to), Err(error)) => drop(to.send(Err(error))),
            (Self::Sweep(_, to), Ok(Reply::Swept(count))) => drop(to.send(Ok(count))),
            (Self::Sweep(_, to), Err(error)) => drop(to.send(Err(error))),
            // Each command makes its own kind of reply.
            _ => {}
        }
    }

    async fn once(&self, link: &mut Link) -> Result<Result<Reply, LedgerError>, Setback> {
        let mut over = Over::Session(link.get().await?);
        match self {
            Self::Begin(request, _) => judge_and_store(&mut over, Ask::Begin(request)).await,
            Self::Change(owner, change, _) => judge_and_store(&mut over, Ask::Change(owner, change)).await,
            Self::Read(key, _) => Ok(read(&mut over, key).await?.map(|(_, held)| Reply::Read(held))),
            Self::Sweep(limit, _) => sweep(&mut over, *limit).await,
        }
    }
}

/// Goes on for as long as the server or others are in the way.
async fn patiently(link: &mut Link, command: &Command) -> Result<Reply, LedgerError> {
    let patience = Until::new(Moment::now(), link.connector.patience);
    loop {
        let setback = match clock::within(patience.remaining(), command.once(link)).await {
            Some(Ok(answer)) => return answer,
            Some(Err(setback)) => setback,
            None => Setback::timeout(),
        };
        if !matches!(setback.trouble, Trouble::Data | Trouble::Taken) {
            link.lose();
        }
        let is_passing = matches!(setback.trouble, Trouble::Lost | Trouble::Again | Trouble::Locked);
        if !is_passing || patience.is_past() {
            let doing = "storing a request in";
            return Err(report(setback.trouble.kind(), doing, &link.connector.target, &setback.cause));
        }
        clock::sleep(link.connector.patience / 64).await;
    }
}

/// What statements go over.
pub(super) enum Over<'a> {
    /// A connection of the ledger's: each is a transaction.
    Session(&'a mut Session),
    /// An application's own transaction.
    Transaction { connection: &'a mut PgConnection, statements: Statements, offset_ms: i64 },
}

impl Over<'_> {
    async fn fetch(
        &mut self,
        which: fn(&Statements) -> &String,
        add: impl FnOnce(&mut PgArguments) -> Result<(), BoxDynError>,
    ) -> Result<Vec<PgRow>, Setback> {
        match self {
            Self::Session(session) => session.fetch(which(&PLAIN), add).await,
            Self::Transaction { connection, statements, offset_ms } => {
                let arguments = behind_offset(*offset_ms, add)?;
                // The statements are the ledger's own text. Unnamed: nothing stays in a session that is not the ledger's.
                let query =
                    sqlx::query_with(AssertSqlSafe(which(statements).clone()), arguments).persistent(false);
                query.fetch_all(&mut **connection).await.map_err(|error| Setback::of(&error))
            }
        }
    }
}

type Held = (LedgerTime, Option<RequestRecord>);

async fn read(over: &mut Over<'_>, key: &RecordKey) -> Result<Result<Held, LedgerError>, Setback> {
    let rows = over.fetch(|all| &all.read, |arguments| arguments.add(&key.digest()[..])).await?;
    let gone = || LedgerError::new(LedgerErrorKind::Corrupt, "a read of one request gave no row");
    Ok(rows.first().ok_or_else(gone).and_then(row::read))
}

pub(super) async fn judge_and_store(
    over: &mut Over<'_>,
    ask: Ask<'_>,
) -> Result<Result<Reply, LedgerError>, Setback> {
    for _ in 0..LOST_MAX {
        let (now, held) = match read(over, ask.key()).await? {
            Ok(held) => held,
            Err(error) => return Ok(Err(error)),
        };
        let (reply, write) = ask.judge(held.as_ref(), now);
        let Some(write) = write else { return Ok(Ok(reply)) };
        if store(over, held.as_ref(), &write).await? {
            return Ok(Ok(reply));
        }
    }
    let why = "a request's row changed again and again; try again later";
    Ok(Err(LedgerError::new(LedgerErrorKind::Unavailable, why)))
}

/// `false` where the row is no longer the judged one.
async fn store(over: &mut Over<'_>, seen: Option<&RequestRecord>, write: &Write) -> Result<bool, Setback> {
    let rows = match (write, seen) {
        (Write::Put(record), None) => {
            let add = |arguments: &mut PgArguments| {
                row::add_set(arguments, record)?;
                row::add_fixed(arguments, &record.key)
            };
            over.fetch(|all| &all.insert, add).await?
        }
        (Write::Put(record), Some(seen)) => {
            let add = |arguments: &mut PgArguments| {
                row::add_set(arguments, record)?;
                row::add_seen(arguments, seen)
            };
            over.fetch(|all| &all.update, add).await?
        }
        (Write::Drop, Some(seen)) => {
            over.fetch(|all| &all.delete, |arguments| row::add_seen(arguments, seen)).await?
        }
        (Write::Drop, None) => return Ok(true),
    };
    Ok(!rows.is_empty())
}

async fn sweep(over: &mut Over<'_>, limit: u32) -> Result<Result<Reply, LedgerError>, Setback> {
    let rows = over.fetch(|all| &all.sweep, |arguments| arguments.add(i64::from(limit))).await?;
    let count: i64 = match rows.first() {
        Some(row) => row.try_get(0).map_err(|error| Setback::of(&error))?,
        None => 0,
    };
    Ok(Ok(Reply::Swept(u64::try_from(count).unwrap_or(0))))
}
