//! Reads, on a connection that never writes.

use std::sync::Arc;

use sqlx::{Connection, SqliteConnection};
use tokio::sync::mpsc;

use super::{
    columns::{ATTEMPT, effect_columns},
    error::Failure,
    list,
    row::{self, Columns, unreadable},
    settings::Settings,
    unsettled,
};
use crate::{
    clock::{Moment, Until},
    identity::{EffectId, RunId},
    ledger::{
        EffectHistory, LedgerError, LedgerErrorKind, Payload, RunPage, RunRow, UnsettledPage, UnsettledQuery,
        ask::{Answered, ask},
    },
};

/// How many reads may wait; a caller beyond that waits for room.
const READS_MAX: usize = 1024;

type Answer<T> = Result<T, LedgerError>;

/// What is asked, and where the answer goes.
#[derive(Debug)]
pub(super) enum Question {
    History(EffectId, Answered<Option<EffectHistory>>),
    Unsettled(UnsettledQuery, Answered<UnsettledPage>),
    Input(EffectId, Answered<Option<Payload>>),
    Run(RunId, RunPage, Answered<Vec<RunRow>>),
}

/// The callers' end.
#[derive(Debug, Clone)]
pub(super) struct Reads(mpsc::Sender<Question>);

/// The reader's end.
pub(super) type Asked = mpsc::Receiver<Question>;

pub(super) fn queue() -> (Reads, Asked) {
    let (sender, receiver) = mpsc::channel(READS_MAX);
    (Reads(sender), receiver)
}

impl Reads {
    pub(super) async fn ask<T>(&self, question: impl FnOnce(Answered<T>) -> Question) -> Answer<T> {
        let closed = || LedgerError::new(LedgerErrorKind::Closed, "its reader has ended");
        ask(self.0.clone(), question, closed).await
    }
}

/// Answers reads until every caller's end is dropped. A caller that goes away leaves no transaction open, and has no use
/// for the answer.
pub(super) async fn serve(settings: Arc<Settings>, mut asked: Asked) {
    let (statement, pages) = (Statement::new(), unsettled::Statements::new());
    let mut reader = Reader { settings: &settings, conn: None };
    while let Some(question) = asked.recv().await {
        // A caller that went away has no use for the answer.
        match question {
            Question::History(id, reply) => {
                let answer = reader.patiently(async |conn| history(conn, &statement, &id).await).await;
                drop(reply.send(answer));
            }
            Question::Unsettled(query, reply) => {
                let ask = async |conn: &mut _| unsettled::page(conn, &pages, &query, settings.now()).await;
                drop(reply.send(reader.patiently(ask).await));
            }
            Question::Input(id, reply) => {
                let answer = reader.patiently(async |conn| unsettled::input(conn, &id).await).await;
                drop(reply.send(answer));
            }
            Question::Run(run, page, reply) => {
                let answer = reader.patiently(async |conn| list::of_run(conn, &run, &page).await).await;
                drop(reply.send(answer));
            }
        }
    }
    if let Some(conn) = reader.conn {
        drop(conn.close().await);
    }
}

struct Reader<'a> {
    settings: &'a Settings,
    conn: Option<SqliteConnection>,
}

impl Reader<'_> {
    async fn patiently<T>(
        &mut self,
        mut ask: impl AsyncFnMut(&mut SqliteConnection) -> sqlx::Result<Answer<T>>,
    ) -> Answer<T> {
        let patience = Until::new(Moment::now(), self.settings.busy_patience);
        loop {
            let asked = match self.connected().await {
                Ok(conn) => ask(conn).await,
                Err(error) => Err(error),
            };
            let error = match asked {
                Ok(answer) => return answer,
                Err(error) => error,
            };
            self.conn = None;
            let failure = Failure::of("reading", &self.settings.path, &error);
            if !failure.busy || patience.is_past() {
                return Err(failure.error());
            }
        }
    }

    async fn connected(&mut self) -> sqlx::Result<&mut SqliteConnection> {
        Ok(match &mut self.conn {
            Some(conn) => conn,
            conn => conn.insert(self.settings.connect_read_only().await?),
        })
    }
}

/// The texts of the reads.
struct Statement {
    effect: Arc<str>,
    attempts: Arc<str>,
    evidence: &'static str,
    audit: &'static str,
}

impl Statement {
    fn new() -> Self {
        let columns = effect_columns("");
        Self {
            effect: format!(
                "SELECT {columns} FROM effectual_effects
                 WHERE digest = (SELECT coalesce(alias_of, digest) FROM effectual_effects WHERE digest = ?)"
            )
            .into(),
            attempts: format!("SELECT {ATTEMPT} FROM effectual_attempts WHERE digest = ? ORDER BY attempt")
                .into(),
            evidence: "SELECT attempt, fence, at, verdict, payload, payload_codec FROM effectual_evidence \
                WHERE digest = ? ORDER BY seq",
            audit: "SELECT at, who, why, action, before, after FROM effectual_audit WHERE digest = ? ORDER BY seq",
        }
    }
}

/// One snapshot of the row, its closed attempts, its evidence and its audit.
async fn history(
    conn: &mut SqliteConnection,
    statement: &Statement,
    id: &EffectId,
) -> sqlx::Result<Answer<Option<EffectHistory>>> {
    let digest = &id.digest()[..];
    let mut snapshot = conn.begin().await?;
    let effect = sqlx::query(sqlx::AssertSqlSafe(Arc::clone(&statement.effect)))
        .bind(digest)
        .fetch_optional(&mut *snapshot)
        .await?;
    let Some(effect) = effect else { return snapshot.rollback().await.map(|()| Ok(None)) };
    let digest: &[u8] = sqlx::Row::try_get(&effect, "digest")?;
    let closed = sqlx::query(sqlx::AssertSqlSafe(Arc::clone(&statement.attempts)))
        .bind(digest)
        .fetch_all(&mut *snapshot)
        .await?;
    let evidence = sqlx::query(statement.evidence).bind(digest).fetch_all(&mut *snapshot).await?;
    let audit = sqlx::query(statement.audit).bind(digest).fetch_all(&mut *snapshot).await?;
    snapshot.commit().await?;
    Ok((|| {
        let effect = row::effect(&mut Columns::new(&effect))?;
        if effect.id.tenant() != id.tenant() {
            return Err(unreadable("its tenant is another than the one asked for"));
        }
        let closed =
            closed.iter().map(|row| row::attempt(&mut Columns::new(row))).collect::<Result<_, _>>()?;
        let evidence =
            evidence.iter().map(|row| row::evidence(&mut Columns::new(row))).collect::<Result<_, _>>()?;
        let audit = audit.iter().map(|row| row::audit(&mut Columns::new(row))).collect::<Result<_, _>>()?;
        Ok(Some(EffectHistory { effect, closed, evidence, audit }))
    })())
}
