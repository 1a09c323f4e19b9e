//! A body that does not return `Ok` leaves nothing behind, and no doubt: the roll-back proves it.

use effectual::{
    ErrorKind,
    ledger::record::{AttemptVerdict, State},
};

use crate::{books::*, on_each_database};

on_each_database![
    an_error_rolls_back_and_is_tried_again,
    an_error_in_the_end_is_not_performed,
    a_refusal_rolls_back_and_is_stored,
    a_panic_rolls_back,
    a_body_that_takes_too_long_is_rolled_back,
    an_error_that_the_body_swallows,
];

async fn an_error_rolls_back_and_is_tried_again(books: Books) {
    for (account, act) in [("r-1", Then::Lose), ("r-2", Then::Busy)] {
        let executor = books.executor();
        let (receipt, scope) = receipted(&executor);
        let booked = books.book(&scope, account, &Script::of([act])).await.expect("the second attempt");
        assert_eq!((booked.attempt, books.count(account).await), (2, 1));
        let history = history(&executor, &receipt).await;
        let ends: Vec<_> = history.closed.iter().map(|closed| closed.end.verdict).collect();
        assert_eq!(ends, [AttemptVerdict::NotPerformed], "whatever its error says");
    }
}

/// The next call performs what the failed one did not.
async fn then_performs(books: &Books, account: &str, script: &Script, expected: u32) {
    let executor = books.executor();
    let (receipt, scope) = receipted(&executor);
    let booked = books.book(&scope, account, script).await.expect("performed");
    assert_eq!((booked.attempt, receipt.replayed(), books.count(account).await), (expected, false, 1));
}

async fn an_error_in_the_end_is_not_performed(books: Books) {
    let executor = books.executor();
    let script = Script::of([Then::Lose; 3]);
    let (receipt, scope) = receipted(&executor);
    let error = books.book(&scope, "r-3", &script).await.expect_err("each attempt fails");
    assert_eq!((error.kind(), error.error()), (ErrorKind::Failed, Some(&BookError::Sql)), "{error}");
    let record = history(&executor, &receipt).await.effect;
    assert_eq!((record.state, record.doubt, books.count("r-3").await), (State::Released, None, 0));
    then_performs(&books, "r-3", &script, 4).await;
}

async fn a_refusal_rolls_back_and_is_stored(books: Books) {
    let executor = books.executor();
    let script = Script::of([Then::Refuse]);
    for _ in 0..2 {
        let (_, scope) = receipted(&executor);
        let error = books.book(&scope, "r-4", &script).await.expect_err("refused");
        assert_eq!((error.kind(), error.error()), (ErrorKind::Refused, Some(&BookError::Closed)));
        assert_eq!(books.count("r-4").await, 0);
    }
}

async fn a_panic_rolls_back(books: Books) {
    let executor = books.executor();
    let script = Script::of([Then::Panic]);
    let (receipt, scope) = receipted(&executor);
    let error = books.book(&scope, "r-5", &script).await.expect_err("it panicked");
    assert_eq!(error.kind(), ErrorKind::Failed, "{error}");
    assert!(error.to_string().contains("rolled back") && !error.to_string().contains("own panic"), "{error}");
    assert_eq!(history(&executor, &receipt).await.effect.state, State::Released);
    then_performs(&books, "r-5", &script, 2).await;
}

async fn a_body_that_takes_too_long_is_rolled_back(books: Books) {
    let executor = books.executor();
    let script = Script::of([Then::Hang]);
    let (receipt, scope) = receipted(&executor);
    let error = books.book(&scope, "r-6", &script).await.expect_err("it takes too long");
    assert_eq!(error.kind(), ErrorKind::Failed, "{error}");
    assert_eq!(history(&executor, &receipt).await.effect.state, State::Released);
    then_performs(&books, "r-6", &script, 2).await;
}

/// In PostgreSQL a transaction with an error in it commits nothing, whatever the body makes of it; in SQLite the
/// statement alone failed.
async fn an_error_that_the_body_swallows(books: Books) {
    let executor = books.executor();
    let (_, scope) = receipted(&executor);
    let booked = books.book(&scope, "r-7", &Script::of([Then::Swallow])).await.expect("booked");
    let expected = if books.is_sqlite() { 1 } else { 2 };
    assert_eq!((booked.attempt, books.count("r-7").await), (expected, 1));
}
