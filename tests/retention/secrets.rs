//! F32: secrets within outcomes.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use effectual::{
    EffectContext, ErrorKind, Executor, Failure, Ledger, Secret, TenantScope, effect,
    ledger::record::OutcomeBody,
};
use effectual_tests::{on_each_ledger, vault::Vault};
use serde::{Deserialize, Serialize};

use crate::effects::*;

on_each_ledger![
    f32_a_secret_is_stored_sealed_and_replayed,
    f32_a_secret_that_nothing_seals_is_returned_once_and_not_stored,
    f32_a_secret_in_a_refusal,
];

const CANARY: &str = "canary-3c77d2";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Session {
    id: u32,
    tokens: Vec<Secret<String>>,
}

#[derive(Debug, thiserror::Error, Serialize, Deserialize, Failure)]
#[error("the old token is still good")]
#[failure(refused)]
struct StillGood {
    token: Secret<String>,
}

#[effect(keying = business_identity)]
async fn open_session(
    _cx: &EffectContext,
    #[key] user: String,
    #[skip] opened: Arc<AtomicU32>,
) -> effectual::Result<Session, StillGood> {
    let id = 1 + opened.fetch_add(1, Ordering::SeqCst);
    let token = Secret::new(CANARY.to_owned());
    if user == "known" {
        return Err(StillGood { token })?;
    }
    Ok(Session { id, tokens: vec![token] })
}

async fn stored(ledger: &Arc<dyn Ledger>, receipt: &effectual::Receipt) -> (String, String) {
    let id = receipt.effect_id().expect("an identity");
    let history = ledger.read(&id).await.expect("an answer").expect("recorded");
    let OutcomeBody::Payload(payload) = history.effect.outcome.expect("an outcome").body else {
        panic!("a payload")
    };
    (payload.codec.into_owned(), String::from_utf8_lossy(&payload.bytes).into_owned())
}

fn sealing(ledger: &Arc<dyn Ledger>) -> Executor {
    builder(ledger).payload_codec(Vault::new("vault/1", 1)).build().expect("a valid set-up")
}

async fn f32_a_secret_is_stored_sealed_and_replayed(ledger: Arc<dyn Ledger>) {
    let opened = Arc::default();
    let (receipt, scope) = receipted(&sealing(&ledger));
    let first = open_session(&scope, "new".into(), Arc::clone(&opened)).await.expect("opened");
    let again = open_session(&scope, "new".into(), Arc::clone(&opened)).await.expect("replayed");
    assert_eq!((&first, again.tokens[0].expose().as_str()), (&again, CANARY));
    assert_eq!(opened.load(Ordering::SeqCst), 1);
    let (codec, bytes) = stored(&ledger, &receipt).await;
    assert_eq!(codec, "secret-json/1+vault/1");
    assert!(!bytes.contains(CANARY));
    assert!(!format!("{first:?}").contains(CANARY));
}

async fn f32_a_secret_that_nothing_seals_is_returned_once_and_not_stored(ledger: Arc<dyn Ledger>) {
    let opened = Arc::default();
    let (receipt, scope) = receipted(&executor(&ledger));
    let first = open_session(&scope, "new".into(), Arc::clone(&opened)).await.expect("opened");
    assert_eq!(first.tokens[0].expose(), CANARY);
    for _ in 0..2 {
        let error =
            open_session(&scope, "new".into(), Arc::clone(&opened)).await.expect_err("not replayable");
        assert_eq!(error.kind(), ErrorKind::Unreadable);
        assert!(error.to_string().contains("secret") && !error.to_string().contains(CANARY), "{error}");
    }
    assert_eq!(opened.load(Ordering::SeqCst), 1);
    assert_eq!(stored(&ledger, &receipt).await, ("withheld/1".to_owned(), String::new()));
}

async fn refusal(scope: &TenantScope) -> Option<String> {
    let error = open_session(scope, "known".into(), Arc::default()).await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(!format!("{error:?} {error}").contains(CANARY));
    error.into_error().map(|error| error.token.into_inner())
}

async fn f32_a_secret_in_a_refusal(ledger: Arc<dyn Ledger>) {
    let (receipt, scope) = receipted(&executor(&ledger));
    assert_eq!(refusal(&scope).await.as_deref(), Some(CANARY));
    assert_eq!(refusal(&scope).await, None, "not stored, and refused all the same");
    assert_eq!(stored(&ledger, &receipt).await.1, "");

    let sealed = sealing(&ledger);
    let scope = sealed.tenant("globex").expect("a tenant").with_receipt(&receipt);
    for _ in 0..2 {
        assert_eq!(refusal(&scope).await.as_deref(), Some(CANARY));
    }
    assert!(!stored(&ledger, &receipt).await.1.contains(CANARY));
}

#[test]
fn a_secret_is_serialised_for_the_ledger_only() {
    let session = Session { id: 1, tokens: vec![Secret::new(CANARY.to_owned())] };
    let error = serde_json::to_string(&session).expect_err("it is secret");
    assert!(error.to_string().contains("expose"), "{error}");
    let read: Session = serde_json::from_str(r#"{"id":1,"tokens":["x"]}"#).expect("it is read from anywhere");
    assert_eq!(read.tokens[0].expose(), "x");
}
