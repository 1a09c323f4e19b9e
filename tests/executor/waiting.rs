//! Several callers of one effect.

use std::{sync::Arc, time::Duration};

use effectual::{ErrorKind, Ledger};
use effectual_tests::{
    on_each_ledger,
    scripted::{Act, Scripted},
};

use crate::effects::*;

on_each_ledger![
    sixty_four_tasks_are_one_performance_and_identical_replays,
    two_executors_are_one_performance,
    a_loser_that_does_not_wait_is_told_of_the_lease,
    a_loser_whose_winner_fails_does_not_pile_on,
];

async fn sixty_four_tasks_are_one_performance_and_identical_replays(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let executor = executor(&ledger);
    let calls: Vec<_> = (0..64)
        .map(|_| {
            let (receipt, scope) = receipted(&executor);
            let provider = provider.clone();
            tokio::spawn(async move {
                let done = holding(&scope, "o-1".into(), 5, provider).await.expect("one outcome for all");
                (done, receipt.replayed())
            })
        })
        .collect();
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.expect("no panic"));
    }
    assert_eq!(provider.performed(), 1);
    assert!(answers.iter().all(|(done, _)| *done == answers[0].0));
    assert_eq!(answers.iter().filter(|(_, replayed)| *replayed).count(), 63);
}

async fn two_executors_are_one_performance(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let executors = [executor(&ledger), executor(&ledger)];
    let calls: Vec<_> = (0..32)
        .map(|number| {
            let scope = executors[number % 2].tenant("acme").expect("a tenant");
            tokio::spawn(holding(&scope, "o-2".into(), 5, provider.clone()))
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.expect("no panic").expect("one outcome for all").number, 1);
    }
    assert_eq!(provider.performed(), 1);
}

async fn a_loser_that_does_not_wait_is_told_of_the_lease(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([Act::PerformAndHang]);
    let waiting = executor(&ledger);
    let lease = Duration::from_secs(60);
    let impatient = builder(&ledger).lease(lease).wait(Duration::ZERO).build().expect("a valid set-up");
    let (_, scope) = receipted(&impatient);
    let first = tokio::spawn(holding(&receipted(&waiting).1, "o-3".into(), 5, provider.clone()));
    provider.next_arrival().await;
    let error = holding(&scope, "o-3".into(), 5, provider.clone()).await.expect_err("in flight");
    assert_eq!(error.kind(), ErrorKind::InFlight);
    let left = error.retry_after().expect("the rest of the lease");
    assert!(left > Duration::ZERO && left <= Duration::from_secs(2), "{left:?}");
    assert_eq!(first.await.expect("no panic").expect_err("timed out").kind(), ErrorKind::Escaped);
    assert_eq!(provider.performed(), 1);
}

async fn a_loser_whose_winner_fails_does_not_pile_on(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful(std::iter::repeat_n(Act::NoConnection, 4));
    let retry = quick().base(Duration::from_millis(50));
    let executor = builder(&ledger).retry(retry).build().expect("a valid set-up");
    let first = tokio::spawn(holding(&receipted(&executor).1, "o-4".into(), 5, provider.clone()));
    provider.next_arrival().await;
    let waiter =
        holding(&receipted(&executor).1, "o-4".into(), 5, provider.clone()).await.expect_err("released");
    assert_eq!((waiter.kind(), waiter.retry_after()), (ErrorKind::RetryLater, Some(Duration::ZERO)));
    assert_eq!(first.await.expect("no panic").expect_err("never connected").kind(), ErrorKind::Failed);
    assert_eq!((provider.keys().len(), provider.performed()), (4, 0));
}
