//! How statements go over a connection: straight, or through a pooler that lends the server a transaction at a time.

use std::sync::Arc;

use sqlx::{
    Arguments, AssertSqlSafe, Connection, PgConnection, Postgres, Transaction,
    error::BoxDynError,
    postgres::{PgArguments, PgRow},
};

use super::{
    connect::Setback,
    error::{Cause, Trouble},
};

/// What a transaction sees, whatever the server's default is.
#[derive(Debug, Clone, Copy)]
pub(super) enum View {
    /// Each statement sees what was committed before it.
    Current,
    /// All statements see the same, and none writes.
    Snapshot,
}

impl View {
    fn begin(self) -> &'static str {
        match self {
            Self::Current => "BEGIN ISOLATION LEVEL READ COMMITTED",
            Self::Snapshot => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        }
    }
}

/// A connection of the ledger.
pub(super) struct Session {
    connection: PgConnection,
    /// What pins the settings of one transaction, where two transactions may be two sessions of the server.
    pins: Option<Arc<str>>,
    /// Whether all statements are within one transaction, which somebody else ends.
    in_transaction: bool,
    offset_ms: i64,
}

impl Session {
    pub(super) fn new(connection: PgConnection, pins: Option<Arc<str>>, offset_ms: i64) -> Self {
        Self { connection, pins, in_transaction: false, offset_ms }
    }

    /// A connection with an open transaction, in which its statements are to be.
    pub(super) fn inside_transaction(connection: PgConnection, offset_ms: i64) -> Self {
        Self { connection, pins: None, in_transaction: true, offset_ms }
    }

    /// Runs a statement of [`sql`](super::sql) with its parameters behind the clock's offset. What it writes is
    /// committed when this returns, but for a session inside a transaction.
    pub(super) async fn fetch(
        &mut self,
        statement: &'static str,
        add: impl FnOnce(&mut PgArguments) -> Result<(), BoxDynError>,
    ) -> Result<Vec<PgRow>, Setback> {
        let arguments = behind_offset(self.offset_ms, add)?;
        if self.pins.is_none() {
            let is_named = self.keeps_statements();
            let query = sqlx::query_with(statement, arguments).persistent(is_named);
            let rows = query.fetch_all(&mut self.connection).await;
            return rows.map_err(|error| Setback::of(&error));
        }
        let mut transaction = self.begin(View::Current).await?;
        // Unnamed: a named statement would stay behind in a session that is lent to others.
        let rows =
            sqlx::query_with(statement, arguments).persistent(false).fetch_all(&mut *transaction).await;
        match rows {
            Ok(rows) => {
                transaction.commit().await.map_err(|error| Setback::of(&error))?;
                Ok(rows)
            }
            Err(refused) => {
                let refused = Setback::of(&refused);
                // Not left to the next statement: until it comes, the pooler could not lend the session on.
                transaction.rollback().await.map_err(|error| Setback::of(&error))?;
                Err(refused)
            }
        }
    }

    /// Begins a transaction with all settings of the ledger. If it is not ended, the session must be given up.
    pub(super) async fn begin(&mut self, view: View) -> Result<Transaction<'_, Postgres>, Setback> {
        let begun = match &self.pins {
            None => self.connection.begin_with(view.begin()).await,
            Some(pins) => {
                let statements = format!("{}; {pins}", view.begin());
                // One message. The pins are the ledger's own text.
                self.connection.begin_with(AssertSqlSafe(statements)).await
            }
        };
        // Half begun: the connection is of no more use.
        begun.map_err(|error| Setback { trouble: Trouble::Lost, cause: Cause::of(&error) })
    }

    /// Whether a named statement is there the next time.
    pub(super) fn keeps_statements(&self) -> bool {
        self.pins.is_none() && !self.in_transaction
    }

    pub(super) fn offset_ms(&self) -> i64 {
        self.offset_ms
    }

    pub(super) fn connection(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    pub(super) fn connection_ref(&self) -> &PgConnection {
        &self.connection
    }

    pub(super) async fn close(self) -> Result<(), sqlx::Error> {
        self.connection.close().await
    }
}

pub(super) fn behind_offset(
    offset_ms: i64,
    add: impl FnOnce(&mut PgArguments) -> Result<(), BoxDynError>,
) -> Result<PgArguments, Setback> {
    let mut arguments = PgArguments::default();
    let added = arguments.add(offset_ms).and_then(|()| add(&mut arguments));
    added.map_err(|error| Setback::of(&sqlx::Error::Encode(error)))?;
    Ok(arguments)
}
