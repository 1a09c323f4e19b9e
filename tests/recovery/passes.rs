//! What a pass takes up, and what it leaves alone.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use effectual::{
    ErrorKind, Executor, Found, Ledger, Recovery, RecoveryClass,
    ledger::{ClaimRequest, record::State},
};
use effectual_tests::{
    on_each_ledger,
    scripted::{Act, Scripted, ScriptedError},
    wait::until,
};

use crate::{durable::wait_until_due, effects::*};

const LIMIT: Duration = Duration::from_secs(60);

on_each_ledger![
    a_provider_that_can_be_asked_finds_it,
    what_is_absent_waits_for_its_caller,
    a_look_up_that_cannot_tell_backs_off,
    f38_what_nobody_can_know_is_made_visible,
    f64_an_unknown_operation_is_left_and_told_of,
    held_effects_do_not_hide_the_others,
    f09_a_running_effect_is_never_recovered,
    f60_each_of_1000_is_taken_once_by_16,
    f37_attempts_are_counted_by_effect,
    a_drained_executor_recovers_nothing,
];

fn asked(name: &str) -> ClaimRequest {
    ClaimRequest { provider: Some("asked".into()), ..left("asking", name, RecoveryClass::Reconcile) }
}

async fn a_provider_that_can_be_asked_finds_it(ledger: Arc<dyn Ledger>) {
    let mut world = World::of(Scripted::forgetful([Act::PerformAndLose]));
    // The call itself cannot ask: it has no value of the provider's type that knows.
    world.asked.says = Some(Found::Unknown);
    let caller = world.executor(&ledger);
    let error = asking(&scope(&caller), "o-1".into(), world.provider.clone()).await.expect_err("lost");
    assert_eq!(error.kind(), ErrorKind::Escaped);
    world.asked.says = None;
    let report = world.executor(&ledger).recover().await.expect("a pass");
    assert_eq!((report.due, report.completed), (1, 1), "{report:?}");
    assert_eq!(world.provider.keys().len(), 1, "nothing was sent again");
    let done = asking(&scope(&caller), "o-1".into(), world.provider.clone()).await.expect("a replay");
    assert_eq!(done.number, 1);
}

async fn what_is_absent_waits_for_its_caller(ledger: Arc<dyn Ledger>) {
    let mut world = World::of(Scripted::forgetful([Act::LoseOnly]));
    world.asked.says = Some(Found::Unknown);
    let caller = world.executor(&ledger);
    let _ = asking(&scope(&caller), "o-2".into(), world.provider.clone()).await.expect_err("lost");
    world.asked.says = None;
    let other = world.executor(&ledger);
    // "Absent" counts once the lost request cannot arrive any more: the attempt's timeout. Until then it stays in doubt.
    until("the absence to count", LIMIT, async || other.recover().await.expect("a pass").released == 1).await;
    assert!(other.recovered().taken <= 2, "asked when the answer counts, and not in between");
    assert_eq!(world.provider.performed(), 0, "nobody is there to perform it");
    let done = asking(&scope(&caller), "o-2".into(), world.provider.clone()).await.expect("the caller is");
    assert_eq!((done.number, world.provider.performed()), (1, 1));
}

async fn a_look_up_that_cannot_tell_backs_off(ledger: Arc<dyn Ledger>) {
    let mut world = World::default();
    world.asked.says = Some(Found::Unknown);
    let executor = world.executor(&ledger);
    let record = leave(&*ledger, &asked("o-3")).await;
    wait_until_due(&*ledger, 1).await;
    for _ in 0..5 {
        executor.recover().await.expect("a pass");
    }
    assert_eq!(world.asked.asked.load(Ordering::SeqCst), 1, "not asked hot");
    let row = row(&*ledger, &record.id).await;
    assert_eq!(row.state, State::Escaped);
    let wait = row.not_before.expect("when to ask again is stored") - row.lease_until;
    assert!((20_000..=40_000).contains(&wait), "about the interval: {wait}");
}

async fn f38_what_nobody_can_know_is_made_visible(ledger: Arc<dyn Ledger>) {
    let executor = World::default().executor(&ledger);
    let held = leave(&*ledger, &left("holding", "o-4", RecoveryClass::Hold)).await;
    // Of a class whose way out needs what a recovery does not have.
    let rerun = leave(&*ledger, &left("holding", "o-5", RecoveryClass::Rerun)).await;
    wait_until_due(&*ledger, 2).await;
    let report = executor.recover().await.expect("a pass");
    assert_eq!((report.taken, report.escaped), (2, 2), "{report:?}");
    for record in [held, rerun] {
        let row = row(&*ledger, &record.id).await;
        assert_eq!((row.state, row.attempt, row.fence), (State::Escaped, 1, 1));
        assert!(row.doubt.is_some());
    }
    let report = executor.recover().await.expect("a pass");
    assert_eq!((report.due, report.waiting, report.taken), (1, 1, 0), "written once: {report:?}");
}

async fn f64_an_unknown_operation_is_left_and_told_of(ledger: Arc<dyn Ledger>) {
    let executor = World::default().executor(&ledger);
    let record = leave(&*ledger, &left("of-another-binary", "o-6", RecoveryClass::Rerun)).await;
    let moved = ClaimRequest { provider: Some("elsewhere".into()), ..asked("moved") };
    leave(&*ledger, &moved).await;
    wait_until_due(&*ledger, 2).await;
    let report = executor.recover().await.expect("a pass");
    let told: Vec<_> = report.no_handler.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    assert_eq!(told, [("asking", 1), ("of-another-binary", 1)]);
    assert_eq!(report.taken, 0);
    assert_eq!(row(&*ledger, &record.id).await, record);
    assert_eq!(executor.recovered().no_handler.len(), 2);
}

