//! What the body wrote is there when the outcome is, once.

use effectual::{
    Ledger,
    ledger::record::{OutcomeBody, State},
};
use effectual_tests::vault::Vault;
use tokio::task::JoinSet;

use crate::{books::*, on_each_database};

on_each_database![
    a_booking_and_its_outcome_commit_together,
    many_calls_of_one_effect_are_one_booking,
    many_effects_at_once_are_a_booking_each,
    a_caller_that_goes_away_leaves_the_booking,
    a_savepoint_of_the_body_is_its_own,
    a_guard_that_is_kept_for_ever_keeps_nothing_open,
    a_body_that_writes_nothing_has_an_outcome,
    an_outcome_that_commits_with_its_booking_is_sealed,
];

async fn a_booking_and_its_outcome_commit_together(books: Books) {
    let executor = books.executor();
    let script = Script::of([]);
    for replayed in [false, true, true] {
        let (receipt, scope) = receipted(&executor);
        let booked = books.book(&scope, "a-1", &script).await.expect("booked");
        assert_eq!((booked.attempt, receipt.replayed()), (1, replayed));
        assert_eq!(books.count("a-1").await, 1);
        assert_eq!(history(&executor, &receipt).await.effect.state, State::Completed);
    }
}

async fn many_calls_of_one_effect_are_one_booking(books: Books) {
    let executors = [books.executor(), builder(&books.another(0).await).build().expect("a valid set-up")];
    let script = Script::of([]);
    let is_sqlite = books.is_sqlite();
    let mut calls = JoinSet::new();
    for call in 0..32 {
        let (_, scope) = receipted(&executors[call % 2]);
        let script = script.clone();
        calls.spawn(async move {
            match is_sqlite {
                true => sqlite::book(&scope, "a-2".into(), script).await,
                false => postgres::book(&scope, "a-2".into(), script).await,
            }
        });
    }
    for booked in calls.join_all().await {
        assert_eq!(booked.expect("one outcome for all").attempt, 1);
    }
    assert_eq!(books.count("a-2").await, 1);
}

async fn many_effects_at_once_are_a_booking_each(books: Books) {
    let executor = books.executor();
    let mut calls = JoinSet::new();
    let is_sqlite = books.is_sqlite();
    for call in 0..16 {
        let (_, scope) = receipted(&executor);
        calls.spawn(async move {
            let (account, script) = (format!("a-3-{call}"), Script::of([]));
            match is_sqlite {
                true => sqlite::book(&scope, account, script).await,
                false => postgres::book(&scope, account, script).await,
            }
        });
    }
    for booked in calls.join_all().await {
        let booked = booked.expect("booked");
        assert_eq!(books.count(&booked.account).await, 1);
    }
}

async fn a_caller_that_goes_away_leaves_the_booking(books: Books) {
    let executor = books.executor();
    let script = Script::of([Then::Wait]);
    let (_, scope) = receipted(&executor);
    let call = tokio::spawn({
        let (script, is_sqlite) = (script.clone(), books.is_sqlite());
        async move {
            match is_sqlite {
                true => sqlite::book(&scope, "a-4".into(), script).await,
                false => postgres::book(&scope, "a-4".into(), script).await,
            }
        }
    });
    script.waiting().await;
    call.abort();
    script.go.add_permits(1);
    let (receipt, scope) = receipted(&executor);
    let booked = books.book(&scope, "a-4", &script).await.expect("the outcome of the call that went away");
    assert_eq!((booked.attempt, receipt.replayed(), books.count("a-4").await), (1, true, 1));
}

async fn a_savepoint_of_the_body_is_its_own(books: Books) {
    let executor = books.executor();
    let (_, scope) = receipted(&executor);
    books.book(&scope, "a-5", &Script::of([Then::Savepoint])).await.expect("booked");
    assert_eq!(books.count("a-5").await, 1);
}

async fn a_guard_that_is_kept_for_ever_keeps_nothing_open(books: Books) {
    let executor = books.executor();
    let (_, scope) = receipted(&executor);
    books.book(&scope, "a-6", &Script::of([Then::Forget])).await.expect("booked");
    books.book(&scope, "a-7", &Script::of([])).await.expect("nothing is in the way");
    assert_eq!((books.count("a-6").await, books.count("a-7").await), (1, 1));
    books.ledger.close().await;
}

async fn a_body_that_writes_nothing_has_an_outcome(books: Books) {
    let executor = books.executor();
    for replayed in [false, true] {
        let (receipt, scope) = receipted(&executor);
        books.book(&scope, "a-8", &Script::of([Then::Idle])).await.expect("an outcome");
        assert_eq!((receipt.replayed(), books.count("a-8").await), (replayed, 0));
    }
}

async fn an_outcome_that_commits_with_its_booking_is_sealed(books: Books) {
    let ledger = books.another(0).await;
    let sealing = builder(&ledger).payload_codec(Vault::new("vault/1", 1)).build().expect("a valid set-up");
    for replayed in [false, true] {
        let (receipt, scope) = receipted(&sealing);
        let booked = books.book(&scope, "a-sealed", &Script::of([])).await.expect("booked");
        assert_eq!((booked.account.as_str(), receipt.replayed()), ("a-sealed", replayed));
        let id = receipt.effect_id().expect("an identity");
        let stored = ledger.read(&id).await.expect("an answer").expect("recorded").effect.outcome;
        let OutcomeBody::Payload(payload) = stored.expect("an outcome").body else { panic!("a payload") };
        assert_eq!(payload.codec, "json/1+vault/1");
        assert!(!String::from_utf8_lossy(&payload.bytes).contains("a-sealed"));
    }
    assert_eq!(books.count("a-sealed").await, 1);
}
