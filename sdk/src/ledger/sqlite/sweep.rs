//! Forgetting, on a connection of its own: short transactions between those of the writer.

use std::{sync::Arc, time::Duration};

use sqlx::{Connection, SqliteConnection};
use tokio::sync::mpsc;

use super::{
    checkpoint::{BYTES_A_ROW, Progress},
    error::Failure,
    row::unreadable,
    settings::Settings,
};
use crate::{
    clock::{Moment, Until},
    identity::EffectId,
    ledger::{
        By, Forgot, LedgerError, LedgerErrorKind, Sweep, Swept,
        ask::{Answered, ask},
        record::{AbsentReason, LedgerTime},
    },
    telemetry,
};

/// How long one transaction goes on taking further effects, with everybody else's writes waiting.
const HOLDS: Duration = Duration::from_millis(20);

/// How many effects one statement takes: more than a message to the connection's thread costs, and little of what a transaction
/// may hold.
const TOGETHER: usize = 32;

/// How many may wait; a caller beyond that waits for room.
const WAITING_MAX: usize = 64;

/// Overwrites what is forgotten, which would otherwise stay on free pages of the file.
const SECURE_DELETE: &str = "PRAGMA secure_delete = ON";

/// The effects that are due, and how many bytes each one's payload has.
const DUE: &str = "SELECT seq, coalesce(length(payload), 0) FROM effectual_effects \
    WHERE outcome_kind IS NOT NULL AND absent_reason IS NOT 'expired' AND retain_until <= ?1 \
    ORDER BY retain_until LIMIT ?2";

const TOMBSTONES: &str = "SELECT seq, 0 FROM effectual_effects \
    WHERE absent_reason = 'expired' AND retain_until <= ?1 ORDER BY retain_until LIMIT ?2";

/// What is to be changed: the effects whose `seq` is in the JSON array `?1`.
macro_rules! picked {
    ($statement:literal) => {
        concat!($statement, " seq IN (SELECT value FROM json_each(?1))")
    };
    ($statement:literal, by digest) => {
        concat!(
            $statement,
            " IN (SELECT digest FROM effectual_effects WHERE seq IN (SELECT value FROM json_each(?1)))"
        )
    };
}

/// What makes tombstones of the effects that are picked.
const FORGET: [&str; 2] = [
    picked!(
        "UPDATE effectual_evidence SET payload = NULL, payload_codec = NULL \
            WHERE payload IS NOT NULL AND digest",
        by digest
    ),
    picked!(
        "UPDATE effectual_effects SET payload = NULL, payload_codec = NULL, absent_reason = 'expired', input = NULL, \
            input_codec = NULL, readable = NULL, revision = revision + 1 WHERE state = 'completed' AND"
    ),
];

/// What removes the effects that are picked, in the order that their references allow.
const REMOVE: [&str; 6] = [
    picked!("DELETE FROM effectual_attempts WHERE digest", by digest),
    picked!("DELETE FROM effectual_touches WHERE digest", by digest),
    picked!("DELETE FROM effectual_evidence WHERE digest", by digest),
    picked!("DELETE FROM effectual_audit WHERE digest", by digest),
    picked!("DELETE FROM effectual_effects WHERE alias_of", by digest),
    picked!("DELETE FROM effectual_effects WHERE"),
];

const FIND: &str = "SELECT seq, state = 'completed', absent_reason, tenant FROM effectual_effects \
    WHERE digest = (SELECT coalesce(alias_of, digest) FROM effectual_effects WHERE digest = ?1)";

/// Where it stands is the same before and after: its content is no part of that.
const AUDIT: &str = "INSERT INTO effectual_audit (digest, at, who, why, action, before, after) \
    SELECT digest, ?2, ?3, ?4, 'forgotten', standing, standing FROM (SELECT digest, json_object('state', state, \
        'attempt', attempt, 'fence', fence, 'outcome', outcome_kind, \
        'accepted', json(iif(accepted_handle IS NULL, 'false', 'true')), \
        'late_success', json(iif(late_success, 'true', 'false'))) AS standing FROM effectual_effects WHERE seq = ?1)";

