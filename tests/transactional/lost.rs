//! The acknowledgement of a commit gets lost: the outcome is read back by the attempt's token.

use std::{
    any::Any,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use effectual::{
    EffectId, Ledger, LedgerError, LedgerErrorKind,
    ledger::{
        Change, Changed, Claim, ClaimRequest, EffectHistory, EffectTransaction, Owner, Payload,
        TransactionEnd, Transactions, UnsettledPage, UnsettledQuery,
    },
};

use crate::{books::*, on_each_database};

on_each_database![
    a_commit_whose_acknowledgement_is_lost_counts,
    a_commit_that_was_lost_on_its_way_is_made_again,
];

/// A ledger whose first commit is not acknowledged.
#[derive(Debug)]
struct Losing {
    ledger: Arc<dyn Ledger>,
    /// Whether that commit is made.
    commits: bool,
    lost: Arc<AtomicBool>,
}

struct LosingTransaction {
    inner: Box<dyn EffectTransaction>,
    commits: bool,
    lost: Arc<AtomicBool>,
}

#[async_trait]
impl EffectTransaction for LosingTransaction {
    fn connection(&self) -> &(dyn Any + Send) {
        self.inner.connection()
    }

    fn connection_mut(&mut self) -> &mut (dyn Any + Send) {
        self.inner.connection_mut()
    }

    async fn settle(self: Box<Self>, owner: &Owner, change: &Change) -> TransactionEnd {
        if self.lost.swap(true, Ordering::SeqCst) {
            return self.inner.settle(owner, change).await;
        }
        if self.commits {
            let end = self.inner.settle(owner, change).await;
            assert!(matches!(end, TransactionEnd::Committed(_)), "{end:?}");
        } else {
            assert!(self.inner.roll_back().await);
        }
        TransactionEnd::Unacknowledged(LedgerError::new(LedgerErrorKind::Unavailable, "no answer to COMMIT"))
    }

    async fn roll_back(self: Box<Self>) -> bool {
        self.inner.roll_back().await
    }
}

#[async_trait]
impl Ledger for Losing {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        self.ledger.claim(request).await
    }

    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        self.ledger.change(owner, change).await
    }

    async fn read(&self, id: &EffectId) -> Result<Option<EffectHistory>, LedgerError> {
        self.ledger.read(id).await
    }

    async fn unsettled(&self, query: &UnsettledQuery) -> Result<UnsettledPage, LedgerError> {
        self.ledger.unsettled(query).await
    }

    async fn input(&self, id: &EffectId) -> Result<Option<Payload>, LedgerError> {
        self.ledger.input(id).await
    }

    fn transactions(&self) -> Transactions {
        self.ledger.transactions()
    }

    async fn begin(&self, limit: Duration) -> Result<Box<dyn EffectTransaction>, LedgerError> {
        let inner = self.ledger.begin(limit).await?;
        Ok(Box::new(LosingTransaction { inner, commits: self.commits, lost: self.lost.clone() }))
    }

    fn name(&self) -> &'static str {
        self.ledger.name()
    }

    async fn close(&self) {
        self.ledger.close().await;
    }
}

async fn lost(books: Books, commits: bool, expected: u32) {
    let losing = Losing { ledger: books.ledger.clone(), commits, lost: Arc::default() };
    let losing: Arc<dyn Ledger> = Arc::new(losing);
    let executor = builder(&losing).build().expect("a valid set-up");
    let (receipt, scope) = receipted(&executor);
    let booked = books.book(&scope, "l-1", &Script::of([])).await.expect("booked");
    assert_eq!((booked.attempt, receipt.replayed(), books.count("l-1").await), (expected, false, 1));
    let (receipt, scope) = receipted(&executor);
    let replay = books.book(&scope, "l-1", &Script::of([])).await.expect("stored");
    assert_eq!((replay, receipt.replayed(), books.count("l-1").await), (booked, true, 1));
}

async fn a_commit_whose_acknowledgement_is_lost_counts(books: Books) {
    lost(books, true, 1).await;
}

async fn a_commit_that_was_lost_on_its_way_is_made_again(books: Books) {
    lost(books, false, 2).await;
}