/// Any number of effects that wait for an operator cost a pass nothing.
async fn held_effects_do_not_hide_the_others(ledger: Arc<dyn Ledger>) {
    let world =
        World { asked: Asked { says: Some(Found::Done(done())), ..Asked::default() }, ..World::default() };
    let executor = world.executor(&ledger);
    for number in 0..60 {
        leave(&*ledger, &left("holding", &number.to_string(), RecoveryClass::Hold)).await;
    }
    wait_until_due(&*ledger, 60).await;
    assert_eq!(executor.recover().await.expect("a pass").escaped, 60);
    leave(&*ledger, &asked("o-7")).await;
    wait_until_due(&*ledger, 1).await;
    let report = executor.recover().await.expect("a pass");
    assert_eq!((report.due, report.completed), (1, 1), "{report:?}");
}

fn done() -> serde_json::Value {
    serde_json::json!({ "number": 1, "what": "o" })
}

async fn f09_a_running_effect_is_never_recovered(ledger: Arc<dyn Ledger>) {
    let world = World::default();
    let executor = || {
        world
            .builder(&ledger)
            .attempt_timeout(Duration::from_secs(30))
            .lease(Duration::from_secs(31))
            .recovery(Recovery::every(Duration::from_millis(10)))
            .build()
            .expect("a valid set-up")
    };
    let (here, elsewhere) = (executor(), executor());
    let scope = scope(&here);
    let call = tokio::spawn(waiting(&scope, "o-8".into(), world.gate.clone()));
    until("the body to run", LIMIT, async || world.gate.entered.load(Ordering::SeqCst) == 1).await;
    let passes = |executor: &Executor| executor.recovered().passes;
    let before = passes(&here).max(passes(&elsewhere));
    until("passes beside it", LIMIT, async || passes(&here).min(passes(&elsewhere)) > before + 50).await;
    world.gate.open.notify_one();
    assert_eq!(call.await.expect("no panic").expect("performed"), 1);
    assert_eq!(world.gate.entered.load(Ordering::SeqCst), 1);
    assert_eq!(here.recovered().taken + elsewhere.recovered().taken, 0);
}

async fn f60_each_of_1000_is_taken_once_by_16(ledger: Arc<dyn Ledger>) {
    const ROWS: usize = 1_000;
    let world =
        World { asked: Asked { says: Some(Found::Done(done())), ..Asked::default() }, ..World::default() };
    let mut leaving = tokio::task::JoinSet::new();
    for number in 0..ROWS {
        let ledger = ledger.clone();
        leaving.spawn(async move { leave(&*ledger, &asked(&number.to_string())).await.id });
    }
    let left = leaving.join_all().await;
    wait_until_due(&*ledger, ROWS).await;
    let recovery = Recovery::every(Duration::from_millis(10));
    let executors: Vec<_> =
        (0..16).map(|_| world.builder(&ledger).recovery(recovery).build().expect("a valid set-up")).collect();
    let completed = || executors.iter().map(|executor| executor.recovered().completed).sum::<u64>();
    until("all to be recovered", LIMIT, async || completed() >= ROWS as u64).await;
    for executor in &executors {
        executor.drain(LIMIT).await;
    }
    assert_eq!(completed(), ROWS as u64);
    assert_eq!(world.asked.asked.load(Ordering::SeqCst), ROWS as u64, "each was asked about once");
    for id in left {
        let row = row(&*ledger, &id).await;
        assert_eq!((row.state, row.fence), (State::Completed, 2), "taken once");
    }
    let shared = executors.iter().filter(|executor| executor.recovered().completed > 0).count();
    assert!(shared > 1, "they shared the work");
}

async fn f37_attempts_are_counted_by_effect(ledger: Arc<dyn Ledger>) {
    let world = World::of(Scripted::forgetful(std::iter::repeat_n(Act::NoConnection, 4)));
    let executor = world.builder(&ledger).retry(once().attempts_max(5)).build().expect("a valid set-up");
    let (one, other) = (effectual::Receipt::new(), effectual::Receipt::new());
    let first = scope(&executor).with_receipt(&one);
    holding(&first, "o-9".into(), world.provider.clone()).await.expect("the fifth attempt");
    let second = scope(&executor).with_receipt(&other);
    holding(&second, "o-10".into(), world.provider.clone()).await.expect("the first attempt");
    let attempts = async |receipt: &effectual::Receipt| {
        row(&*ledger, &receipt.effect_id().expect("an identity")).await.attempt
    };
    assert_eq!((attempts(&one).await, attempts(&other).await), (5, 1));
    let refusing = World::of(Scripted::forgetful([Act::Refuse]));
    let error = holding(&scope(&executor), "o-11".into(), refusing.provider).await.expect_err("refused");
    assert!(matches!(error.into_error(), Some(ScriptedError::Declined { .. })), "the typed error");
}

async fn a_drained_executor_recovers_nothing(ledger: Arc<dyn Ledger>) {
    let world = World::default();
    let executor = world.executor(&ledger);
    let record = leave(&*ledger, &left("holding", "o-12", RecoveryClass::Hold)).await;
    wait_until_due(&*ledger, 1).await;
    executor.drain(LIMIT).await;
    assert_eq!(executor.recover().await.expect("a pass").due, 0);
    assert_eq!(row(&*ledger, &record.id).await, record);
}
