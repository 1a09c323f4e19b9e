//! Shapes of annotated functions that must compile, without a warning, and mean what they say.
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]

use std::sync::Arc;
use std::time::Duration;

use effectual::__private::{Descriptor, Registered, inventory};
use effectual::{
    EffectContext, EffectError, EffectScope, Found, Keying, Never, NodeScope, RecoveryClass, effect,
};

mod world;

use world::{Bank, node};

/// Every option at once.
#[effect(
    keying = business_identity,
    operation = "every-option",
    version = 2,
    provider = Bank,
    on_unknown = resend,
    attempt_timeout = "10s",
    lease = "2m",
    wait = "0s",
    retry(attempts = 5, base = "200ms", max = "10s", elapsed = "1h"),
    crate = ::effectual
)]
async fn every_option(_cx: &EffectContext, #[key] order_id: u64) -> effectual::Result<u64, Never> {
    Ok(order_id)
}

#[effect(keying = activity_recipe)]
async fn no_option(_cx: &EffectContext) -> effectual::Result<(), Never> {
    Ok(())
}

fn registered(operation: &str) -> Option<&'static Descriptor> {
    inventory::iter::<Registered>
        .into_iter()
        .map(|Registered(descriptor)| *descriptor)
        .find(|descriptor| descriptor.operation == operation)
}

#[test]
fn descriptor_says_what_the_options_say() {
    let all = registered("every-option").expect("the attribute registers its descriptor");
    assert_eq!(all.keying, Keying::BusinessIdentity);
    assert_eq!(all.version, 2);
    assert_eq!(all.provider.map(|provider| provider.name), Some("bank"));
    assert_eq!(all.on_unknown, Some(RecoveryClass::Resend));
    assert_eq!(all.attempt_timeout, Some(Duration::from_secs(10)));
    assert_eq!(all.lease, Some(Duration::from_mins(2)));
    assert_eq!(all.wait, Some(Duration::ZERO));
    assert_eq!(all.retry.attempts_max, Some(5));
    assert_eq!(all.retry.base, Some(Duration::from_millis(200)));
    assert_eq!(all.retry.delay_max, Some(Duration::from_secs(10)));
    assert_eq!(all.retry.elapsed_max, Some(Duration::from_hours(1)));
    assert!(all.location.starts_with("macro_shapes (") && all.location.contains("macro_shapes.rs:"));
}

#[test]
fn descriptor_says_nothing_where_the_options_say_nothing() {
    let none = registered("no_option").expect("the operation is the function's name");
    assert_eq!(none.keying, Keying::ActivityRecipe);
    assert_eq!(none.version, 1);
    assert!(none.provider.is_none() && none.on_unknown.is_none());
    assert!(none.attempt_timeout.is_none() && none.lease.is_none() && none.wait.is_none());
    assert!(none.retry.attempts_max.is_none() && none.retry.base.is_none());
}

