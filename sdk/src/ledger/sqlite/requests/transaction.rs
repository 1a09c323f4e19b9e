//! A record completed in an application's own transaction on the ledger's file.

use std::path::Path;

use async_trait::async_trait;
use sqlx::{Sqlite, Transaction};

use super::serve::judge_and_store;
use crate::{
    clock,
    ledger::{
        LedgerError,
        requests::{Change, Changed, Owner, Place, RequestTransaction, judge},
        sqlite::error::Failure,
    },
};

fn failed(doing: &str, error: &sqlx::Error) -> LedgerError {
    Failure::of(doing, Path::new("the application's own transaction"), error).error()
}

/// Begin it with `BEGIN IMMEDIATE`: a transaction that has only read cannot write any more once another has written.
#[async_trait]
impl RequestTransaction for Transaction<'static, Sqlite> {
    async fn change(
        &mut self,
        place: &Place,
        owner: &Owner,
        change: &Change,
    ) -> Result<Changed, LedgerError> {
        let now = clock::wall_ms() + place.clock_offset_ms;
        let judge = |held: Option<&_>| judge::change(held, owner, change, now);
        judge_and_store(self, &owner.key, judge)
            .await
            .map_err(|error| failed("completing a request in", &error))?
    }

    async fn commit(self) -> Result<(), LedgerError> {
        Transaction::commit(self).await.map_err(|error| failed("committing", &error))
    }

    async fn rollback(self) {
        // Dropped, it rolls back as well.
        drop(Transaction::rollback(self).await);
    }
}
