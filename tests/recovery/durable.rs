//! Effects whose arguments are stored: finished by whoever knows the operation, under the same key.

use std::sync::{Arc, atomic::Ordering};

use effectual::{EffectId, ErrorKind, Ledger, Receipt, RecoveryClass, ledger::record::State};
use effectual_tests::{
    on_each_ledger,
    scripted::{Act, Scripted},
};

use crate::effects::*;

on_each_ledger![
    a_lost_answer_is_sent_again_under_the_same_key,
    what_never_arrived_is_performed,
    a_look_up_by_path_has_its_arguments,
    a_recipe_is_recovered_in_its_place,
    arguments_that_do_not_decode_are_left,
    a_failing_provider_is_not_asked_hot,
];

async fn id_of(receipt: &Receipt) -> EffectId {
    receipt.effect_id().expect("a call that ended has an identity")
}

async fn a_lost_answer_is_sent_again_under_the_same_key(ledger: Arc<dyn Ledger>) {
    let world = World::of(Scripted::deduplicating([Act::PerformAndLose]));
    let (first, second) = (world.executor(&ledger), world.executor(&ledger));
    let receipt = Receipt::new();
    let scope_of_first = scope(&first).with_receipt(&receipt);
    let error =
        shipping(&scope_of_first, "o-1".into(), u128::MAX, world.provider.clone()).await.expect_err("lost");
    assert_eq!(error.kind(), ErrorKind::Escaped);
    let report = second.recover().await.expect("a pass");
    assert_eq!((report.due, report.taken, report.completed), (1, 1, 1), "{report:?}");
    let keys = world.provider.keys();
    assert_eq!((world.provider.performed(), keys.len()), (1, 2));
    assert_eq!(keys[0], keys[1]);
    let done =
        shipping(&scope(&first), "o-1".into(), u128::MAX, Scripted::default()).await.expect("a replay");
    assert_eq!(done.what, format!("o-1/{}", u128::MAX), "every digit of the argument came back");
    let row = row(&*ledger, &id_of(&receipt).await).await;
    assert_eq!((row.state, row.attempt, row.fence), (State::Completed, 2, 2));
    assert_eq!(second.recover().await.expect("a pass").due, 0);
}

async fn what_never_arrived_is_performed(ledger: Arc<dyn Ledger>) {
    let world = World::of(Scripted::forgetful([Act::NoConnection]));
    let executor = world.executor(&ledger);
    let error = shipping(&scope(&executor), "o-2".into(), 5, world.provider.clone()).await.expect_err("down");
    assert_eq!(error.kind(), ErrorKind::Failed);
    let report = executor.recover().await.expect("a pass");
    assert_eq!((report.completed, world.provider.performed()), (1, 1), "{report:?}");
}

