//! Every two options of the attribute together, under either keying: they must compile and register. No executor is built here,
//! since the pairs share one operation name.
#![forbid(unsafe_code)]
#![deny(warnings)]
#![recursion_limit = "256"]
#![allow(dead_code)]

use effectual::__private::{Registered, inventory};
use effectual::{EffectContext, Found, Keying, Never, Polled, effect};

mod world;

use world::Bank;

macro_rules! effects {
    ($($options:tt)*) => {
        const _: () = {
            #[effect(keying = business_identity, $($options)*)]
            async fn business(_cx: &EffectContext, #[key] order_id: u64) -> effectual::Result<u64, Never> {
                Ok(order_id)
            }
            #[effect(keying = activity_recipe, $($options)*)]
            async fn recipe(_cx: &EffectContext, order_id: u64) -> effectual::Result<u64, Never> {
                Ok(order_id)
            }
        };
    };
}

/// Each option with each one behind it.
macro_rules! pairs {
    () => {};
    (@retry) => {};
    (@retry [$($first:tt)*] $([$($second:tt)*])*) => {
        pairs!(@retry_with [$($first)*] $([$($second)*])*);
        pairs!(@retry $([$($second)*])*);
    };
    (@retry_with [$($first:tt)*]) => {};
    (@retry_with [$($first:tt)*] [$($second:tt)*] $($rest:tt)*) => {
        effects!(retry($($first)*, $($second)*));
        pairs!(@retry_with [$($first)*] $($rest)*);
    };
    ([$($first:tt)*] $([$($second:tt)*])*) => {
        pairs!(@with [$($first)*] $([$($second)*])*);
        pairs!($([$($second)*])*);
    };
    (@with [$($first:tt)*]) => {};
    (@with [$($first:tt)*] [$($second:tt)*] $($rest:tt)*) => {
        effects!($($first)*, $($second)*);
        pairs!(@with [$($first)*] $($rest)*);
    };
}

/// Each value of an option with every other option.
macro_rules! with_each {
    ([$($value:tt)*]) => {};
    ([$($value:tt)*] [$($other:tt)*] $($rest:tt)*) => {
        effects!($($value)*, $($other)*);
        with_each!([$($value)*] $($rest)*);
    };
}

pairs! {
    [operation = "pinned"] [version = 3] [provider = Bank] [attempt_timeout = "1s"] [lease = "60s"] [wait = "0s"]
    [retry(attempts = 3)] [attached] [crate = ::effectual] [on_unknown = hold]
}

macro_rules! with_every_class {
    ($([$($value:tt)*])*) => { $(
        with_each! {
            [$($value)*]
            [operation = "pinned"] [version = 3] [provider = Bank] [attempt_timeout = "1s"] [lease = "60s"] [wait = "0s"]
            [retry(attempts = 3)] [attached] [crate = ::effectual]
        }
    )* };
}
with_every_class! { [on_unknown = rerun] [on_unknown = transactional] [on_unknown = reconcile(found)] }

// `resend` needs a provider.
with_each! {
    [on_unknown = resend, provider = Bank]
    [operation = "pinned"] [version = 3] [attempt_timeout = "1s"] [lease = "60s"] [wait = "0s"]
    [retry(attempts = 3)] [attached] [crate = ::effectual]
}

// `attached` goes with neither.
with_each! {
    [durable]
    [operation = "pinned"] [version = 3] [provider = Bank] [attempt_timeout = "1s"] [lease = "60s"] [wait = "0s"]
    [retry(attempts = 3)] [crate = ::effectual] [on_unknown = hold] [on_unknown = rerun]
    [on_unknown = reconcile(found)] [poll = asked]
}
with_each! {
    [poll = asked]
    [operation = "pinned"] [version = 3] [provider = Bank] [attempt_timeout = "1s"] [lease = "60s"] [wait = "0s"]
    [retry(attempts = 3)] [crate = ::effectual] [on_unknown = hold] [on_unknown = rerun]
    [on_unknown = reconcile(found)]
}

pairs! { @retry
    [attempts = 3] [base = "1s"] [max = "2s"] [elapsed = "3s"]
}

async fn found(_cx: &EffectContext, order_id: u64) -> Result<Found<u64, Never>, Never> {
    Ok(Found::Done(order_id))
}

async fn asked(_cx: &EffectContext, _handle: &str, order_id: u64) -> Result<Polled<u64, Never>, Never> {
    Ok(Polled::Done(order_id))
}

#[test]
fn every_pair_registers() {
    let count = |keying| {
        inventory::iter::<Registered>.into_iter().filter(|registered| registered.0.keying == keying).count()
    };
    let pairs = 10 * 9 / 2 + 3 * 9 + 8 + 12 + 11 + 4 * 3 / 2;
    assert_eq!((count(Keying::BusinessIdentity), count(Keying::ActivityRecipe)), (pairs, pairs));
}
