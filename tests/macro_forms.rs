//! Methods, generic functions and attached effects: forms that must compile, without a warning, and perform.
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]

use std::fmt::Display;
use std::sync::Arc;

use effectual::__private::{Registered, inventory};
use effectual::{EffectContext, EffectScope, Found, Identity, Never, NodeScope, Outcome, effect};
use serde::Serialize;

mod world;

use world::node;

#[derive(Clone)]
struct Shop {
    fee: u64,
}

/// A type that cannot be cloned.
struct Till {
    total: u64,
}

impl Shop {
    const FACTOR: u64 = 10;

    /// By reference: the body sees a clone.
    #[effect(keying = business_identity)]
    async fn charge(&self, _cx: &EffectContext, #[key] order_id: u64) -> effectual::Result<u64, Never> {
        Ok(order_id + self.fee * Self::FACTOR)
    }

    /// By value, and changed by the body alone.
    #[effect(keying = business_identity)]
    async fn close(mut self, _cx: &EffectContext, #[key] order_id: u64) -> effectual::Result<u64, Never> {
        self.fee += order_id;
        Ok(self.fee)
    }

    #[effect(keying = business_identity)]
    async fn shared(
        self: Arc<Self>,
        _cx: &EffectContext,
        #[key] order_id: u64,
    ) -> effectual::Result<u64, Never> {
        Ok(self.fee + order_id)
    }

    /// Without `self`, but with `Self`.
    #[effect(keying = business_identity)]
    async fn factor(_cx: &EffectContext, #[key] order_id: u64) -> effectual::Result<u64, Never> {
        Ok(order_id * Self::FACTOR)
    }

    #[effect(keying = activity_recipe, on_unknown = reconcile(Self::found))]
    async fn asked(&self, _cx: &EffectContext, order_id: u64) -> effectual::Result<u64, Never> {
        Ok(order_id + self.fee)
    }

    #[allow(clippy::unused_async)]
    async fn found(&self, _cx: &EffectContext, order_id: u64) -> Result<Found<u64, Never>, Never> {
        Ok(Found::Done(order_id + self.fee))
    }

