//! Transactions for effects whose own SQL is in the ledger's database.
//!
//! Each has a connection of its own, with the settings that the URL, the role and the database give it: those that the
//! ledger pins for its own statements hold only while it settles.

use std::{any::Any, sync::Arc, time::Duration};

use async_trait::async_trait;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::{sync::mpsc, task::JoinSet};

use super::{
    connect::{Connector, Setback},
    error::report,
    pass::pass,
    reader::Request,
    round::Round,
    session::Session,
    signals::Signals,
    writer::tell,
};
use crate::{
    clock,
    ledger::{
        Change, Changed, EffectRecord, EffectTransaction, LedgerError, Owner, TransactionEnd,
        ask::Answered,
        writer::{Command, Reply},
    },
};

/// What an attempt may not commit by itself is behind this.
const SAVEPOINT: &str = "effectual_body";

/// The server's answers to a savepoint that is not there: none of that name, and no transaction.
const NO_SAVEPOINT: [&str; 2] = ["3B001", "25P01"];

/// How long a roll-back may take before the connection is dropped, which rolls back too.
const ROLLBACK_LIMIT: Duration = Duration::from_secs(1);

/// Who waits for a transaction, and for how long it may be silent.
pub(super) struct Wanted {
    pub(super) limit: Duration,
    pub(super) reply: Answered<Box<dyn EffectTransaction>>,
}

/// Whom a commit is told to.
pub(super) type Tells = Option<(Arc<Signals>, mpsc::WeakSender<Request>)>;

/// Opens transactions until nobody can ask any more.
pub(super) async fn serve(connector: Connector, tells: Tells, mut wanted: mpsc::Receiver<Wanted>) {
    let mut opening = JoinSet::new();
    while let Some(Wanted { limit, reply }) = wanted.recv().await {
        let (connector, tells) = (connector.clone(), tells.clone());
        opening.spawn(async move {
            let opened = open(&connector, tells, limit).await;
            // A body that went away leaves nothing open: the connection is dropped.
            drop(reply.send(opened.map(|open| Box::new(open) as Box<dyn EffectTransaction>)));
        });
        while opening.try_join_next().is_some() {}
    }
    while opening.join_next().await.is_some() {}
}

struct Open {
    session: Session,
    connector: Connector,
    tells: Tells,
}

async fn open(connector: &Connector, tells: Tells, limit: Duration) -> Result<Open, LedgerError> {
    let failed = |setback: Setback| {
        report(setback.trouble.kind(), "opening a transaction in", &connector.target, &setback.cause)
    };
    let opening = async {
        let mut connection = PgConnection::connect_with(&connector.plain).await?;
        // An attempt whose process is gone must not hold its rows for ever.
        let begin = format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = {}; \
             SAVEPOINT {SAVEPOINT}",
            limit.as_millis().clamp(1, 1 << 30)
        );
        // The ledger ends it in its own words; what the body begins in it is then a savepoint.
        std::mem::forget(connection.begin_with(AssertSqlSafe(begin)).await?);
        Ok(connection)
    };
    match clock::within(connector.patience, opening).await {
        Some(Ok(connection)) => {
            let session = Session::inside_transaction(connection, connector.offset_ms);
            Ok(Open { session, connector: connector.clone(), tells })
        }
        Some(Err(error)) => Err(failed(Setback::of(&error))),
        None => Err(failed(Setback::timeout())),
    }
}

/// Why nothing was committed.
enum Refused {
    Stale,
    EndedByBody,
    Ledger(LedgerError),
}

impl Open {
    fn failed(&self, setback: &Setback) -> Refused {
        let target = &self.connector.target;
        Refused::Ledger(report(setback.trouble.kind(), "committing an effect in", target, &setback.cause))
    }

    fn refused(&self, error: &sqlx::Error) -> Refused {
        if is_ended_by_body(error) { Refused::EndedByBody } else { self.failed(&Setback::of(error)) }
    }

    /// Stores what is judged on the row as it is now, and commits.
    async fn commit(&mut self, command: Command) -> Result<Arc<EffectRecord>, Refused> {
        let pins = &self.connector.transaction_pins;
        let release = AssertSqlSafe(format!("RELEASE SAVEPOINT {SAVEPOINT}; {pins}"));
        let released = sqlx::raw_sql(release).execute(self.session.connection()).await;
        released.map_err(|error| self.refused(&error))?;
        let batch = [command];
        let mut round = Round::new(&batch, false);
        while round.is_open() {
            let passed = pass(&mut round, &mut self.session).await;
            passed.map_err(|setback| self.failed(&setback))?;
            round.passed(&self.connector.target);
        }
        let record = match round.into_replies().pop() {
            Some(Ok(Reply::Change(Changed::Applied(record)))) => record,
            Some(Err(error)) => return Err(Refused::Ledger(error)),
            _ => return Err(Refused::Stale),
        };
        self.forget_statements().await.map_err(|error| self.refused(&error))?;
        let committed = sqlx::raw_sql("COMMIT").execute(self.session.connection()).await;
        committed.map_err(|error| self.failed(&Setback::of(&error)))?;
        Ok(record)
    }

    /// Named statements of the body would stay behind in a session that a pooler lends to others.
    async fn forget_statements(&mut self) -> sqlx::Result<()> {
        match self.connector.is_pooled() {
            true => self.session.connection().clear_cached_statements().await,
            false => Ok(()),
        }
    }

    fn tell(&self, record: &EffectRecord) {
        let Some((signals, reads)) = &self.tells else { return };
        if let Some(reads) = reads.upgrade() {
            tell(signals, &reads, record);
        }
    }
}

fn is_ended_by_body(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    code.is_some_and(|code| NO_SAVEPOINT.contains(&&*code))
}

#[async_trait]
impl EffectTransaction for Open {
    fn connection(&self) -> &(dyn Any + Send) {
        self.session.connection_ref()
    }

    fn connection_mut(&mut self) -> &mut (dyn Any + Send) {
        self.session.connection()
    }

    async fn settle(mut self: Box<Self>, owner: &Owner, change: &Change) -> TransactionEnd {
        let owner = Owner { seen: None, ..owner.clone() };
        let command = Command::Change(Box::new(owner), Box::new(change.clone()));
        let patience = self.connector.patience;
        let committed = match clock::within(patience, self.commit(command)).await {
            Some(committed) => committed,
            None => Err(self.failed(&Setback::timeout())),
        };
        match committed {
            Ok(record) => {
                self.tell(&record);
                drop(clock::within(ROLLBACK_LIMIT, self.session.close()).await);
                TransactionEnd::Committed(record)
            }
            Err(Refused::Stale) => {
                self.roll_back().await;
                TransactionEnd::Stale
            }
            // Dropped: the server rolls back what was not committed.
            Err(Refused::EndedByBody) => TransactionEnd::EndedByBody,
            Err(Refused::Ledger(error)) => TransactionEnd::Unacknowledged(error),
        }
    }

    async fn roll_back(mut self: Box<Self>) -> bool {
        let rolling_back = async {
            self.forget_statements().await?;
            let back = AssertSqlSafe(format!("ROLLBACK TO SAVEPOINT {SAVEPOINT}; ROLLBACK"));
            sqlx::raw_sql(back).execute(self.session.connection()).await.map(drop)
        };
        match clock::within(ROLLBACK_LIMIT, rolling_back).await {
            Some(Err(error)) => !is_ended_by_body(&error),
            Some(Ok(())) => {
                drop(clock::within(ROLLBACK_LIMIT, self.session.close()).await);
                true
            }
            // Dropped: the server rolls back.
            None => true,
        }
    }
}
