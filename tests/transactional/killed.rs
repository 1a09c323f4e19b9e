//! A process dies before or after its commit, and another goes on.

use effectual::ledger::record::State;
use effectual_tests::process::Process;

use crate::{books::*, child, on_each_database};

on_each_database![
    what_was_written_before_the_commit_is_gone_and_is_written_again,
    what_was_committed_is_replayed,
];

/// Kills a child that has come as far as `told`, and calls again when its lease has ended.
async fn killed(books: &Books, number: u64, told: &str) -> (Booked, bool, State) {
    let (kind, at) = books.told();
    let mut child = Process::start("child::books_and_waits", &at, number, |command| {
        command.env(child::KIND, kind);
    });
    assert_eq!(child.next_line().as_deref(), Some(told));
    child.kill();
    // An hour later, by another process's clock.
    let executor = builder(&books.another(3_600_000).await).build().expect("a valid set-up");
    let (receipt, scope) = receipted(&executor);
    let booked = books.book(&scope, "k-1", &Script::of([])).await.expect("booked");
    let state = history(&executor, &receipt).await.effect.state;
    (booked, receipt.replayed(), state)
}

async fn what_was_written_before_the_commit_is_gone_and_is_written_again(books: Books) {
    let (booked, replayed, state) = killed(&books, 1, "written").await;
    assert_eq!((booked.attempt, replayed, state), (2, false, State::Completed));
    assert_eq!(books.count("k-1").await, 1);
}

async fn what_was_committed_is_replayed(books: Books) {
    let (booked, replayed, state) = killed(&books, 2, "committed").await;
    assert_eq!((booked.attempt, replayed, state), (1, true, State::Completed));
    assert_eq!(books.count("k-1").await, 1);
}
