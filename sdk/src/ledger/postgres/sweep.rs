//! Forgetting, on a connection that is opened for it and closed when nothing more is due.
//!
//! Rows are locked first and dealt with by later statements: what another transaction put beside a row before the lock was
//! had is then seen. Rows that somebody holds are left for the next batch.

use sqlx::{Arguments as _, Postgres, Row as _, Transaction, postgres::PgRow};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::{
    connect::{Connector, Link, Setback},
    encode::{halves, head},
    error::{Trouble, report},
    session::{Session, View, behind_offset},
    sql,
    text::escaped,
};
use crate::{
    clock::{self, Moment, Until},
    identity::EffectId,
    ledger::{
        By, Forgot, LedgerError, LedgerErrorKind, Sweep, Swept,
        ask::Answered,
        record::{AbsentReason, State},
    },
};

/// How many bytes of payloads one batch drops at the most, beyond its first effect's.
const BYTES_MAX: i64 = 8 << 20;

const COMPLETED: &str = State::Completed.as_str();
const EXPIRED: &str = AbsentReason::Expired.as_str();

/// What is asked of the sweeper.
pub(super) enum Request {
    Sweep(Sweep, Answered<Swept>),
    Forget(Forget, Answered<Forgot>),
}

pub(super) struct Forget {
    pub(super) id: EffectId,
    pub(super) by: By,
}

/// Serves requests until nobody can ask any more.
pub(super) async fn serve(connector: Connector, mut requests: mpsc::Receiver<Request>) {
    let mut sweeper = Sweeper { link: Link::new(connector, None) };
    while let Some(request) = requests.recv().await {
        // A caller that went away has no use for the answer; what it asked for is done all the same.
        let more = match request {
            Request::Sweep(batch, reply) => {
                let done = sweeper.sweep(batch).await;
                let more = done.as_ref().is_ok_and(|swept| swept.more);
                drop(reply.send(done));
                more
            }
            Request::Forget(asked, reply) => {
                drop(reply.send(sweeper.forget(&asked).await));
                false
            }
        };
        if !more && requests.is_empty() {
            sweeper.link.disconnect().await;
        }
    }
    sweeper.link.close().await;
}

struct Sweeper {
    link: Link,
}

impl Sweeper {
    /// Not tried again here: the next batch finds what this one left.
    async fn sweep(&mut self, batch: Sweep) -> Result<Swept, LedgerError> {
        let done = self.within(async |session| sweep(session, batch).await).await;
        done.map_err(|setback| self.report(&setback))
    }

    async fn forget(&mut self, asked: &Forget) -> Result<Forgot, LedgerError> {
        let patience = Until::new(Moment::now(), self.link.connector.patience);
        loop {
            let setback = match self.within(async |session| forget(session, asked).await).await {
                Ok(Found::Is(forgot)) => return Ok(forgot),
                Ok(Found::OfAnother) => {
                    let context = format!("effect {}: its row belongs to another", asked.id);
                    return Err(LedgerError::new(LedgerErrorKind::Corrupt, context));
                }
                Err(setback) => setback,
            };
            let again = matches!(setback.trouble, Trouble::Lost | Trouble::Again | Trouble::Locked);
            if !again || patience.is_past() {
                return Err(self.report(&setback));
            }
            clock::sleep(self.link.connector.patience / 64).await;
        }
    }

    async fn within<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Session) -> Result<T, Setback>,
    ) -> Result<T, Setback> {
        let limit = self.link.connector.patience;
        let session = self.link.get().await?;
        let done = clock::within(limit, work(session)).await.unwrap_or_else(|| Err(Setback::timeout()));
        if done.is_err() {
            // Amid a transaction; the server rolls it back.
            self.link.lose();
        }
        done
    }

    fn report(&self, setback: &Setback) -> LedgerError {
        report(setback.trouble.kind(), "forgetting effects in", &self.link.connector.target, &setback.cause)
    }
}

fn failed(error: sqlx::Error) -> Setback {
    Setback::of(&error)
}

