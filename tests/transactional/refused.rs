//! What a transactional body must not do.

use effectual::{ErrorKind, SendRefused, TransactionRefused, ledger::record::State};

use crate::{books::*, on_each_database};

on_each_database![
    it_cannot_send,
    it_calls_no_effect,
    it_has_one_transaction,
    it_cannot_commit_by_itself,
    it_cannot_end_its_transaction,
    another_ledgers_connection_is_refused,
];

async fn failed_with(books: &Books, account: &str, act: Then) -> effectual::EffectError<BookError> {
    let executor = books.executor();
    let (receipt, scope) = receipted(&executor);
    let error = books.book(&scope, account, &Script::of([act])).await.expect_err("it may not");
    assert_eq!(history(&executor, &receipt).await.effect.state, State::Released, "{error}");
    assert_eq!(books.count(account).await, 0);
    error
}

async fn it_cannot_send(books: Books) {
    let error = failed_with(&books, "f-1", Then::Send).await;
    assert_eq!(error.error(), Some(&BookError::NotSent(SendRefused::Transactional)));
}

async fn it_calls_no_effect(books: Books) {
    let error = failed_with(&books, "f-2", Then::Nest).await;
    assert_eq!(error.kind(), ErrorKind::Failed, "{error}");
}

async fn it_has_one_transaction(books: Books) {
    let error = failed_with(&books, "f-3", Then::Twice).await;
    assert_eq!(error.error(), Some(&BookError::NoTransaction(TransactionRefused::AlreadyLent)));
}

/// SQLite keeps it from committing; PostgreSQL cannot, so that nobody knows what was written.
async fn it_cannot_commit_by_itself(books: Books) {
    let executor = books.executor();
    let (receipt, scope) = receipted(&executor);
    let result = books.book(&scope, "f-4", &Script::of([Then::Commit])).await;
    let state = history(&executor, &receipt).await.effect.state;
    if books.is_sqlite() {
        assert_eq!((result.expect("the second attempt").attempt, state), (2, State::Completed));
        assert_eq!(books.count("f-4").await, 1);
    } else {
        let error = result.expect_err("nobody knows");
        assert_eq!((error.kind(), state), (ErrorKind::Escaped, State::Escaped), "{error}");
        assert!(error.to_string().contains("ended the transaction by itself"), "{error}");
        let (_, scope) = receipted(&executor);
        let error = books.book(&scope, "f-4", &Script::of([])).await.expect_err("an operator resolves it");
        assert_eq!((error.kind(), books.count("f-4").await), (ErrorKind::Escaped, 1));
    }
}

async fn it_cannot_end_its_transaction(books: Books) {
    let executor = books.executor();
    let (_, scope) = receipted(&executor);
    let result = books.book(&scope, "f-5", &Script::of([Then::Rollback])).await;
    if books.is_sqlite() {
        assert_eq!((result.expect("the second attempt").attempt, books.count("f-5").await), (2, 1));
    } else {
        assert_eq!(result.expect_err("nobody knows").kind(), ErrorKind::Escaped);
        assert_eq!(books.count("f-5").await, 0);
    }
}

async fn another_ledgers_connection_is_refused(books: Books) {
    let executor = books.executor();
    let (_, scope) = receipted(&executor);
    let script = Script::of([]);
    let error = match books.is_sqlite() {
        true => postgres::book(&scope, "f-6".into(), script).await,
        false => sqlite::book(&scope, "f-6".into(), script).await,
    };
    let error = error.expect_err("it is another ledger");
    assert_eq!(error.error(), Some(&BookError::NoTransaction(TransactionRefused::OtherLedger)), "{error}");
    assert_eq!(books.count("f-6").await, 0);
}
