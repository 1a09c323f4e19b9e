//! A body that is taken for dead and is not: its settle is compared in its own transaction, and nothing of it is left.

use effectual::ledger::record::{AttemptVerdict, State};

use crate::{books::*, on_each_database};

on_each_database![a_body_that_was_taken_over_commits_nothing];

/// Another process, whose clock is an hour ahead, takes the effect over while the body waits. On SQLite it cannot before
/// the body's transaction is over: there the first one commits, and the other finds its outcome.
async fn a_body_that_was_taken_over_commits_nothing(books: Books) {
    let (first, second) =
        (books.executor(), builder(&books.another(3_600_000).await).build().expect("valid"));
    let script = Script::of([Then::Wait]);
    let (receipt, scope) = receipted(&first);
    let (_, other_scope) = receipted(&second);
    let slow = books.book(&scope, "t-1", &script);
    let other = async {
        script.waiting().await;
        let quick = Script::of([]);
        let other = books.book(&other_scope, "t-1", &quick);
        if books.is_sqlite() {
            script.go.add_permits(1);
            return other.await;
        }
        let other = other.await;
        script.go.add_permits(1);
        other
    };
    let (slow, other) = tokio::join!(slow, other);
    let (slow, other) = (slow.expect("an outcome"), other.expect("an outcome"));
    assert_eq!(slow, other, "one outcome for both");
    assert_eq!(books.count("t-1").await, 1);
    let history = history(&first, &receipt).await;
    assert_eq!(history.effect.state, State::Completed);
    assert!(!history.effect.late_success && !history.effect.double_suspected && history.evidence.is_empty());
    if !books.is_sqlite() {
        assert_eq!(slow.attempt, 2, "the second one's");
        let ends: Vec<_> = history.closed.iter().map(|closed| closed.end.verdict).collect();
        assert_eq!(ends, [AttemptVerdict::NotPerformed], "it can no longer commit");
    }
}