    #[cfg(any())]
    #[effect(keying = business_identity)]
    async fn configured_away(&self, cx: &EffectContext, #[key] id: Missing) -> effectual::Result<(), Never> {}

    #[effect(keying = business_identity)]
    #[cfg(any())]
    async fn configured_away(&self, cx: &EffectContext, #[key] id: Missing) -> effectual::Result<(), Never> {}

    /// Lints of the body and of the signature.
    #[effect(keying = business_identity)]
    #[expect(unused_variables, clippy::too_many_arguments, clippy::many_single_char_names)]
    async fn linted(
        &self,
        _cx: &EffectContext,
        #[key] a: u64,
        b: u64,
        c: u64,
        d: u64,
        e: u64,
        f: u64,
        g: u64,
        unread: u64,
    ) -> effectual::Result<u64, Never> {
        Ok(a + b + c + d + e + f + g + self.fee)
    }
}

/// What an effect of one's own type is in a trait: its method calls it.
trait Charges {
    fn charge_all(
        &self,
        scope: &impl EffectScope,
    ) -> impl Future<Output = effectual::Result<u64, Never>> + Send;
}

impl Charges for Shop {
    async fn charge_all(&self, scope: &impl EffectScope) -> effectual::Result<u64, Never> {
        self.charge(scope, 100).await
    }
}

#[tokio::test]
async fn methods_perform() {
    let (node, shop) = (node(), Shop { fee: 3 });
    assert_eq!(shop.charge(&node, 1).await.expect("it performs"), 31);
    assert_eq!(shop.charge_all(&node).await.expect("it performs"), 130);
    assert_eq!(shop.clone().close(&node, 1).await.expect("it performs"), 4);
    assert_eq!(Arc::new(shop.clone()).shared(&node, 1).await.expect("it performs"), 4);
    assert_eq!(Shop::factor(&node, 4).await.expect("it performs"), 40);
    assert_eq!(shop.asked(&node, 4).await.expect("it performs"), 7);
    assert_eq!(shop.linted(&node, 1, 1, 1, 1, 1, 1, 1, 0).await.expect("it performs"), 10);
}

#[tokio::test]
async fn self_is_neither_in_the_identity_nor_in_the_fingerprint() {
    let node = node();
    assert_eq!(Shop { fee: 3 }.charge(&node, 1).await.expect("it performs"), 31);
    assert_eq!(Shop { fee: 4 }.charge(&node, 1).await.expect("it replays"), 31);
}

#[tokio::test]
async fn a_method_call_borrows_nothing() {
    let call = {
        let (node, shop) = (node(), Shop { fee: 1 });
        shop.charge(&node, 1)
    };
    assert_eq!(tokio::spawn(call).await.expect("the task ends").expect("it performs"), 11);
}

/// Type, constant and anonymous parameters, bounds and a `where` clause.
#[effect(keying = business_identity)]
async fn generic<T, const N: usize>(
    _cx: &EffectContext,
    #[key] id: T,
    #[skip] scale: impl Into<u64> + Clone + Send + Sync + 'static,
) -> effectual::Result<u64, Never>
where
    T: Identity + Display + Clone + Send + Sync + 'static,
{
    let length = u64::try_from(id.to_string().len() * N).unwrap_or_default();
    Ok(length * scale.into())
}

/// A type that only the outcome names.
#[effect(keying = business_identity)]
async fn parsed<T: Outcome + From<u64> + Clone>(
    _cx: &EffectContext,
    #[key] id: u64,
) -> effectual::Result<T, Never> {
    Ok(T::from(id))
}

struct Sender<T>(T);

impl<T: Serialize + Clone + Send + Sync + 'static> Sender<T> {
    #[effect(keying = business_identity, operation = "sender.send", provider = world::Bank)]
    async fn send<I: Identity + Clone + Send + Sync + 'static>(
        &self,
        _cx: &EffectContext,
        #[key] id: I,
        #[fingerprint(json)] body: T,
    ) -> effectual::Result<String, Never> {
        let _ = (id, &self.0);
        Ok(serde_json::to_string(&body).unwrap_or_default())
    }
}

impl<T: Clone> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Never called: its descriptor is registered all the same.
#[allow(dead_code)]
#[effect(keying = activity_recipe)]
async fn never_instantiated<T: Outcome + Default>(_cx: &EffectContext) -> effectual::Result<T, Never> {
    Ok(T::default())
}

#[tokio::test]
async fn generic_functions_perform_and_keep_their_turbofish() {
    let node = node();
    assert_eq!(generic::<String, 2>(&node, "abc".into(), 2u32).await.expect("it performs"), 12);
    assert_eq!(generic::<u64, 3>(&node, 10, 1u8).await.expect("it performs"), 6);
    assert_eq!(parsed::<u64>(&node, 5).await.expect("it performs"), 5);
    assert_eq!(Sender("x").send(&node, 1u8, "y").await.expect("it performs"), "\"y\"");
}

#[test]
fn a_generic_function_has_one_descriptor() {
    let count = |name: &str| {
        inventory::iter::<Registered>.into_iter().filter(|registered| registered.0.operation == name).count()
    };
    for name in ["generic", "parsed", "sender.send", "never_instantiated", "charge"] {
        assert_eq!(count(name), 1, "{name}");
    }
}

/// Borrows everything that can be borrowed.
#[effect(keying = business_identity, attached)]
#[allow(clippy::too_many_arguments)]
async fn borrowing<'a, T: Display + Sync>(
    cx: &EffectContext,
    #[key] id: &str,
    amounts: &'a [u64],
    #[skip] log: &mut Vec<String>,
    #[skip] shown: &T,
    #[skip] then: &(dyn Fn(&str) -> usize + Send + Sync),
    #[skip] owned: std::borrow::Cow<'_, str>,
    #[skip] more: impl Display + Clone + Send + Sync,
) -> effectual::Result<u64, Never> {
    log.push(format!("{id} {shown} {owned} {more} {} {}", then(id), cx.attempt()));
    Ok(amounts.iter().sum())
}

