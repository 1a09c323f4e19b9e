//! Transactions for effects whose own SQL is in the ledger's file.
//!
//! SQLite lets one connection write at a time: such a transaction has the writer's turn for as long as it is open.

use std::{
    any::Any,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use sqlx::{Connection, SqliteConnection};
use tokio::sync::OwnedMutexGuard;

use super::{
    checkpoint::Progress,
    columns::Statements,
    error::Failure,
    judging::{self, Trust},
    settings::Settings,
    writing::{self, Transaction},
};
use crate::{
    clock::{Moment, Until},
    ledger::{
        Change, Changed, EffectRecord, EffectTransaction, LedgerError, LedgerErrorKind, Owner,
        TransactionEnd,
        writer::{Command, Reply},
    },
};

/// A running statement is asked this often whether its time is over: every so many steps of SQLite's machine.
const STEPS_BETWEEN: i32 = 1000;

/// What the ledger's thread and its transactions share.
#[derive(Clone)]
pub(super) struct Opener {
    pub(super) settings: Arc<Settings>,
    pub(super) statements: Arc<Statements>,
    pub(super) progress: Arc<Progress>,
}

/// A transaction of an effect's body.
struct Open {
    shared: Opener,
    conn: SqliteConnection,
    /// Whether anything may be committed: only by the ledger, with the outcome.
    may_commit: Arc<AtomicBool>,
    /// Whether the statement that is running is to be given up.
    is_over: Arc<AtomicBool>,
    _turn: OwnedMutexGuard<()>,
}

impl Opener {
    pub(super) async fn begin(&self, limit: Duration) -> Result<Box<dyn EffectTransaction>, LedgerError> {
        let failed =
            |error: &sqlx::Error| Failure::of("opening a transaction in", &self.settings.path, error);
        let mut conn = self.settings.connect(false).await.map_err(|error| failed(&error).error())?;
        let turn = self.progress.turn_to_keep().await;
        let (may_commit, is_over) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let patience = Until::new(Moment::now(), self.settings.busy_patience);
        while let Err(error) = open(&mut conn).await {
            let failure = failed(&error);
            if !failure.busy || patience.is_past() {
                return Err(failure.error());
            }
        }
        guard(&mut conn, limit, &may_commit, &is_over).await.map_err(|error| failed(&error).error())?;
        Ok(Box::new(Open { shared: self.clone(), conn, may_commit, is_over, _turn: turn }))
    }
}

async fn open(conn: &mut SqliteConnection) -> sqlx::Result<()> {
    // The ledger ends it in its own words; what the body begins in it is then a savepoint.
    std::mem::forget(conn.begin_with("BEGIN IMMEDIATE").await?);
    sqlx::raw_sql("SAVEPOINT effectual_body").execute(conn).await?;
    Ok(())
}

/// Keeps the body from committing by itself, and a statement from going on past its time.
async fn guard(
    conn: &mut SqliteConnection,
    limit: Duration,
    may_commit: &Arc<AtomicBool>,
    is_over: &Arc<AtomicBool>,
) -> sqlx::Result<()> {
    let (may_commit, is_over) = (Arc::clone(may_commit), Arc::clone(is_over));
    let until = Until::new(Moment::now(), limit);
    let mut handle = conn.lock_handle().await?;
    handle.set_commit_hook(move || may_commit.load(Ordering::SeqCst));
    handle.set_progress_handler(STEPS_BETWEEN, move || !is_over.load(Ordering::SeqCst) && !until.is_past());
    Ok(())
}

impl Open {
    /// Stores and commits; `None` where the row is another owner's.
    async fn store(
        &mut self,
        command: &Command,
    ) -> sqlx::Result<Result<Option<Arc<EffectRecord>>, LedgerError>> {
        let Opener { settings, statements, progress } = &self.shared;
        let conn = &mut self.conn;
        conn.lock_handle().await?.remove_progress_handler();
        sqlx::raw_sql("RELEASE effectual_body").execute(&mut *conn).await?;
        let judged =
            judging::judge(conn, statements, &[command], Trust::default(), || settings.now()).await?;
        let record = match judged.first().map(|judged| &judged.reply) {
            Some(Ok(Reply::Change(Changed::Applied(record)))) => record.clone(),
            Some(Err(_)) => return Ok(Err(unreadable())),
            _ => return Ok(Ok(None)),
        };
        if !writing::store(conn, statements, &judged, Transaction::Callers).await?.is_empty() {
            return Err(sqlx::Error::Protocol("a row changed under the write lock".to_owned()));
        }
        self.may_commit.store(true, Ordering::SeqCst);
        sqlx::raw_sql("COMMIT").execute(conn).await?;
        progress.wrote(&judged);
        Ok(Ok(Some(record)))
    }

    /// Ends what is still open before others have their turn.
    async fn close(mut self: Box<Self>) {
        self.is_over.store(true, Ordering::SeqCst);
        // Without a transaction there is nothing to roll back.
        drop(sqlx::raw_sql("ROLLBACK").execute(&mut self.conn).await);
        drop(self.conn.close_hard().await);
    }
}

fn unreadable() -> LedgerError {
    LedgerError::new(
        LedgerErrorKind::Corrupt,
        "the effect's row cannot be read; its transaction was rolled back",
    )
}

#[async_trait]
impl EffectTransaction for Open {
    fn connection(&self) -> &(dyn Any + Send) {
        &self.conn
    }

    fn connection_mut(&mut self) -> &mut (dyn Any + Send) {
        &mut self.conn
    }

    async fn settle(mut self: Box<Self>, owner: &Owner, change: &Change) -> TransactionEnd {
        let command = Command::Change(Box::new(owner.clone()), Box::new(change.clone()));
        let end = match self.store(&command).await {
            Ok(Ok(Some(record))) => TransactionEnd::Committed(record),
            Ok(Ok(None)) => TransactionEnd::Stale,
            Ok(Err(error)) => TransactionEnd::Unacknowledged(error),
            Err(error) => {
                let failure = Failure::of("committing an effect in", &self.shared.settings.path, &error);
                TransactionEnd::Unacknowledged(failure.error())
            }
        };
        self.close().await;
        end
    }

    /// Whatever the body did with the transaction, it could commit nothing.
    async fn roll_back(self: Box<Self>) -> bool {
        self.close().await;
        true
    }
}
