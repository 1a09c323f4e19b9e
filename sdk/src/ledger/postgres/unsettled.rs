//! Effects without an outcome, page by page, and the arguments that are stored with an effect.

use sqlx::{Arguments as _, Row as _, postgres::PgRow};

use super::{
    connect::{Link, Setback},
    decode::{self, Unreadable},
    encode,
    reader::patiently,
    session::Session,
    sql,
    table::{Bytes, EffectRow, Table, Text},
};
use crate::{
    identity::EffectId,
    ledger::{
        LedgerError, LedgerErrorKind, Payload, Unsettled, UnsettledCursor, UnsettledPage, UnsettledQuery,
    },
};

pub(super) async fn read_page(link: &mut Link, query: &UnsettledQuery) -> Result<UnsettledPage, LedgerError> {
    let rows = patiently(link, |session| Box::pin(rows(session, query.clone()))).await?;
    page(&rows, query).map_err(|error| corrupt(&error))
}

async fn rows(session: &mut Session, query: UnsettledQuery) -> Result<Vec<PgRow>, Setback> {
    let statement = if query.due_only { &*sql::UNSETTLED_DUE } else { &*sql::UNSETTLED };
    let after = query.after.unwrap_or(UnsettledCursor::START);
    let mut head = [0; 16];
    head.copy_from_slice(&after.digest[..16]);
    session
        .fetch(statement, |arguments| {
            arguments.add(after.created_at)?;
            arguments.add(uuid::Uuid::from_bytes(head))?;
            arguments.add(i64::from(query.limit.max(1)))
        })
        .await
}

fn corrupt(error: &dyn std::fmt::Debug) -> LedgerError {
    LedgerError::new(LedgerErrorKind::Corrupt, format!("a page of effects cannot be read: {error:?}"))
}

/// The columns: see [`sql::UNSETTLED`].
fn page(rows: &[PgRow], query: &UnsettledQuery) -> Result<UnsettledPage, Unreadable> {
    let unreadable = |_: sqlx::Error| Unreadable::Column("of a page");
    let mut page = UnsettledPage { effects: Vec::new(), next: None, now: 0 };
    for row in rows {
        page.now = row.try_get(0).map_err(unreadable)?;
        let looked: i64 = row.try_get(1).map_err(unreadable)?;
        if looked >= i64::from(query.limit.max(1)) {
            page.next = last(row).map_err(unreadable)?;
        }
        let has_input: Option<bool> = row.try_get(5).map_err(unreadable)?;
        // Null where no effect of the page is due.
        if let Some(has_input) = has_input {
            let effect = decode::effect(EffectRow::read(row, 6).map_err(unreadable)?)?;
            page.effects.push(Unsettled { effect, has_input });
        }
    }
    Ok(page)
}

fn last(row: &PgRow) -> Result<Option<UnsettledCursor>, sqlx::Error> {
    let (created_at, head): (Option<i64>, Option<uuid::Uuid>) = (row.try_get(2)?, row.try_get(3)?);
    let tail: Bytes<'_> = row.try_get(4)?;
    let (Some(created_at), Some(head), Some(tail)) = (created_at, head, tail) else { return Ok(None) };
    let mut digest = [0; 32];
    for (byte, stored) in digest.iter_mut().zip(head.as_bytes().iter().chain(tail)) {
        *byte = *stored;
    }
    Ok(Some(UnsettledCursor { created_at, digest }))
}

pub(super) async fn read_input(link: &mut Link, id: &EffectId) -> Result<Option<Payload>, LedgerError> {
    let head = encode::head(id);
    let rows = patiently(link, |session| Box::pin(input(session, head))).await?;
    let payload = |row: &PgRow| -> Result<Option<Payload>, sqlx::Error> {
        let (bytes, codec): (Bytes<'_>, Text<'_>) = (row.try_get(1)?, row.try_get(2)?);
        Ok(decode::payload(bytes, &codec).ok().flatten())
    };
    rows.first().map_or(Ok(None), payload).map_err(|error| corrupt(&error))
}

async fn input(session: &mut Session, head: uuid::Uuid) -> Result<Vec<PgRow>, Setback> {
    session.fetch(&sql::INPUT, |arguments| arguments.add(vec![head])).await
}