/// The look-up says "absent", the attempt loses its answer, and the look-up finds it: all of it over what was stored.
async fn a_look_up_by_path_has_its_arguments(ledger: Arc<dyn Ledger>) {
    let world = World::of(Scripted::forgetful([Act::PerformAndLose]));
    let executor = world.builder(&ledger).retry(once().attempts_max(3)).build().expect("a valid set-up");
    let mut request = left("labelling", "o-3", RecoveryClass::Reconcile);
    request.input = input(r#"{"order":"o-3"}"#);
    let record = leave(&*ledger, &request).await;
    // "Absent" counts once the attempt that was left can no longer act.
    let limit = std::time::Duration::from_secs(30);
    effectual_tests::wait::until("the absence to count", limit, async || {
        executor.recover().await.expect("a pass").completed == 1
    })
    .await;
    assert_eq!(world.provider.keys(), [request.provider_key.to_string()]);
    assert_eq!(world.provider.find(&request.provider_key).map(|done| done.what).as_deref(), Some("o-3"));
    let row = row(&*ledger, &record.id).await;
    assert_eq!((row.state, row.attempt, row.doubt), (State::Completed, 2, None));
}

/// A recipe names a place in a workflow; the recovered attempt is made there.
async fn a_recipe_is_recovered_in_its_place(ledger: Arc<dyn Ledger>) {
    let world = World::of(Scripted::forgetful([Act::NoConnection]));
    let executor = world.executor(&ledger);
    let run = scope(&executor).run(effectual::RunId::mint(&"acme".try_into().expect("a tenant")));
    let (receipt, node) = (Receipt::new(), run.expect("a run").node("charge").expect("a node"));
    let node = node.with_receipt(&receipt);
    let _ = labelling(&node, "o-3".into(), world.provider.clone()).await.expect_err("no connection");
    let before = row(&*ledger, &id_of(&receipt).await).await;
    assert_eq!(executor.recover().await.expect("a pass").completed, 1);
    let after = row(&*ledger, &before.id).await;
    assert_eq!((after.state, after.attempt, after.place), (State::Completed, 2, before.place));
}

async fn arguments_that_do_not_decode_are_left(ledger: Arc<dyn Ledger>) {
    let world = World::default();
    let executor = world.executor(&ledger);
    for (number, stored) in [r#"{"order":5}"#, "not JSON", "{}"].into_iter().enumerate() {
        let mut request = left("shipping", &number.to_string(), RecoveryClass::Rerun);
        request.provider = Some("windowed".into());
        request.input = input(stored);
        let record = leave(&*ledger, &request).await;
        wait_until_due(&*ledger, 1).await;
        let report = executor.recover().await.expect("a pass");
        assert_eq!((report.unreadable, report.taken), (number as u64 + 1, 0), "{report:?}");
        assert_eq!(row(&*ledger, &record.id).await, record, "left as it is");
    }
    assert_eq!(world.provider.performed(), 0);
}

async fn a_failing_provider_is_not_asked_hot(ledger: Arc<dyn Ledger>) {
    let world = World::of(Scripted::forgetful(std::iter::repeat_n(Act::NoConnection, 50)));
    let executor = world.executor(&ledger);
    let _ = shipping(&scope(&executor), "o-4".into(), 5, world.provider.clone()).await.expect_err("down");
    for _ in 0..3 {
        executor.recover().await.expect("a pass");
    }
    assert_eq!(world.provider.keys().len(), 2, "one attempt of the call, one of the recovery");
    assert_eq!(executor.recovered().released, 1);
    assert_eq!(world.gate.entered.load(Ordering::SeqCst), 0);
}

/// Waits until this many effects are due on the ledger's clock.
pub(crate) async fn wait_until_due(ledger: &dyn Ledger, count: usize) {
    let limit = std::time::Duration::from_secs(30);
    effectual_tests::wait::until("effects to be due", limit, async || {
        let query = effectual::ledger::UnsettledQuery { due_only: true, after: None, limit: 5_000 };
        ledger.unsettled(&query).await.expect("a page").effects.len() >= count
    })
    .await;
}

#[tokio::test]
async fn a_missing_resource_is_named_at_the_start() {
    let ledger: Arc<dyn Ledger> = Arc::new(effectual::MemoryLedger::new());
    let world = World::default();
    let builder = effectual::Executor::builder(ledger)
        .provider(world.asked)
        .resource(world.gate)
        .resource(crate::processes::Counter(String::new()));
    let error = builder.build().expect_err("nothing stands in for `provider`").to_string();
    for part in ["`provider`", "Scripted", ".resource(", "recovery::effects"] {
        assert!(error.contains(part), "{part} in {error}");
    }
}

#[tokio::test]
async fn an_operation_that_is_to_be_recovered_must_be_linked_in() {
    let ledger: Arc<dyn Ledger> = Arc::new(effectual::MemoryLedger::new());
    let world = World::default();
    assert!(world.builder(&ledger).recovers("shipping").build().is_ok());
    let error = world.builder(&ledger).recovers("sailing").build().expect_err("unknown").to_string();
    assert!(error.contains("sailing"), "{error}");
}
