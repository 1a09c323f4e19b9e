//! What is kept beside the row: the closed attempt, evidence, the audit, the first touch. Rare, so one by one.

use sqlx::SqliteConnection;

use super::{row, writing::Judged};
use crate::{
    identity::{InvocationId, NodeId, RunId},
    ledger::{
        audit::AuditEntry,
        record::{Evidence, LedgerTime, Place},
        transition::Write,
    },
};

/// A run meets an effect that others performed.
pub(super) struct Touch {
    pub(super) digest: [u8; 32],
    pub(super) place: Place,
    pub(super) at: LedgerTime,
}

/// Whether a write has more than its row.
pub(super) fn is_needed(write: &Write) -> bool {
    let Write { effect: _, closed, evidence, input: _, audit } = write;
    closed.is_some() || evidence.is_some() || audit.is_some()
}

/// Stores what belongs to a row that was stored in the same transaction.
pub(super) async fn store(conn: &mut SqliteConnection, judged: &Judged) -> sqlx::Result<()> {
    if let Some((_, write)) = &judged.write {
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
    .bind(payload.map(|payload| &*payload.codec))
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
