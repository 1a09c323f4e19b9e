//! Effects keyed by where they are made.

use std::sync::Arc;

use effectual::{EffectContext, Ledger, NodeExecution, RunId, effect};
use effectual_tests::{
    on_each_ledger,
    scripted::{Done, Scripted, ScriptedError},
};

use crate::effects::*;

on_each_ledger![
    a_re_executed_node_replays_in_another_polling_order,
    two_calls_are_two_effects_and_a_fork_performs_again,
];

#[effect(keying = activity_recipe)]
async fn notify(
    cx: &EffectContext,
    text: String,
    #[skip] provider: Scripted,
) -> effectual::Result<Done, ScriptedError> {
    Ok(provider.send(cx, &text).await?)
}

fn node(ledger: &Arc<dyn Ledger>, run: &str) -> NodeExecution {
    let run = RunId::parse(run).expect("a run id");
    executor(ledger)
        .tenant("acme")
        .expect("a tenant")
        .run(run)
        .expect("its run")
        .node("notify")
        .expect("a node")
}

const RUN: &str = "acme/run-0123456789abcdef";

async fn a_re_executed_node_replays_in_another_polling_order(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let first = {
        let node = node(&ledger, RUN);
        let (one, two) =
            (notify(&node, "one".into(), provider.clone()), notify(&node, "two".into(), provider.clone()));
        let (one, two) = tokio::join!(one, two);
        (one.expect("performed"), two.expect("performed"))
    };
    let node = node(&ledger, RUN);
    let (one, two) =
        (notify(&node, "one".into(), provider.clone()), notify(&node, "two".into(), provider.clone()));
    // Polled the other way round: the ordinals were taken when the functions were called.
    let two = two.await.expect("replayed");
    let one = one.await.expect("replayed");
    assert_eq!((one, two), first);
    assert_eq!(provider.performed(), 2);
}

async fn two_calls_are_two_effects_and_a_fork_performs_again(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let original = node(&ledger, RUN);
    notify(&original, "same".into(), provider.clone()).await.expect("performed");
    notify(&original, "same".into(), provider.clone()).await.expect("performed");
    assert_eq!(provider.performed(), 2);
    let fork = node(&ledger, "acme/fork-0123456789abcdef");
    notify(&fork, "same".into(), provider.clone()).await.expect("performed");
    assert_eq!(provider.performed(), 3);
}
