//! Reads of whole histories, on a connection that never writes.

use std::sync::Arc;

use sqlx::{Connection, SqliteConnection};
use tokio::sync::{mpsc, oneshot};

use super::{
    columns::{ATTEMPT, effect_columns},
    error::Failure,
    row::{self, Columns, unreadable},
    settings::Settings,
};
use crate::{
    clock::{Moment, Until},
    identity::EffectId,
    ledger::{EffectHistory, LedgerError, LedgerErrorKind},
};

/// How many reads may wait; a caller beyond that waits for room.
const READS_MAX: usize = 1024;

type Answer = Result<Option<EffectHistory>, LedgerError>;

/// The callers' end.
#[derive(Debug, Clone)]
pub(super) struct Reads(mpsc::Sender<(EffectId, oneshot::Sender<Answer>)>);

/// The reader's end.
pub(super) type Asked = mpsc::Receiver<(EffectId, oneshot::Sender<Answer>)>;

pub(super) fn queue() -> (Reads, Asked) {
    let (sender, receiver) = mpsc::channel(READS_MAX);
    (Reads(sender), receiver)
}

impl Reads {
    pub(super) async fn read(&self, id: &EffectId) -> Answer {
        let closed = || LedgerError::new(LedgerErrorKind::Closed, "its reader has ended");
        let (reply, answer) = oneshot::channel();
        self.0.send((id.clone(), reply)).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }
}

/// Answers reads until every caller's end is dropped. A caller that goes away leaves no transaction open.
pub(super) async fn serve(settings: Arc<Settings>, mut asked: Asked) {
    let statement = Statement::new();
    let mut conn: Option<SqliteConnection> = None;
    while let Some((id, reply)) = asked.recv().await {
        let answer = patiently(&settings, &statement, &mut conn, &id).await;
        // A caller that went away has no use for the answer.
        drop(reply.send(answer));
    }
    if let Some(conn) = conn {
        drop(conn.close().await);
    }
}

async fn patiently(
    settings: &Settings,
    statement: &Statement,
    conn: &mut Option<SqliteConnection>,
    id: &EffectId,
) -> Answer {
    let patience = Until::new(Moment::now(), settings.busy_patience);
    loop {
        let error = match history(settings, statement, conn, id).await {
            Ok(answer) => return answer,
            Err(error) => error,
        };
        *conn = None;
        let failure = Failure::of("reading", &settings.path, &error);
        if !failure.busy || patience.is_past() {
            return Err(failure.error());
        }
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
    settings: &Settings,
    statement: &Statement,
    conn: &mut Option<SqliteConnection>,
    id: &EffectId,
) -> sqlx::Result<Answer> {
    let conn = match conn {
        Some(conn) => conn,
        None => conn.insert(settings.connect_read_only().await?),
    };
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
