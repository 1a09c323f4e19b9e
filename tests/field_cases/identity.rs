//! What enters an identity, and when.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::{Instant, SystemTime},
};

use effectual::{
    __private::{Arguments, Descriptor, KeyFields, call},
    EffectContext, ErrorKind, Executor, Fingerprint, Identity, Keying, Ledger, MemoryLedger, Never, effect,
    identity::Encoder,
    ledger::record::State,
};
use effectual_tests::{
    on_each_ledger,
    scripted::{Act, Done, Scripted, ScriptedError},
};

use crate::effects::*;

on_each_ledger![
    f10_what_differs_from_try_to_try_is_not_in_the_identity,
    f16_an_argument_that_the_body_changes_does_not_move_its_outcome,
    f16_a_borrowed_argument_that_the_body_changes_does_not_either,
];

#[effect(keying = business_identity)]
async fn notify_shop(
    cx: &EffectContext,
    #[key] order: u64,
    #[skip] sent_at: (Instant, SystemTime),
    #[skip] nonce: [u8; 16],
    #[skip] provider: Scripted,
) -> effectual::Result<Done, ScriptedError> {
    let _ = (sent_at, nonce);
    Ok(provider.send(cx, &order.to_string()).await?)
}

async fn f10_what_differs_from_try_to_try_is_not_in_the_identity(ledger: Arc<dyn Ledger>) {
    let (provider, executor) = (Scripted::forgetful([]), executor(&ledger));
    let mut identities = BTreeSet::new();
    for _ in 0..3 {
        let (receipt, scope) = receipted(&executor);
        let (now, nonce) = ((Instant::now(), SystemTime::now()), uuid::Uuid::new_v4().into_bytes());
        notify_shop(&scope, 1, now, nonce, provider.clone()).await.expect("told once, and replayed");
        identities.insert(receipt.effect_id().expect("an identity").to_string());
    }
    assert_eq!((identities.len(), provider.performed()), (1, 1));
}

/// A name that whoever holds a clone can change.
#[derive(Clone)]
struct SharedName(Arc<Mutex<String>>);

impl SharedName {
    fn new(name: &str) -> Self {
        Self(Arc::new(Mutex::new(name.to_owned())))
    }

    fn set(&self, name: &str) {
        name.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Identity for SharedName {
    fn encode(&self, out: &mut Encoder) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).encode(out);
    }
}

impl Fingerprint for SharedName {
    fn encode_fingerprint(&self, out: &mut Encoder) {
        self.encode(out);
    }
}

#[effect(keying = business_identity)]
async fn rename(
    cx: &EffectContext,
    #[key] name: SharedName,
    #[skip] provider: Scripted,
) -> effectual::Result<Done, ScriptedError> {
    name.set("changed before the request");
    let done = provider.send(cx, "rename").await?;
    name.set("changed after it");
    Ok(done)
}

async fn f16_an_argument_that_the_body_changes_does_not_move_its_outcome(ledger: Arc<dyn Ledger>) {
    let (provider, executor) = (Scripted::forgetful([]), executor(&ledger));
    let (receipt, scope) = receipted(&executor);
    let name = SharedName::new("ada");
    let first = rename(&scope, name.clone(), provider.clone()).await.expect("performed");
    let of_ada = receipt.effect_id().expect("an identity");
    assert_eq!(record(&executor, &receipt).await.state, State::Completed);
    // Nothing was recorded under what the argument became.
    let again = rename(&scope, SharedName::new("ada"), provider.clone()).await.expect("replayed");
    assert_eq!((again, receipt.effect_id()), (first, Some(of_ada.clone())));
    rename(&scope, name, provider.clone()).await.expect("another name, another effect");
    assert_ne!(receipt.effect_id(), Some(of_ada));
    assert_eq!(provider.performed(), 2);

    // Frozen when the function is called, not when its future is first polled.
    let name = SharedName::new("grace");
    let call = rename(&scope, name.clone(), provider.clone());
    name.set("somebody else");
    call.await.expect("performed");
    let of_call = receipt.effect_id();
    rename(&scope, SharedName::new("grace"), provider.clone()).await.expect("replayed");
    assert_eq!((receipt.effect_id(), provider.performed()), (of_call, 3));
}

