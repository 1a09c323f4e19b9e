//! Effects keyed by where they are made.

use std::sync::Arc;

use effectual::{EffectContext, Ledger, Nested, NodeExecution, RunId, effect};
use effectual_tests::{
    on_each_ledger,
    scripted::{Act, Done, Scripted, ScriptedError},
};

use crate::effects::*;

on_each_ledger![
    a_re_executed_node_replays_in_another_polling_order,
    two_calls_are_two_effects_and_a_fork_performs_again,
    a_business_identity_takes_no_ordinal_of_its_node,
    an_attached_effect_takes_its_ordinal_at_the_call,
    ordinals_inside_an_effect_restart_with_each_attempt,
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

async fn a_business_identity_takes_no_ordinal_of_its_node(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let first = node(&ledger, RUN);
    let told = notify(&first, "told".into(), provider.clone()).await.expect("performed");
    // Executed again, the node makes another effect first: the recipe's ordinals are the same.
    let again = node(&ledger, RUN);
    holding(&again, "o-1".into(), 5, provider.clone()).await.expect("performed");
    assert_eq!(notify(&again, "told".into(), provider.clone()).await.expect("replayed"), told);
    assert_eq!(provider.performed(), 2);
}

#[effect(keying = activity_recipe, attached)]
async fn notify_lent(
    cx: &EffectContext,
    text: &str,
    #[skip] provider: &Scripted,
) -> effectual::Result<Done, ScriptedError> {
    Ok(provider.send(cx, text).await?)
}

async fn an_attached_effect_takes_its_ordinal_at_the_call(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let node_of_first = node(&ledger, RUN);
    let one = notify_lent(&node_of_first, "one", &provider).await.expect("performed");
    let two = notify_lent(&node_of_first, "two", &provider).await.expect("performed");
    let again = node(&ledger, RUN);
    let (first, second) = (notify_lent(&again, "one", &provider), notify_lent(&again, "two", &provider));
    assert_eq!(second.await.expect("replayed"), two);
    assert_eq!(first.await.expect("replayed"), one);
    assert_eq!(provider.performed(), 2);
}

/// Two effects inside, and a third step that fails at first.
#[effect(keying = business_identity, on_unknown = rerun)]
async fn in_three_steps(
    cx: &EffectContext,
    #[key] order: String,
    #[skip] inner: Scripted,
    #[skip] own: Scripted,
) -> effectual::Result<Done, ScriptedError> {
    notify(cx, format!("{order}: one"), inner.clone()).await.nested()?;
    notify(cx, format!("{order}: two"), inner).await.nested()?;
    Ok(own.send(cx, &order).await?)
}

async fn ordinals_inside_an_effect_restart_with_each_attempt(ledger: Arc<dyn Ledger>) {
    let (inner, own) = (Scripted::forgetful([]), Scripted::forgetful([Act::NoConnection, Act::LoseOnly]));
    let node = node(&ledger, RUN);
    in_three_steps(&node, "o-1".into(), inner.clone(), own.clone()).await.expect("the third attempt");
    assert_eq!((inner.performed(), own.performed(), own.keys().len()), (2, 1, 3));
    // Under another parent they are other effects.
    in_three_steps(&node, "o-2".into(), inner.clone(), own.clone()).await.expect("performed");
    assert_eq!(inner.performed(), 4);
}
