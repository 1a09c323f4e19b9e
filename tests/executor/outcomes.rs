//! What is stored, and what cannot be.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use effectual::{
    EffectContext, ErrorKind, Ledger, Never, effect,
    ledger::record::{AbsentReason, OutcomeBody, State},
};
use effectual_tests::on_each_ledger;
use serde::{Deserialize, Serialize};

use crate::effects::*;

on_each_ledger![
    f22_the_first_return_equals_every_replay,
    f17_an_outcome_that_does_not_encode_is_recorded_as_performed,
    f41_an_outcome_over_the_limit_is_recorded_as_performed,
    f26_an_outcome_that_does_not_decode_is_never_performed_again,
];

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Kind {
    Plain,
    With { bytes: Vec<u8>, of: Option<String> },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Rich {
    kind: Kind,
    counts: BTreeMap<String, i64>,
    large: u64,
    share: f64,
}

#[effect(keying = business_identity)]
async fn rich(
    _cx: &EffectContext,
    #[key] order: String,
    #[skip] ran: Arc<AtomicU32>,
) -> effectual::Result<Rich, Never> {
    ran.fetch_add(1, Ordering::SeqCst);
    let kind = if order.len() > 3 { Kind::With { bytes: vec![0, 255, 7], of: None } } else { Kind::Plain };
    Ok(Rich { kind, counts: BTreeMap::from([(order, -1)]), large: u64::MAX - 1, share: 0.1 + 0.2 })
}

async fn f22_the_first_return_equals_every_replay(ledger: Arc<dyn Ledger>) {
    let executor = executor(&ledger);
    let (_, scope) = receipted(&executor);
    for order in ["o-1", "o-\u{1F980}-\0-long"] {
        let ran = Arc::default();
        let first = rich(&scope, order.into(), Arc::clone(&ran)).await.expect("performed");
        let again = rich(&scope, order.into(), Arc::clone(&ran)).await.expect("replayed");
        assert_eq!(first, again);
        assert_eq!(ran.load(Ordering::SeqCst), 1);
    }
}

/// Serialises only on paper.
#[derive(Debug, Clone, Deserialize)]
struct Stubborn;

impl Serialize for Stubborn {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("not today"))
    }
}

#[effect(keying = business_identity)]
async fn stubborn(
    _cx: &EffectContext,
    #[key] order: u64,
    #[skip] ran: Arc<AtomicU32>,
) -> effectual::Result<Stubborn, Never> {
    let _ = order;
    ran.fetch_add(1, Ordering::SeqCst);
    Ok(Stubborn)
}

async fn f17_an_outcome_that_does_not_encode_is_recorded_as_performed(ledger: Arc<dyn Ledger>) {
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    let ran = Arc::default();
    for _ in 0..2 {
        let error = stubborn(&scope, 1, Arc::clone(&ran)).await.expect_err("no value");
        assert_eq!(error.kind(), ErrorKind::Unreadable);
    }
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    let record = record(&executor, &receipt).await;
    assert_eq!(record.state, State::Completed);
    assert_eq!(record.outcome.expect("an outcome").body, OutcomeBody::Absent(AbsentReason::Unencodable));
}

#[effect(keying = business_identity)]
async fn long(
    _cx: &EffectContext,
    #[key] length: u64,
    #[skip] ran: Arc<AtomicU32>,
) -> effectual::Result<String, Never> {
    ran.fetch_add(1, Ordering::SeqCst);
    Ok("x".repeat(usize::try_from(length).unwrap_or_default()))
}

async fn f41_an_outcome_over_the_limit_is_recorded_as_performed(ledger: Arc<dyn Ledger>) {
    // As JSON a text has two quotes more.
    let executor = builder(&ledger).outcome_size_max(102).build().expect("a valid set-up");
    let (receipt, scope) = receipted(&executor);
    let ran = Arc::default();
    long(&scope, 100, Arc::clone(&ran)).await.expect("just fits");
    for _ in 0..2 {
        let error = long(&scope, 101, Arc::clone(&ran)).await.expect_err("a byte too many");
        assert_eq!(error.kind(), ErrorKind::Unreadable);
    }
    assert_eq!(ran.load(Ordering::SeqCst), 2);
    let outcome = record(&executor, &receipt).await.outcome.expect("an outcome");
    assert_eq!(outcome.body, OutcomeBody::Absent(AbsentReason::TooLarge));
}

mod older {
    use super::*;

    #[effect(keying = business_identity, operation = "f26-shape")]
    pub(super) async fn shaped(
        _cx: &EffectContext,
        #[key] order: u64,
        #[skip] ran: Arc<AtomicU32>,
    ) -> effectual::Result<u64, Never> {
        ran.fetch_add(1, Ordering::SeqCst);
        Ok(order)
    }
}

async fn f26_an_outcome_that_does_not_decode_is_never_performed_again(ledger: Arc<dyn Ledger>) {
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    let ran = Arc::default();
    older::shaped(&scope, 7, Arc::clone(&ran)).await.expect("performed");
    // What a newer binary with another return type would find.
    let id = receipt.effect_id().expect("an identity");
    let stored = executor.inspect(&id).await.expect("the ledger answers").expect("recorded");
    let OutcomeBody::Payload(payload) = stored.effect.outcome.expect("an outcome").body else {
        panic!("a payload")
    };
    assert!(serde_json::from_slice::<Vec<String>>(&payload.bytes).is_err());
    let error = newer(&scope, 7, Arc::clone(&ran)).await.expect_err("does not decode");
    assert_eq!(error.kind(), ErrorKind::Unreadable);
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

/// The same identity with another return type, as after a deploy: called as the attribute's output calls it, because one
/// program cannot register two functions under one operation.
async fn newer(
    scope: &effectual::TenantScope,
    order: u64,
    ran: Arc<AtomicU32>,
) -> effectual::Result<Vec<String>, Never> {
    use effectual::__private::{Arguments, Descriptor, KeyFields, Registered, inventory};
    let descriptor: &'static Descriptor = inventory::iter::<Registered>
        .into_iter()
        .map(|Registered(descriptor)| *descriptor)
        .find(|descriptor| descriptor.operation == "f26-shape")
        .expect("registered");
    effectual::__private::call(
        scope,
        descriptor,
        KeyFields::new().field("order", &order),
        Arguments::new().argument("order", &order),
        move |_cx| {
            let ran = ran.clone();
            async move {
                ran.fetch_add(1, Ordering::SeqCst);
                Ok(Vec::new())
            }
        },
    )
    .await
}