/// What is asked of the sweeper.
pub(super) enum Request {
    Sweep(Sweep, Answered<Swept>),
    Forget(Forget, Answered<Forgot>),
}

pub(super) struct Forget {
    id: EffectId,
    by: By,
}

/// The callers' end.
#[derive(Debug, Clone)]
pub(super) struct Sweeps(mpsc::Sender<Request>);

/// The sweeper's end.
pub(super) type Asked = mpsc::Receiver<Request>;

pub(super) fn queue() -> (Sweeps, Asked) {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    (Sweeps(sender), receiver)
}

impl Sweeps {
    pub(super) async fn sweep(&self, batch: Sweep) -> Result<Swept, LedgerError> {
        self.ask(|reply| Request::Sweep(batch, reply)).await
    }

    pub(super) async fn forget(&self, id: &EffectId, by: &By) -> Result<Forgot, LedgerError> {
        let forget = Forget { id: id.clone(), by: by.clone() };
        self.ask(|reply| Request::Forget(forget, reply)).await
    }

    async fn ask<T>(&self, request: impl FnOnce(Answered<T>) -> Request) -> Result<T, LedgerError> {
        let closed = || LedgerError::new(LedgerErrorKind::Closed, "its sweeper has ended");
        ask(self.0.clone(), request, closed).await
    }
}

/// Serves until every caller's end is dropped. What a caller that went away asked for is stored all the same.
pub(super) async fn serve(settings: Arc<Settings>, progress: Arc<Progress>, mut asked: Asked) {
    let mut sweeper = Sweeper { settings, progress, conn: None };
    while let Some(request) = asked.recv().await {
        match request {
            Request::Sweep(batch, reply) => {
                let done = sweeper.patiently(async |conn, now| sweep(conn, batch, now).await).await;
                drop(reply.send(done));
            }
            Request::Forget(asked, reply) => {
                let done = sweeper.patiently(async |conn, now| forget(conn, &asked, now).await).await;
                drop(reply.send(done.and_then(|done| done)));
            }
        }
    }
    if let Some(conn) = sweeper.conn
        && let Err(error) = conn.close().await
    {
        telemetry::not_closed_cleanly(&error);
    }
}

struct Sweeper {
    settings: Arc<Settings>,
    progress: Arc<Progress>,
    conn: Option<SqliteConnection>,
}

impl Sweeper {
    /// Does the work in one transaction; goes on for as long as other processes are in the way. The work says beside its answer
    /// how many bytes it wrote.
    async fn patiently<T>(
        &mut self,
        work: impl AsyncFn(&mut SqliteConnection, LedgerTime) -> sqlx::Result<(T, u64)>,
    ) -> Result<T, LedgerError> {
        let patience = Until::new(Moment::now(), self.settings.busy_patience);
        loop {
            let error = match self.once(&work).await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            // Without its connection a transaction is rolled back.
            self.conn = None;
            let failure = Failure::of("forgetting in", &self.settings.path, &error);
            if !failure.busy || patience.is_past() {
                return Err(failure.error());
            }
        }
    }

    async fn once<T>(
        &mut self,
        work: &impl AsyncFn(&mut SqliteConnection, LedgerTime) -> sqlx::Result<(T, u64)>,
    ) -> sqlx::Result<T> {
        let conn = match &mut self.conn {
            Some(conn) => conn,
            None => {
                let conn = self.conn.insert(self.settings.connect(false).await?);
                sqlx::raw_sql(SECURE_DELETE).execute(&mut *conn).await?;
                conn
            }
        };
        let _turn = self.progress.turn().await;
        let mut transaction = conn.begin_with("BEGIN IMMEDIATE").await?;
        let (done, bytes) = work(&mut transaction, self.settings.now()).await?;
        transaction.commit().await?;
        self.progress.wrote_bytes(bytes);
        Ok(done)
    }
}