async fn sweep(session: &mut Session, batch: Sweep) -> Result<Swept, Setback> {
    let at_most = i64::from(batch.at_most());
    let is_named = session.keeps_statements();
    let (statement, parameter) = match batch {
        Sweep::Outcomes { .. } => (&*sql::FORGET_DUE, BYTES_MAX),
        Sweep::Tombstones { kept_ms, .. } => (&*sql::LOCK_TOMBSTONES, kept_ms.max(0)),
    };
    let arguments = behind_offset(session.offset_ms(), |arguments| {
        arguments.add(at_most)?;
        arguments.add(parameter)
    })?;
    let mut transaction = session.begin(View::Current).await?;
    let due = sqlx::query_with(statement.as_str(), arguments).persistent(is_named);
    let due = due.fetch_all(&mut *transaction).await.map_err(failed)?;
    let mut more = due.len() >= usize::try_from(at_most).unwrap_or(usize::MAX);
    let mut heads: Vec<Uuid> = Vec::with_capacity(due.len());
    let mut digests: Vec<Vec<u8>> = Vec::new();
    for row in &due {
        match row.try_get(0).map_err(failed)? {
            Some(head) => heads.push(head),
            // Locked, and too much for this batch.
            None => more = true,
        }
        if let Some(digest) = row.try_get(1).map_err(failed)? {
            digests.push(digest);
        }
    }
    if !heads.is_empty() {
        match batch {
            Sweep::Outcomes { .. } => drop_evidence(&mut transaction, &heads, is_named).await?,
            Sweep::Tombstones { .. } => remove(&mut transaction, &heads, &digests, is_named).await?,
        }
    }
    transaction.commit().await.map_err(failed)?;
    Ok(Swept { effects: u32::try_from(heads.len()).unwrap_or(u32::MAX), more })
}

async fn drop_evidence(
    transaction: &mut Transaction<'_, Postgres>,
    heads: &[Uuid],
    is_named: bool,
) -> Result<(), Setback> {
    let dropped = sqlx::query(sql::DROP_EVIDENCE).bind(heads).persistent(is_named);
    dropped.execute(&mut **transaction).await.map_err(failed)?;
    Ok(())
}

/// What refers to the effects goes before them.
async fn remove(
    transaction: &mut Transaction<'_, Postgres>,
    heads: &[Uuid],
    digests: &[Vec<u8>],
    is_named: bool,
) -> Result<(), Setback> {
    let aliases = sqlx::query(sql::REMOVE_ALIASES).bind(digests).persistent(is_named);
    aliases.execute(&mut **transaction).await.map_err(failed)?;
    for statement in sql::REMOVE {
        let removed = sqlx::query(statement).bind(heads).persistent(is_named);
        removed.execute(&mut **transaction).await.map_err(failed)?;
    }
    Ok(())
}

enum Found {
    Is(Forgot),
    /// The row is that of another effect, or of another tenant's.
    OfAnother,
}

async fn forget(session: &mut Session, asked: &Forget) -> Result<Found, Setback> {
    let is_named = session.keeps_statements();
    let offset_ms = session.offset_ms();
    let mut transaction = session.begin(View::Current).await?;
    let row = sqlx::query(sql::LOCK_ONE.as_str()).bind(head(&asked.id)).persistent(is_named);
    let row = row.fetch_optional(&mut *transaction).await.map_err(failed)?;
    let (found, holder) = match &row {
        None => (Found::Is(Forgot::NotFound), None),
        Some(row) => judge(row, &asked.id).map_err(failed)?,
    };
    if let Some(holder) = holder {
        let arguments = behind_offset(offset_ms, |arguments| {
            arguments.add(holder)?;
            arguments.add(escaped(asked.by.who()).as_ref())?;
            arguments.add(escaped(asked.by.why()).as_ref())
        })?;
        let forgotten = sqlx::query_with(sql::FORGET_ONE.as_str(), arguments).persistent(is_named);
        forgotten.execute(&mut *transaction).await.map_err(failed)?;
        drop_evidence(&mut transaction, &[holder], is_named).await?;
    }
    transaction.commit().await.map_err(failed)?;
    Ok(found)
}

/// What the locked row says, and the head of the effect that is to be forgotten.
fn judge(row: &PgRow, id: &EffectId) -> Result<(Found, Option<Uuid>), sqlx::Error> {
    let (holder, tail): (Uuid, Vec<u8>) = (row.try_get(0)?, row.try_get(1)?);
    let (tenant, state): (String, Option<String>) = (row.try_get(2)?, row.try_get(3)?);
    let absent: Option<String> = row.try_get(4)?;
    if tail != halves(id).1 || tenant != id.tenant().as_str() {
        return Ok((Found::OfAnother, None));
    }
    Ok(match (state.as_deref(), absent.as_deref()) {
        (Some(state), Some(absent)) if state == COMPLETED && absent == EXPIRED => {
            (Found::Is(Forgot::Already), None)
        }
        (Some(state), _) if state == COMPLETED => (Found::Is(Forgot::Forgotten), Some(holder)),
        _ => (Found::Is(Forgot::Unsettled), None),
    })
}