#[effect(keying = business_identity, attached)]
async fn rename_in_place(
    cx: &EffectContext,
    #[key] name: &mut String,
    #[skip] provider: &Scripted,
) -> effectual::Result<Done, ScriptedError> {
    name.push_str(" before the request");
    let done = provider.send(cx, "rename").await?;
    name.push_str(" and after it");
    Ok(done)
}

async fn f16_a_borrowed_argument_that_the_body_changes_does_not_either(ledger: Arc<dyn Ledger>) {
    // The second attempt sees what the first one left, and is of the same effect.
    let (provider, executor) = (Scripted::forgetful([Act::NoConnection]), executor(&ledger));
    let (receipt, scope) = receipted(&executor);
    let mut name = "ada".to_owned();
    let first = rename_in_place(&scope, &mut name, &provider).await.expect("performed");
    assert_eq!(name, "ada before the request before the request and after it");
    let known = record(&executor, &receipt).await;
    assert_eq!((known.state, known.attempt), (State::Completed, 2));
    let again = rename_in_place(&scope, &mut "ada".to_owned(), &provider).await.expect("replayed");
    assert_eq!((again, receipt.effect_id()), (first, Some(known.id)));
    rename_in_place(&scope, &mut name, &provider).await.expect("another name, another effect");
    assert_eq!(provider.performed(), 2);
}

mod before {
    use super::*;

    #[effect(keying = business_identity, operation = "f24-cancel-order")]
    pub(super) async fn cancel(_cx: &EffectContext, #[key] order: u64) -> effectual::Result<u64, Never> {
        Ok(order)
    }
}

fn memory() -> Executor {
    Executor::builder(Arc::new(MemoryLedger::new()) as Arc<dyn Ledger>).build().expect("a valid set-up")
}

/// Never to be changed: the identity of a recorded effect.
const GOLDEN: &str = "acme/0be511512ab66a69c427e970df5ff43bf21045244b9e9e3e26cd22c73ad26151";

/// Another function that names the same operation, as the attribute's output would call it.
async fn second_function(executor: &Executor, location: &'static str) -> effectual::Result<u64, Never> {
    let descriptor = Descriptor::new("f24-cancel-order", Keying::BusinessIdentity, location);
    let descriptor: &'static Descriptor = Box::leak(Box::new(descriptor));
    let (key, arguments) =
        (KeyFields::new().field("order", &7_u64), Arguments::new().argument("order", &7_u64));
    let scope = executor.tenant("acme").expect("a tenant");
    call(&scope, descriptor, key, arguments, |_cx| async { Ok(8) }).await
}

#[tokio::test]
async fn f24_an_identity_outlives_a_thousand_starts_and_a_second_function_is_refused() {
    for _ in 0..1_000 {
        let (receipt, scope) = receipted(&memory());
        before::cancel(&scope, 7).await.expect("performed");
        // The function's own name and module are not in it, or this text would change with them.
        assert_eq!(receipt.effect_id().expect("an identity").to_string(), GOLDEN);
    }
    let executor = memory();
    let error = second_function(&executor, "elsewhere (b.rs:1)").await.expect_err("two functions, one name");
    assert_eq!(error.kind(), ErrorKind::Config);
    let text = error.to_string();
    assert!(text.contains("f24-cancel-order") && text.contains("elsewhere (b.rs:1)"), "{text}");
}

#[tokio::test]
async fn f55_long_and_odd_identities_have_keys_that_fit_and_differ() {
    let provider = Scripted::deduplicating([]);
    let (_, scope) = receipted(&memory());
    let long = "\u{1F980}".repeat(2_560);
    let orders = [long.clone(), format!("{long}a"), format!("{long}b"), "\0".to_owned(), String::new()];
    for order in &orders {
        for _ in 0..2 {
            resending(&scope, order.clone(), 5, provider.clone()).await.expect("performed, then replayed");
        }
    }
    let keys: BTreeSet<_> = provider.keys().into_iter().collect();
    assert_eq!((keys.len(), provider.keys().len()), (orders.len(), orders.len()));
    assert!(keys.iter().all(|key| key.is_ascii() && key.len() <= 255 && !key.contains(' ')), "{keys:?}");
}
