//! A record completed in an application's own transaction on the ledger's database.

use async_trait::async_trait;
use sqlx::{Postgres, Transaction};

use super::{
    serve::{Ask, Over, Reply, judge_and_store},
    sql::Statements,
};
use crate::ledger::{
    LedgerError,
    postgres::connect::Setback,
    requests::{Change, Changed, Owner, Place, RequestTransaction},
};

fn failed(doing: &str, setback: &Setback) -> LedgerError {
    let cause = &setback.cause;
    LedgerError::new(
        setback.trouble.kind(),
        format!("{doing} the application's own transaction: {cause}; it is rolled back, try again"),
    )
}

#[async_trait]
impl RequestTransaction for Transaction<'static, Postgres> {
    async fn change(
        &mut self,
        place: &Place,
        owner: &Owner,
        change: &Change,
    ) -> Result<Changed, LedgerError> {
        let mut over = Over::Transaction {
            connection: &mut *self,
            statements: Statements::within(place.schema.as_deref()),
            offset_ms: place.clock_offset_ms,
        };
        match judge_and_store(&mut over, Ask::Change(owner, change)).await {
            Ok(Ok(Reply::Changed(changed))) => Ok(changed),
            // A change is replied to by what became of it.
            Ok(Ok(_)) => Ok(Changed::Stale),
            Ok(Err(error)) => Err(error),
            Err(setback) => Err(failed("completing a request in", &setback)),
        }
    }

    async fn commit(self) -> Result<(), LedgerError> {
        let committed = Transaction::commit(self).await;
        committed.map_err(|error| failed("committing", &Setback::of(&error)))
    }

    async fn rollback(self) {
        // Dropped, it rolls back as well.
        drop(Transaction::rollback(self).await);
    }
}
