//! What a judged batch stores, by compare-and-set.

use std::collections::HashSet;

use sqlx::{SqliteConnection, query::Query, sqlite::SqliteRow};

use super::{
    columns::{ROWS_MAX, Statements},
    row,
};
use crate::identity::{InvocationId, NodeId, RunId};
use crate::ledger::{
    LedgerError,
    audit::AuditEntry,
    record::{EffectRecord, Evidence, Fence, LedgerTime, Place, State},
    transition::Write,
    writer::Reply,
};

/// What of a judged row must still hold when its successor is stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) revision: i64,
    pub(super) state: State,
    pub(super) fence: Fence,
}

impl Seen {
    pub(super) fn of(record: &EffectRecord) -> Self {
        Self { revision: record.revision, state: record.state, fence: record.fence }
    }
}

/// A run meets an effect that others performed.
pub(super) struct Touch {
    pub(super) digest: [u8; 32],
    pub(super) place: Place,
    pub(super) at: LedgerTime,
}

/// A command's answer, and what makes it true.
pub(super) struct Judged {
    pub(super) reply: Result<Reply, LedgerError>,
    pub(super) write: Option<Write>,
    /// The row that was judged; `None` where there was none.
    pub(super) seen: Option<Seen>,
    pub(super) touch: Option<Touch>,
}

impl Judged {
    pub(super) fn failed(error: LedgerError) -> Self {
        Self { reply: Err(error), write: None, seen: None, touch: None }
    }

    pub(super) fn writes(&self) -> bool {
        self.write.is_some() || self.touch.is_some()
    }
}

/// Stores the writes of a batch; the positions of those whose row was no longer the judged one.
pub(super) async fn store(
    conn: &mut SqliteConnection,
    statements: &Statements,
    judged: &[Judged],
) -> sqlx::Result<Vec<usize>> {
    let (mut fresh, mut changed) = (Vec::new(), Vec::new());
    // Two identities of a batch may name one effect: the second is judged again.
    let (mut once, mut repeated) = (HashSet::new(), HashSet::new());
    for (position, judged) in judged.iter().enumerate() {
        match (&judged.write, &judged.seen) {
            (Some(write), _) if !once.insert(&write.effect.id) => drop(repeated.insert(position)),
            (Some(write), None) => fresh.push(write),
            (Some(write), Some(seen)) => changed.push((&write.effect, seen)),
            (None, _) => {}
        }
    }
    let mut stored = HashSet::new();
    for writes in fresh.chunks(ROWS_MAX) {
        let query = sqlx::query(statements.insert.of(writes.len()));
        let query = writes.iter().fold(query, |query, write| {
            let query = row::bind_input(row::bind_fixed(query, &write.effect), write.input.as_ref());
            row::bind_current(query, &write.effect)
        });
        collect(conn, query, &mut stored).await?;
    }
    for records in changed.chunks(ROWS_MAX) {
        let query = sqlx::query(statements.update.of(records.len()));
        let query = records.iter().fold(query, |query, (record, seen)| {
            row::bind_current(row::bind_seen(query, record, seen), record)
        });
        collect(conn, query, &mut stored).await?;
    }
    let mut missed = Vec::new();
    for (position, judged) in judged.iter().enumerate() {
        let lost = |write: &Write| !stored.contains(&write.effect.id.digest()[..]);
        if repeated.contains(&position) || judged.write.as_ref().is_some_and(lost) {
            missed.push(position);
        } else {
            beside(conn, judged).await?;
        }
    }
    Ok(missed)
}

async fn collect(
    conn: &mut SqliteConnection,
    query: Query<'_, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>,
    stored: &mut HashSet<Vec<u8>>,
) -> sqlx::Result<()> {
    let digest = |row: &SqliteRow| sqlx::Row::try_get(row, 0);
    for row in query.fetch_all(conn).await? {
        stored.insert(digest(&row)?);
    }
    Ok(())
}

/// What is kept beside the row: the closed attempt, evidence, the audit, the first touch. Rare, so one by one.
async fn beside(conn: &mut SqliteConnection, judged: &Judged) -> sqlx::Result<()> {
    if let Some(write) = &judged.write {
        let digest = &write.effect.id.digest()[..];
        if let Some(closed) = &write.closed {
            let query = sqlx::query(INSERT_ATTEMPT).bind(digest);
            row::bind_attempt(query, closed).execute(&mut *conn).await?;
        }
        if let Some(evidence) = &write.evidence {
            insert_evidence(conn, digest, evidence).await?;
        }
        if let Some(entry) = &write.audit {
            insert_audit(conn, digest, entry).await?;
        }
    }
    if let Some(touch) = &judged.touch {
        insert_touch(conn, touch).await?;
    }
    Ok(())
}

/// A change that is repeated because its acknowledgement was lost brings its evidence again.
async fn insert_evidence(
    conn: &mut SqliteConnection,
    digest: &[u8],
    evidence: &Evidence,
) -> sqlx::Result<()> {
    let payload = evidence.payload.as_ref();
    sqlx::query(
        "INSERT INTO effectual_evidence (digest, attempt, fence, at, verdict, payload, payload_codec)
         VALUES (?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (digest, attempt, fence, verdict) DO NOTHING",
    )
    .bind(digest)
    .bind(evidence.attempt)
    .bind(evidence.fence)
    .bind(evidence.at)
    .bind(evidence.verdict.as_str())
    .bind(payload.map(|payload| &payload.bytes[..]))
    .bind(payload.map(|payload| payload.codec.as_str()))
    .execute(conn)
    .await?;
    Ok(())
}

async fn insert_audit(conn: &mut SqliteConnection, digest: &[u8], entry: &AuditEntry) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO effectual_audit (digest, at, who, why, action, before, after) VALUES (?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(digest)
    .bind(entry.at)
    .bind(&entry.who)
    .bind(&entry.why)
    .bind(entry.action.as_str())
    .bind(entry.before.to_text())
    .bind(entry.after.to_text())
    .execute(conn)
    .await?;
    Ok(())
}

/// The first touch wins, and a run that made an attempt of its own since the judgement needs none; neither does an effect
/// that was removed since.
async fn insert_touch(conn: &mut SqliteConnection, touch: &Touch) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO effectual_touches (run, digest, node, invocation, at)
         SELECT ?1, ?2, ?3, ?4, ?5
         WHERE EXISTS (SELECT 1 FROM effectual_effects WHERE digest = ?2 AND run IS NOT ?1)
             AND NOT EXISTS (SELECT 1 FROM effectual_attempts WHERE digest = ?2 AND run = ?1)
         ON CONFLICT (run, digest) DO NOTHING",
    )
    .bind(touch.place.run.as_ref().map(RunId::as_str))
    .bind(&touch.digest[..])
    .bind(touch.place.node.as_ref().map(NodeId::as_str))
    .bind(touch.place.invocation.as_ref().map(InvocationId::as_str))
    .bind(touch.at)
    .execute(conn)
    .await?;
    Ok(())
}

const INSERT_ATTEMPT: &str = "INSERT INTO effectual_attempts (digest, attempt, fence, token, class, run, node, \
    invocation, started_at, lease_until, attempt_timeout_ms, ended_at, verdict, send_digest, key_taken) \
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
