//! Reads, those of one effect with its history in one snapshot; and what the ledger tells others.

use std::pin::Pin;

use sqlx::{Arguments as _, Row as _, postgres::PgRow};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::{
    connect::{Connector, Link, Setback},
    decode::{self, Unreadable},
    encode,
    error::{Trouble, report},
    list, listen,
    round::Held,
    session::{Session, View, behind_offset},
    signals::News,
    sql,
    table::{AttemptRow, AuditRow, EffectRow, EvidenceRow, Table},
    unsettled,
};
use crate::{
    clock::{self, Moment, Until},
    identity::{EffectId, RunId},
    ledger::{
        EffectHistory, LedgerError, LedgerErrorKind, Payload, RunPage, RunRow, UnsettledPage, UnsettledQuery,
        ask::Answered,
    },
};

/// A question that is on its way.
pub(super) type Asking<'s, T> = Pin<Box<dyn Future<Output = Result<T, Setback>> + Send + 's>>;

/// What a reader's connection is for.
pub(super) enum Request {
    /// A read of one effect.
    Read(EffectId, Answered<Option<EffectHistory>>),
    /// A page of those without an outcome.
    Unsettled(UnsettledQuery, Answered<UnsettledPage>),
    /// The stored arguments of one.
    Input(EffectId, Answered<Option<Payload>>),
    /// A page of what a run did and met.
    Run(RunId, RunPage, Answered<Vec<RunRow>>),
    /// What all ledgers are to be told. It may get lost.
    Tell(News, Vec<Uuid>),
}

/// Serves requests until nobody can ask any more.
pub(super) async fn serve(connector: Connector, mut requests: mpsc::Receiver<Request>) {
    let mut link = Link::new(connector, None);
    while let Some(request) = requests.recv().await {
        // A caller that went away has no use for the answer.
        match request {
            Request::Read(id, reply) => drop(reply.send(read(&mut link, &id).await)),
            Request::Unsettled(query, reply) => {
                drop(reply.send(unsettled::read_page(&mut link, &query).await));
            }
            Request::Run(run, page, reply) => {
                drop(reply.send(list::read_page(&mut link, &run, page).await));
            }
            Request::Input(id, reply) => drop(reply.send(unsettled::read_input(&mut link, &id).await)),
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

async fn read(link: &mut Link, id: &EffectId) -> Result<Option<EffectHistory>, LedgerError> {
    let head = encode::head(id);
    let found = patiently(link, |session| Box::pin(snapshot(session, head))).await?;
    found.map(|snapshot| snapshot.as_history(id)).transpose()
}

/// Asks until there is an answer, within the ledger's patience.
pub(super) async fn patiently<T>(
    link: &mut Link,
    ask: impl for<'s> Fn(&'s mut Session) -> Asking<'s, T>,
) -> Result<T, LedgerError> {
    let patience = Until::new(Moment::now(), link.connector.patience);
    loop {
        let limit = patience.remaining();
        let asked = match link.get().await {
            Ok(session) => {
                clock::within(limit, ask(session)).await.unwrap_or_else(|| Err(Setback::timeout()))
            }
            Err(error) => Err(error),
        };
        let error = match asked {
            Ok(answer) => return Ok(answer),
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
