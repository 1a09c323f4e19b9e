//! A raised key-schema version: old and new binaries, seen from the effect.

use std::sync::Arc;

use effectual::{
    __private::{Arguments, Descriptor, KeyFields, Keying, business_identity, call},
    EffectContext, ErrorKind, Executor, Ledger, OutcomeCache, TenantScope, effect,
};
use effectual_tests::{
    on_each_ledger,
    scripted::{Act, Done, Scripted, ScriptedError},
};

use crate::{cached::keeping, effects::*};

on_each_ledger![
    f25_a_raised_version_finds_what_an_earlier_binary_performed,
    f25_an_earlier_binary_finds_what_a_raised_version_performed,
    f25_both_binaries_at_once_perform_once,
    an_earlier_record_without_the_new_key_is_ambiguous,
    the_attribute_derives_every_earlier_identity,
    an_outcome_is_kept_under_its_effects_own_identity,
];

/// A call as a binary makes it. One program cannot register two functions under one operation, so that these say what the
/// attribute's output says.
macro_rules! ship {
    ($scope:expr, $operation:literal, $version:literal, $key:expr, $arguments:expr, $provider:expr) => {{
        static SAID: Descriptor = Descriptor::new(
            $operation,
            Keying::BusinessIdentity,
            concat!("the binary of version ", $version),
        )
        .version($version);
        let provider: Scripted = $provider;
        call::<_, Done, ScriptedError, _, _>($scope, &SAID, $key, $arguments, move |cx: EffectContext| {
            let provider = provider.clone();
            async move { Ok(provider.send(&cx, "shipped").await?) }
        })
    }};
}

/// The binary before: the order is the key, the line an argument.
macro_rules! before {
    ($scope:expr, $order:expr, $line:expr, $provider:expr) => {{
        let (order, line): (u64, u32) = ($order, $line);
        let arguments = Arguments::new().argument("order", &order).argument("line", &line);
        ship!($scope, "ship", 1, KeyFields::new().field("order", &order), arguments, $provider)
    }};
}

/// The binary after a deploy: the line is in the key as well.
macro_rules! after {
    ($scope:expr, $order:expr, $line:expr, $provider:expr) => {{
        let (order, line): (u64, u32) = ($order, $line);
        let key = KeyFields::new().field("order", &order).field_in("line", &line, 2, None);
        let arguments = Arguments::new().argument("order", &order).argument("line", &line);
        ship!($scope, "ship", 2, key, arguments, $provider)
    }};
}

/// A function as it is written after the deploy.
#[effect(keying = business_identity, operation = "ship-parcel", version = 3)]
async fn ship_parcel(
    cx: &EffectContext,
    #[key] order: u64,
    #[key(since = 2, name = "line")] line_number: u32,
    #[key(until = 3)] depot: String,
    #[skip] provider: Scripted,
) -> effectual::Result<Done, ScriptedError> {
    Ok(provider.send(cx, &format!("{order}/{line_number}/{depot}")).await?)
}

/// Two binaries are two executors: each knows one of the functions.
fn binaries(ledger: &Arc<dyn Ledger>) -> [(Executor, TenantScope); 2] {
    [0, 1].map(|_| {
        let executor = executor(ledger);
        let scope = executor.tenant("acme").expect("a tenant");
        (executor, scope)
    })
}

async fn f25_a_raised_version_finds_what_an_earlier_binary_performed(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([Act::PerformAndLose]);
    let [(_, before), (_, after)] = binaries(&ledger);
    let escaped = before!(&before, 1, 7, provider.clone()).await.expect_err("unknown");
    assert_eq!(escaped.kind(), ErrorKind::Escaped);
    let held = after!(&after, 1, 7, provider.clone()).await.expect_err("still unknown");
    assert_eq!(held.kind(), ErrorKind::Escaped);
    before!(&before, 2, 7, provider.clone()).await.expect("performed");
    let replayed = after!(&after, 2, 7, provider.clone()).await.expect("found");
    assert_eq!((replayed.number, provider.performed()), (2, 2));
}

async fn f25_an_earlier_binary_finds_what_a_raised_version_performed(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let [(_, before), (_, after)] = binaries(&ledger);
    let first = after!(&after, 3, 7, provider.clone()).await.expect("performed");
    let again = before!(&before, 3, 7, provider.clone()).await.expect("found");
    assert_eq!((first, provider.performed()), (again, 1));
    // Another line is another effect to the later binary, and other arguments to the earlier one.
    after!(&after, 3, 8, provider.clone()).await.expect("another effect");
    let mismatch = before!(&before, 3, 8, provider.clone()).await.expect_err("one order, two lines");
    assert_eq!((mismatch.kind(), provider.performed()), (ErrorKind::Mismatch, 2));
}

async fn f25_both_binaries_at_once_perform_once(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let [(_, before), (_, after)] = binaries(&ledger);
    let calls: Vec<_> = (0..32)
        .map(|number| match number % 2 {
            0 => tokio::spawn(before!(&before, 4, 7, provider.clone())),
            _ => tokio::spawn(after!(&after, 4, 7, provider.clone())),
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.expect("no panic").expect("one outcome for all").number, 1);
    }
    assert_eq!(provider.performed(), 1);
}

async fn an_earlier_record_without_the_new_key_is_ambiguous(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let [(_, before), (_, after)] = binaries(&ledger);
    // As it was before there were lines at all.
    let (order, key) = (5_u64, KeyFields::new().field("order", &5_u64));
    let arguments = Arguments::new().argument("order", &order);
    ship!(&before, "ship", 1, key, arguments, provider.clone()).await.expect("performed");
    let error = after!(&after, 5, 1, provider.clone()).await.expect_err("it cannot be told");
    assert_eq!((error.kind(), provider.performed()), (ErrorKind::SchemaAmbiguous, 1));
}

async fn the_attribute_derives_every_earlier_identity(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    ship_parcel(&scope, 1, 7, "north".to_owned(), provider).await.expect("performed");
    let tenant = effectual::Tenant::parse("acme").expect("a tenant");
    let key = KeyFields::new().field("order", &1_u64).field_in("line", &7_u32, 2, None).field_in(
        "depot",
        "north",
        1,
        Some(3),
    );
    let identity = |version| business_identity(&tenant, "ship-parcel", version, &key);
    assert_eq!(receipt.effect_id(), Some(identity(3)));
    let known = history(&executor, &receipt).await;
    for version in [1, 2] {
        assert_ne!(identity(version), identity(3));
        let found = executor.inspect(&identity(version)).await.expect("the ledger answers");
        assert_eq!(found, Some(known.clone()), "version {version}");
    }
}

/// Under an earlier identity it is somebody else's to forget, and the ledger is asked.
async fn an_outcome_is_kept_under_its_effects_own_identity(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let (raised, asked) = keeping(&ledger, OutcomeCache::new());
    let scope = raised.tenant("acme").expect("a tenant");
    for claims in [1, 1, 1] {
        after!(&scope, 7, 1, provider.clone()).await.expect("one outcome");
        assert_eq!(asked.claims(), claims);
    }
    let [(_, earlier), _] = binaries(&ledger);
    before!(&earlier, 8, 1, provider.clone()).await.expect("performed");
    for claims in [2, 3] {
        after!(&scope, 8, 1, provider.clone()).await.expect("replayed");
        assert_eq!(asked.claims(), claims);
    }
    assert_eq!(provider.performed(), 2);
}