/// The context may have any name, an argument may be `mut`, raw, unused or named like a part of the expansion.
#[effect(keying = business_identity)]
async fn any_names(
    context: &EffectContext,
    #[key(name = "type")] r#type: String,
    mut body: u64,
    #[fingerprint(json)] cx: Vec<f64>,
    #[skip] key: Arc<u64>,
    call: u64,
    _unused: f64,
) -> effectual::Result<u64, Never> {
    body += u64::from(context.attempt()) + *key + call + u64::from(r#type == "a") + u64::from(cx.is_empty());
    Ok(body)
}

#[tokio::test]
async fn arguments_reach_the_body() {
    let node = node();
    let sum = any_names(&node, "a".into(), 10, Vec::new(), Arc::new(100), 1000, 0.5).await;
    assert_eq!(sum.expect("it performs"), 1113);
}

#[tokio::test]
async fn the_call_borrows_nothing_of_its_scope() {
    let call = {
        let node = node();
        any_names(&node, "b".into(), 0, vec![0.5], Arc::new(0), 0, 0.5)
    };
    let sum = tokio::spawn(call).await.expect("the task ends");
    assert_eq!(sum.expect("it performs"), 1);
}

#[tokio::test]
async fn the_scope_may_be_a_trait_object_or_generic() {
    async fn generic(scope: &(impl NodeScope + ?Sized)) -> effectual::Result<(), Never> {
        no_option(scope).await
    }
    let node = node();
    let dynamic: &dyn EffectScope = &node;
    assert_eq!(every_option(dynamic, 7).await.expect("it performs"), 7);
    generic(&node).await.expect("it performs");
}

/// Both types of the result are found behind the standard library's name as well.
#[effect(keying = activity_recipe)]
async fn result_in_full(_cx: &EffectContext, value: u64) -> Result<u64, EffectError<Never>> {
    Ok(value)
}

/// An effect whose look-up has the effect's own parameters.
#[effect(keying = business_identity, on_unknown = reconcile(look_ups::paid))]
async fn with_look_up(_cx: &EffectContext, #[key] order_id: String) -> effectual::Result<String, Never> {
    Ok(order_id)
}

mod look_ups {
    use super::{EffectContext, Found, Never};

    #[allow(clippy::unused_async)]
    pub(super) async fn paid(_cx: &EffectContext, order_id: String) -> Result<Found<String, Never>, Never> {
        Ok(Found::Done(order_id))
    }
}

/// An effect inside an effect, and a recursion through the effect's own name.
#[effect(keying = business_identity)]
async fn countdown(cx: &EffectContext, #[key] from: u64) -> effectual::Result<u64, Never> {
    no_option(cx).await?;
    if from == 0 { Ok(0) } else { countdown(cx, from - 1).await.map(|steps| steps + 1) }
}

#[tokio::test]
async fn effects_call_effects() {
    let node = node();
    assert_eq!(countdown(&node, 3).await.expect("it performs"), 3);
    assert_eq!(result_in_full(&node, 4).await.expect("it performs"), 4);
    assert_eq!(with_look_up(&node, "o-1".into()).await.expect("it performs"), "o-1");
}

macro_rules! effect_by_macro {
    ($name:ident, $argument:ident: $ty:ty, $output:ty) => {
        #[effect(keying = business_identity)]
        async fn $name(_cx: &EffectContext, #[key] $argument: $ty) -> $output {
            Ok($argument)
        }
    };
}
effect_by_macro!(by_macro, order_id: u64, effectual::Result<u64, Never>);

macro_rules! effect_with_look_up {
    ($name:ident, $context:ident: $context_ty:ty, $look_up:path) => {
        #[effect(keying = business_identity, on_unknown = reconcile($look_up))]
        async fn $name($context: $context_ty, #[key] order_id: String) -> effectual::Result<String, Never> {
            let _ = $context.attempt();
            Ok(order_id)
        }
    };
}
effect_with_look_up!(by_macro_with_look_up, cx: &EffectContext, look_ups::paid);

/// Nothing of the prelude is needed, and nothing of it is picked up from the user's module.
mod shadows {
    #![allow(dead_code)]
    use effectual::{EffectContext, Never, effect};

    struct Result;
    struct Option;
    struct Future;
    trait Clone {}
    trait Send {}
    trait Sized {}

    #[effect(keying = business_identity)]
    pub(crate) async fn shadowed(_cx: &EffectContext, #[key] order_id: u64) -> effectual::Result<u64, Never> {
        Ok(order_id)
    }
}

/// Not even the prelude is needed.
mod bare {
    #![no_implicit_prelude]
    use ::effectual::{EffectContext, Never, effect};

    #[effect(keying = business_identity, on_unknown = rerun)]
    pub(crate) async fn without_prelude(
        _cx: &EffectContext,
        #[key] order_id: u64,
    ) -> ::effectual::Result<u64, Never> {
        ::core::result::Result::Ok(order_id)
    }
}

/// A function of a type, without `self`.
impl Shop {
    #[effect(keying = business_identity, operation = "shop.associated")]
    async fn associated(
        _cx: &EffectContext,
        #[key] currency: &'static str,
    ) -> effectual::Result<usize, Never> {
        Ok(currency.len())
    }
}

/// The crate under another path.
mod renamed {
    use effectual::{EffectContext, Never, effect};

    mod facade {
        pub(crate) use effectual::__private;
    }

    #[effect(keying = business_identity, crate = self::facade)]
    pub(crate) async fn by_path(_cx: &EffectContext, #[key] order_id: u64) -> effectual::Result<u64, Never> {
        Ok(order_id)
    }
}

#[cfg(any())]
#[effect(keying = business_identity)]
async fn configured_away(cx: &EffectContext, #[key] order_id: Missing) -> effectual::Result<(), Never> {}

#[effect(keying = business_identity)]
#[cfg(any())]
async fn configured_away(cx: &EffectContext, #[key] order_id: Missing) -> effectual::Result<(), Never> {}

/// Lint levels on the function reach the body, and those on a parameter the body's parameter.
#[effect(keying = business_identity)]
#[allow(clippy::too_many_arguments, clippy::many_single_char_names)]
async fn many(
    _cx: &EffectContext,
    #[key] a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
    f: u64,
    g: u64,
    #[allow(unused_variables)] unused: u64,
) -> effectual::Result<u64, Never> {
    Ok(a + b + c + d + e + f + g)
}

/// Above `#[effect]`, another attribute sees the body: one span an attempt.
#[tracing::instrument(skip_all)]
#[effect(keying = business_identity)]
async fn instrumented(_cx: &EffectContext, #[key] order_id: u64) -> effectual::Result<u64, Never> {
    Ok(order_id)
}

/// A trait's method calls the effect.
#[async_trait::async_trait]
trait Refunds {
    async fn refund(&self, node: &effectual::NodeExecution) -> effectual::Result<u64, Never>;
}

struct Shop(u64);

#[async_trait::async_trait]
impl Refunds for Shop {
    async fn refund(&self, node: &effectual::NodeExecution) -> effectual::Result<u64, Never> {
        by_macro(node, self.0).await
    }
}

#[tokio::test]
async fn every_shape_performs() {
    let node = node();
    assert_eq!(Shop(1).refund(&node).await.expect("it performs"), 1);
    assert_eq!(shadows::shadowed(&node, 2).await.expect("it performs"), 2);
    assert_eq!(bare::without_prelude(&node, 4).await.expect("it performs"), 4);
    assert_eq!(Shop::associated(&node, "eur").await.expect("it performs"), 3);
    assert_eq!(by_macro_with_look_up(&node, "o-2".into()).await.expect("it performs"), "o-2");
    assert_eq!(renamed::by_path(&node, 3).await.expect("it performs"), 3);
    assert_eq!(many(&node, 1, 1, 1, 1, 1, 1, 1, 9).await.expect("it performs"), 7);
    assert_eq!(instrumented(&node, 5).await.expect("it performs"), 5);
}
