//! Moves the log into the file in the background, so that no commit waits for it and the log stays small.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use sqlx::{Connection, SqliteConnection};
use tokio::sync::{Mutex, MutexGuard, Notify, OwnedMutexGuard};

use super::{settings::Settings, writing::Judged};
use crate::{ledger::record::OutcomeBody, telemetry};

/// A checkpoint follows about so many bytes of log. Each flushes the log and the file, and moves a page that was changed
/// often only once; rows that are stored together take less of the log than is reckoned here.
const BYTES_BETWEEN: u64 = 16 << 20;

/// A row dirties about this much: a page of the table and one of each index.
pub(super) const BYTES_A_ROW: u64 = 3 * 4096;

/// With more frames than this in the log (about 32 MiB) writers are held up until it can start anew.
const FRAMES_MAX: i64 = 8192;

/// How long readers may keep the log from starting anew before the writers go on and it is tried again later.
const RESTART_TIMEOUT: &str = "PRAGMA busy_timeout = 100";

/// How much was written since the last checkpoint, and whose turn it is.
#[derive(Debug, Default)]
pub(super) struct Progress {
    bytes: AtomicU64,
    due: Notify,
    turn: Arc<Mutex<()>>,
}

impl Progress {
    /// The turn to write. SQLite's own lock goes to whoever happens to ask first: under load the writer would always
    /// have it back before a checkpoint that must wait for it.
    pub(super) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// The turn, where nobody has it or waits for it.
    pub(super) fn turn_at_once(&self) -> Option<MutexGuard<'_, ()>> {
        self.turn.try_lock().ok()
    }

    /// The turn for longer than a call.
    pub(super) async fn turn_to_keep(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.turn).lock_owned().await
    }

    pub(super) fn wrote(&self, judged: &[Judged]) {
        self.wrote_bytes(judged.iter().filter(|judged| judged.writes()).map(bytes_of).sum());
    }

    pub(super) fn wrote_bytes(&self, bytes: u64) {
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes >= BYTES_BETWEEN {
            self.due.notify_one();
        }
    }
}

fn bytes_of(judged: &Judged) -> u64 {
    let outcome = judged.write.as_ref().and_then(|(_, write)| write.effect.outcome.as_ref());
    let payload = match outcome.map(|outcome| &outcome.body) {
        Some(OutcomeBody::Payload(payload)) => payload.bytes.len(),
        _ => 0,
    };
    BYTES_A_ROW + payload as u64
}

/// Checkpoints whenever enough was written, until `stop`.
pub(super) async fn run(settings: Arc<Settings>, progress: Arc<Progress>, stop: Arc<Notify>) {
    let mut conn: Option<SqliteConnection> = None;
    loop {
        tokio::select! {
            () = progress.due.notified() => {}
            () = stop.notified() => break,
        }
        progress.bytes.store(0, Ordering::Relaxed);
        if let Err(error) = checkpoint(&settings, &progress, &mut conn).await {
            telemetry::checkpoint_failed(&error);
            conn = None;
        }
    }
    if let Some(conn) = conn {
        drop(conn.close().await);
    }
}

async fn checkpoint(
    settings: &Settings,
    progress: &Progress,
    conn: &mut Option<SqliteConnection>,
) -> sqlx::Result<()> {
    let conn = match conn {
        Some(conn) => conn,
        None => {
            let conn = conn.insert(settings.connect(false).await?);
            sqlx::query(RESTART_TIMEOUT).execute(&mut *conn).await?;
            conn
        }
    };
    let (_, frames, _): (i64, i64, i64) =
        sqlx::query_as("PRAGMA wal_checkpoint(PASSIVE)").fetch_one(&mut *conn).await?;
    if frames > FRAMES_MAX {
        let _turn = progress.turn().await;
        sqlx::query("PRAGMA wal_checkpoint(RESTART)").execute(conn).await?;
    }
    Ok(())
}
