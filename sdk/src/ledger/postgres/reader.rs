//! Reads of one effect with its history, in one snapshot.

use sqlx::{Connection, PgConnection, postgres::PgRow};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::{
    connect::{Connector, Link, Setback},
    decode::{self, Unreadable},
    encode,
    error::{Trouble, report},
    pass::fetch,
    round::Held,
    sql,
    table::{AttemptRow, EffectRow, EvidenceRow, Table},
};
use crate::{
    clock::{self, Moment, Until},
    identity::EffectId,
    ledger::{EffectHistory, LedgerError, LedgerErrorKind},
};

pub(super) type Answer = Result<Option<EffectHistory>, LedgerError>;

/// A read that waits for its answer.
pub(super) type Request = (EffectId, oneshot::Sender<Answer>);

/// Serves reads until nobody can ask any more.
pub(super) async fn serve(connector: Connector, mut requests: mpsc::Receiver<Request>) {
    let mut link = Link::new(connector, None);
    while let Some((id, reply)) = requests.recv().await {
        let answer = read(&mut link, &id).await;
        // A caller that went away has no use for the answer.
        drop(reply.send(answer));
    }
    link.close().await;
}

async fn read(link: &mut Link, id: &EffectId) -> Answer {
    let patience = Until::new(Moment::now(), link.connector.patience);
    loop {
        let error = match try_read(link, id, &patience).await {
            Ok(snapshot) => return snapshot.map(|snapshot| snapshot.as_history(id)).transpose(),
            Err(error) => error,
        };
        link.lose();
        if error.trouble != Trouble::Lost || patience.is_past() {
            return Err(report(
                error.trouble.kind(),
                "reading an effect from",
                &link.connector.target,
                &error.cause,
            ));
        }
        clock::sleep(link.connector.patience / 64).await;
    }
}

async fn try_read(link: &mut Link, id: &EffectId, patience: &Until) -> Result<Option<Snapshot>, Setback> {
    let (limit, offset_ms) = (patience.remaining(), link.connector.offset_ms);
    let connection = link.get().await?;
    clock::within(limit, snapshot(connection, encode::head(id), offset_ms))
        .await
        .unwrap_or_else(|| Err(Setback::timeout()))
}

struct Snapshot {
    effect: PgRow,
    closed: Vec<PgRow>,
    evidence: Vec<PgRow>,
}

async fn snapshot(
    connection: &mut PgConnection,
    head: Uuid,
    offset_ms: i64,
) -> Result<Option<Snapshot>, Setback> {
    let failed = |error: sqlx::Error| Setback::of(&error);
    let mut transaction =
        connection.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await.map_err(failed)?;
    let effect = fetch(&mut transaction, &sql::READ, offset_ms, |arguments| {
        sqlx::Arguments::add(arguments, vec![head])
    })
    .await?
    .pop();
    let closed =
        sqlx::query(sql::ATTEMPTS.as_str()).bind(head).fetch_all(&mut *transaction).await.map_err(failed)?;
    let evidence =
        sqlx::query(sql::EVIDENCE.as_str()).bind(head).fetch_all(&mut *transaction).await.map_err(failed)?;
    transaction.commit().await.map_err(failed)?;
    Ok(effect.map(|effect| Snapshot { effect, closed, evidence }))
}

impl Snapshot {
    fn as_history(&self, id: &EffectId) -> Result<EffectHistory, LedgerError> {
        let unreadable = |_| {
            LedgerError::new(LedgerErrorKind::Corrupt, format!("effect {id}: its history cannot be read"))
        };
        let record = EffectRow::read(&self.effect, 3)
            .map_err(|_| Unreadable::Column("of its row"))
            .and_then(decode::effect);
        let effect = Held { now: 0, met: false, record }.as_effect(id)?.clone();
        let closed = self.closed.iter().map(|row| {
            AttemptRow::read(row, 0).map_err(|_| Unreadable::Column("attempt")).and_then(decode::attempt)
        });
        let evidence = self.evidence.iter().map(|row| {
            EvidenceRow::read(row, 0).map_err(|_| Unreadable::Column("evidence")).and_then(decode::evidence)
        });
        Ok(EffectHistory {
            effect,
            closed: closed.collect::<Result<_, _>>().map_err(unreadable)?,
            evidence: evidence.collect::<Result<_, _>>().map_err(unreadable)?,
        })
    }
}