impl Till {
    #[effect(keying = business_identity, attached)]
    async fn add(
        &mut self,
        _cx: &EffectContext,
        #[key] id: &str,
        amount: u64,
    ) -> effectual::Result<u64, Never> {
        let _ = id;
        self.total += amount;
        Ok(self.total)
    }

    #[effect(keying = activity_recipe, attached, on_unknown = reconcile(Self::found))]
    async fn sum(&self, _cx: &EffectContext, more: &[u64]) -> effectual::Result<u64, Never> {
        Ok(self.total + more.iter().sum::<u64>())
    }

    #[allow(clippy::unused_async)]
    async fn found(&self, _cx: &EffectContext, _more: &[u64]) -> Result<Found<u64, Never>, Never> {
        Ok(Found::Absent)
    }
}

#[tokio::test]
async fn attached_effects_borrow() {
    let node = node();
    let (id, mut log) = (String::from("o-1"), Vec::new());
    let (shown, suffix) = (7, String::from("s"));
    let lengths = |text: &str| text.len() + suffix.len();
    let sum = borrowing(&node, &id, &[1, 2], &mut log, &shown, &lengths, suffix.as_str().into(), &suffix);
    assert_eq!(sum.await.expect("it performs"), 3);
    assert_eq!(log, ["o-1 7 s s 4 1"]);
    let mut till = Till { total: 5 };
    assert_eq!(till.add(&node, &id, 2).await.expect("it performs"), 7);
    assert_eq!(till.sum(&node, &[1]).await.expect("it performs"), 8);
    assert_eq!(till.total, 7);
}

#[tokio::test]
async fn an_attached_call_borrows_its_arguments_and_not_its_scope() {
    let till = Till { total: 1 };
    let call = {
        let node = node();
        till.sum(&node, &[2])
    };
    assert_eq!(call.await.expect("it performs"), 3);
}

/// The scope of a generic caller, and an attached effect in the body of another.
async fn in_a_node(scope: &impl NodeScope) -> effectual::Result<u64, Never> {
    outer(scope, 3).await
}

#[effect(keying = business_identity)]
async fn outer(cx: &EffectContext, #[key] id: u64) -> effectual::Result<u64, Never> {
    let mut till = Till { total: id };
    till.add(cx, "inner", 1).await
}

#[tokio::test]
async fn attached_effects_nest() {
    assert_eq!(in_a_node(&node()).await.expect("it performs"), 4);
}

/// A bound in a `where` clause, a parameter without any, and a method of a generic type by value.
#[effect(keying = business_identity, attached)]
async fn bounded<T, U>(
    _cx: &EffectContext,
    #[key] id: &T,
    #[skip] unused: &[U],
) -> effectual::Result<usize, Never>
where
    T: Identity + Sync + ?Sized,
    U: Sync,
{
    let _ = id;
    Ok(unused.len())
}

impl<T: Serialize + Clone + Send + Sync> Sender<T> {
    #[effect(keying = business_identity, operation = "sender.send_all", attached)]
    async fn send_all(self, _cx: &EffectContext, #[key] ids: &[u64]) -> effectual::Result<usize, Never> {
        let _ = self.0;
        Ok(ids.len())
    }
}

#[tokio::test]
async fn attached_effects_may_be_generic() {
    let node = node();
    assert_eq!(bounded(&node, "o-1", &[()]).await.expect("it performs"), 1);
    let text = String::from("borrowed");
    assert_eq!(Sender(text.as_str()).send_all(&node, &[1, 2]).await.expect("it performs"), 2);
}
