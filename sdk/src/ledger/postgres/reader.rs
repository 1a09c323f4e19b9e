//! Reads of one effect with its history, in one snapshot; and what the ledger tells others.

use sqlx::{Arguments as _, Row as _, postgres::PgRow};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::{
    connect::{Connector, Link, Setback},
    decode::{self, Unreadable},
    encode,
    error::{Trouble, report},
    listen,
    round::Held,
    session::{Session, View, behind_offset},
    signals::News,
    sql,
    table::{AttemptRow, AuditRow, EffectRow, EvidenceRow, Table},
};
use crate::{
    clock::{self, Moment, Until},
    identity::EffectId,
    ledger::{EffectHistory, LedgerError, LedgerErrorKind},
};

pub(super) type Answer = Result<Option<EffectHistory>, LedgerError>;

/// What the reader's connection is for.
pub(super) enum Request {
    /// A read that waits for its answer.
    Read(EffectId, oneshot::Sender<Answer>),
    /// What all ledgers are to be told. It may get lost.
    Tell(News, Vec<Uuid>),
}

/// Serves requests until nobody can ask any more.
pub(super) async fn serve(connector: Connector, mut requests: mpsc::Receiver<Request>) {
    let mut link = Link::new(connector, None);
    while let Some(request) = requests.recv().await {
        match request {
            Request::Read(id, reply) => {
                let answer = read(&mut link, &id).await;
                // A caller that went away has no use for the answer.
                drop(reply.send(answer));
            }
            Request::Tell(news, heads) => {
                if tell(&mut link, news, &heads).await.is_err() {
                    link.lose();
                }
            }
        }
    }
    link.close().await;
}

async fn tell(link: &mut Link, news: News, heads: &[Uuid]) -> Result<(), Setback> {
    let limit = link.connector.patience;
    let connection = link.get().await?.connection();
    clock::within(limit, listen::tell(connection, news, heads))
        .await
        .unwrap_or_else(|| Err(Setback::timeout()))
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
    let limit = patience.remaining();
    let session = link.get().await?;
    clock::within(limit, snapshot(session, encode::head(id))).await.unwrap_or_else(|| Err(Setback::timeout()))
}

struct Snapshot {
    effect: PgRow,
    closed: Vec<PgRow>,
    evidence: Vec<PgRow>,
    audit: Vec<PgRow>,
}

async fn snapshot(session: &mut Session, head: Uuid) -> Result<Option<Snapshot>, Setback> {
    let failed = |error: sqlx::Error| Setback::of(&error);
    let is_named = session.keeps_statements();
    let asked = behind_offset(session.offset_ms(), |arguments| arguments.add(vec![head]))?;
    let mut transaction = session.begin(View::Snapshot).await?;
    let read = sqlx::query_with(sql::READ.as_str(), asked).persistent(is_named);
    let effect = read.fetch_all(&mut *transaction).await.map_err(failed)?.pop();
    // Of the effect that the identity names, under whichever of its identities it was asked for.
    let head: Uuid = match &effect {
        Some(effect) => EffectRow::read(effect, 5).map_err(failed)?.digest_head.unwrap_or(head),
        None => head,
    };
    let closed = sqlx::query(sql::ATTEMPTS.as_str()).bind(head).persistent(is_named);
    let closed = closed.fetch_all(&mut *transaction).await.map_err(failed)?;
    let evidence = sqlx::query(sql::EVIDENCE.as_str()).bind(head).persistent(is_named);
    let evidence = evidence.fetch_all(&mut *transaction).await.map_err(failed)?;
    let audit = sqlx::query(sql::AUDIT.as_str()).bind(head).persistent(is_named);
    let audit = audit.fetch_all(&mut *transaction).await.map_err(failed)?;
    transaction.commit().await.map_err(failed)?;
    Ok(effect.map(|effect| Snapshot { effect, closed, evidence, audit }))
}

impl Snapshot {
    fn as_history(&self, id: &EffectId) -> Result<EffectHistory, LedgerError> {
        let unreadable = |_| {
            LedgerError::new(LedgerErrorKind::Corrupt, format!("effect {id}: its history cannot be read"))
        };
        let record = EffectRow::read(&self.effect, 5)
            .map_err(|_| Unreadable::Column("of its row"))
            .and_then(decode::effect);
        let tail = self.effect.try_get(4).map_err(|_| unreadable(Unreadable::Column("digest_tail")))?;
        let effect = Held { now: 0, met: false, tail, record }.as_effect(id)?.clone();
        let closed = self.closed.iter().map(|row| {
            AttemptRow::read(row, 0).map_err(|_| Unreadable::Column("attempt")).and_then(decode::attempt)
        });
        let evidence = self.evidence.iter().map(|row| {
            EvidenceRow::read(row, 0).map_err(|_| Unreadable::Column("evidence")).and_then(decode::evidence)
        });
        let audit = self.audit.iter().map(|row| {
            AuditRow::read(row, 0).map_err(|_| Unreadable::Column("audit")).and_then(decode::audit)
        });
        Ok(EffectHistory {
            effect,
            closed: closed.collect::<Result<_, _>>().map_err(unreadable)?,
            evidence: evidence.collect::<Result<_, _>>().map_err(unreadable)?,
            audit: audit.collect::<Result<_, _>>().map_err(unreadable)?,
        })
    }
}
