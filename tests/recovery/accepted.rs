//! Effects that the provider accepted: polled to their end, never submitted again.

use std::{sync::Arc, time::Duration};

use effectual::{ErrorKind, Ledger, Polled, ledger::record::State};
use effectual_tests::{on_each_ledger, scripted::ScriptedError, wait::until};

use crate::{durable::wait_until_due, effects::*};

const LIMIT: Duration = Duration::from_secs(60);

/// What a call that goes away has in all: enough to submit on a busy machine.
const BRIEF: Duration = Duration::from_millis(1_500);
/// A job that runs for longer than that.
const BEYOND_BRIEF_MS: u64 = 2_000;

on_each_ledger![
    the_call_polls_to_the_end_of_the_job,
    past_its_budget_it_is_accepted_and_recovered,
    a_failed_job_is_a_refusal,
    an_unknown_handle_is_escaped,
    one_poller_settles,
    a_poll_that_cannot_tell_backs_off,
];

fn running(ms: u64) -> Polled<u32, ScriptedError> {
    Polled::Running { poll_after: Duration::from_millis(ms) }
}

async fn the_call_polls_to_the_end_of_the_job(ledger: Arc<dyn Ledger>) {
    for by_path in [true, false] {
        let jobs = Jobs::saying([running(5), Polled::Unknown, running(5)]);
        let world = World { jobs: jobs.clone(), ..World::default() };
        let executor = world.executor(&ledger);
        let ended = if by_path {
            exporting(&scope(&executor), "o-1".into(), jobs.clone()).await
        } else {
            batching(&scope(&executor), "o-1".into(), jobs.clone()).await
        };
        assert_eq!(ended.expect("the job's value"), 42);
        assert_eq!(jobs.counts(), (1, 4));
    }
}

async fn past_its_budget_it_is_accepted_and_recovered(ledger: Arc<dyn Ledger>) {
    let jobs = Jobs::saying([running(100_000)]);
    let world = World { jobs: jobs.clone(), ..World::default() };
    let executor = world.executor(&ledger);
    let receipt = effectual::Receipt::new();
    let with_receipt = scope(&executor).with_receipt(&receipt);
    let error = batching(&with_receipt, "o-2".into(), jobs.clone()).await.expect_err("not within 20 s");
    assert_eq!((error.kind(), error.handle()), (ErrorKind::Accepted, Some("job-1")));
    assert!(error.retry_after().is_some_and(|delay| delay > Duration::from_secs(90)), "{error:?}");
    let again = batching(&with_receipt, "o-2".into(), jobs.clone()).await.expect_err("still not");
    assert_eq!((again.kind(), again.handle()), (ErrorKind::Accepted, Some("job-1")));
    assert_eq!(executor.recover().await.expect("a pass").due, 0, "not before it is worth asking");
    assert_eq!(jobs.counts(), (1, 1));
    let row = row(&*ledger, &receipt.effect_id().expect("an identity")).await;
    let poll_after = row.accepted.expect("the handle is kept").poll_after;
    assert!(poll_after - row.lease_until > 90_000, "when to ask is stored");
}

async fn a_failed_job_is_a_refusal(ledger: Arc<dyn Ledger>) {
    let declined = ScriptedError::Declined { code: "bad_file".to_owned() };
    let jobs = Jobs::saying([running(1), Polled::Failed(declined.clone())]);
    let world = World { jobs: jobs.clone(), ..World::default() };
    let executor = world.executor(&ledger);
    for _ in 0..2 {
        let error = exporting(&scope(&executor), "o-3".into(), jobs.clone()).await.expect_err("failed");
        assert_eq!((error.kind(), error.error()), (ErrorKind::Refused, Some(&declined)));
    }
    assert_eq!(jobs.counts(), (1, 2));
}

async fn an_unknown_handle_is_escaped(ledger: Arc<dyn Ledger>) {
    let jobs = Jobs::saying(std::iter::repeat_n(Polled::UnknownHandle, 1_000));
    let world = World { jobs: jobs.clone(), ..World::default() };
    let executor = world.executor(&ledger);
    let receipt = effectual::Receipt::new();
    let with_receipt = scope(&executor).with_receipt(&receipt);
    let error = exporting(&with_receipt, "o-4".into(), jobs.clone()).await.expect_err("nobody knows");
    assert_eq!((error.kind(), error.handle()), (ErrorKind::Escaped, Some("job-1")));
    let again = exporting(&with_receipt, "o-4".into(), jobs.clone()).await.expect_err("nobody knows");
    assert!(matches!(again.kind(), ErrorKind::Escaped | ErrorKind::Accepted), "{again:?}");
    assert_eq!(jobs.counts().0, 1, "never submitted again, whatever its class");
    assert_eq!(row(&*ledger, &receipt.effect_id().expect("an identity")).await.state, State::Escaped);
}

/// A call that went away after the provider had accepted it: of all who ask, one settles.
async fn one_poller_settles(ledger: Arc<dyn Ledger>) {
    let jobs = Jobs::saying([running(BEYOND_BRIEF_MS)]);
    let world = World { jobs: jobs.clone(), ..World::default() };
    let brief = world.builder(&ledger).retry(once().elapsed_max(BRIEF));
    let brief = brief.build().expect("a valid set-up");
    let error = batching(&scope(&brief), "o-5".into(), jobs.clone()).await.expect_err("not yet");
    assert_eq!(error.kind(), ErrorKind::Accepted);
    let executors: Vec<_> = (0..8).map(|_| world.executor(&ledger)).collect();
    wait_until_due(&*ledger, 1).await;
    let passes: Vec<_> = executors
        .iter()
        .cloned()
        .map(|executor| tokio::spawn(async move { executor.recover().await.expect("a pass") }))
        .collect();
    let mut completed = 0;
    for pass in passes {
        completed += pass.await.expect("no panic").completed;
    }
    assert_eq!((completed, jobs.counts()), (1, (1, 2)));
    assert_eq!(batching(&scope(&brief), "o-5".into(), jobs.clone()).await.expect("a replay"), 42);
}

async fn a_poll_that_cannot_tell_backs_off(ledger: Arc<dyn Ledger>) {
    let jobs = Jobs::saying(
        [running(BEYOND_BRIEF_MS)].into_iter().chain(std::iter::repeat_n(Polled::Unknown, 1_000)),
    );
    let world = World { jobs: jobs.clone(), ..World::default() };
    let brief = world.builder(&ledger).retry(once().elapsed_max(BRIEF));
    let brief = brief.build().expect("a valid set-up");
    let _ = batching(&scope(&brief), "o-6".into(), jobs.clone()).await.expect_err("not yet");
    wait_until_due(&*ledger, 1).await;
    let executor = world.executor(&ledger);
    until("the poll", LIMIT, async || executor.recover().await.expect("a pass").accepted == 1).await;
    for _ in 0..3 {
        assert_eq!(executor.recover().await.expect("a pass").due, 0);
    }
    assert_eq!(jobs.counts(), (1, 2));
}