async fn sweep(conn: &mut SqliteConnection, batch: Sweep, now: LedgerTime) -> sqlx::Result<(Swept, u64)> {
    let (find, until, statements) = match batch {
        Sweep::Outcomes { .. } => (DUE, now, FORGET.as_slice()),
        Sweep::Tombstones { kept_ms, .. } => {
            (TOMBSTONES, now.saturating_sub(kept_ms.max(0)), REMOVE.as_slice())
        }
    };
    let at_most = batch.at_most();
    let due: Vec<(i64, i64)> = sqlx::query_as(find).bind(until).bind(at_most).fetch_all(&mut *conn).await?;
    let begun = Moment::now();
    let (mut effects, mut bytes) = (0, 0);
    for due in due.chunks(TOGETHER) {
        change(conn, statements, due.iter().map(|(seq, _)| *seq)).await?;
        for (_, size) in due {
            effects += 1;
            bytes += BYTES_A_ROW + size.unsigned_abs();
        }
        if begun.elapsed() > HOLDS {
            break;
        }
    }
    let more = effects == at_most || usize::try_from(effects).is_ok_and(|effects| effects < due.len());
    Ok((Swept { effects, more }, bytes))
}

/// Applies the statements to the effects.
async fn change(
    conn: &mut SqliteConnection,
    statements: &[&'static str],
    effects: impl Iterator<Item = i64>,
) -> sqlx::Result<()> {
    let effects = serde_json::Value::from_iter(effects).to_string();
    for statement in statements {
        sqlx::query(*statement).bind(&effects).execute(&mut *conn).await?;
    }
    Ok(())
}

type Found = (i64, bool, Option<String>, String);

async fn forget(
    conn: &mut SqliteConnection,
    asked: &Forget,
    now: LedgerTime,
) -> sqlx::Result<(Result<Forgot, LedgerError>, u64)> {
    let found: Option<Found> =
        sqlx::query_as(FIND).bind(&asked.id.digest()[..]).fetch_optional(&mut *conn).await?;
    let Some((seq, is_completed, absent, tenant)) = found else { return Ok((Ok(Forgot::NotFound), 0)) };
    if tenant != asked.id.tenant().as_str() {
        return Ok((Err(unreadable("its tenant is another than the one asked for")), 0));
    }
    if !is_completed {
        return Ok((Ok(Forgot::Unsettled), 0));
    }
    if absent.as_deref() == Some(AbsentReason::Expired.as_str()) {
        return Ok((Ok(Forgot::Already), 0));
    }
    change(conn, &FORGET, std::iter::once(seq)).await?;
    let audit = sqlx::query(AUDIT).bind(seq).bind(now).bind(asked.by.who()).bind(asked.by.why());
    audit.execute(conn).await?;
    Ok((Ok(Forgot::Forgotten), BYTES_A_ROW))
}

#[cfg(test)]
mod tests {
    use sqlx::AssertSqlSafe;

    use super::*;

    /// Every statement of a sweep finds its rows by an index, those that the references between the tables add included.
    #[tokio::test]
    async fn no_statement_reads_a_whole_table() {
        let mut conn = SqliteConnection::connect("sqlite::memory:").await.expect("a database");
        for migration in crate::ledger::sqlite::migrate::MIGRATIONS {
            sqlx::raw_sql(migration).execute(&mut conn).await.expect("the schema");
        }
        for sql in [DUE, TOMBSTONES, FIND].into_iter().chain(FORGET).chain(REMOVE) {
            let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
            let steps: Vec<(i64, i64, i64, String)> =
                sqlx::query_as(explain).fetch_all(&mut conn).await.expect("a plan");
            assert!(!steps.is_empty(), "{sql}");
            for (_, _, _, step) in steps {
                // Nothing is scanned but the list of what is to be changed.
                assert!(!step.starts_with("SCAN") || step.starts_with("SCAN json_each"), "{sql}: {step}");
            }
        }
    }
}
