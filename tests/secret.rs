//! `#[secret]` arguments: compared through keyed digests, and refused without a key.
#![forbid(unsafe_code)]

use std::sync::Arc;

use effectual::{
    EffectContext, ErrorKind, Executor, Ledger, MemoryLedger, Never, Receipt, TenantScope, effect,
    identity::ArgumentDigest,
};

const CARD: &str = "4242424242424242";

#[effect(keying = business_identity)]
async fn pay(
    _cx: &EffectContext,
    #[key] order: u64,
    #[secret] card: String,
    #[secret]
    #[fingerprint(json)]
    holder: (String, f64),
) -> effectual::Result<u64, Never> {
    let _ = (card, holder);
    Ok(order)
}

fn scope(ledger: &Arc<dyn Ledger>, keys: &[(&str, u8)]) -> (Receipt, TenantScope, Executor) {
    let mut builder = Executor::builder(ledger.clone());
    for (id, byte) in keys {
        builder = builder.fingerprint_key(*id, [*byte; 32]);
    }
    let executor = builder.build().expect("a key is there");
    let receipt = Receipt::new();
    (receipt.clone(), executor.tenant("acme").expect("a tenant").with_receipt(&receipt), executor)
}

fn holder(share: f64) -> (String, f64) {
    ("Ada".into(), share)
}

#[tokio::test]
async fn another_secret_under_one_key_is_another_request() {
    let ledger: Arc<dyn Ledger> = Arc::new(MemoryLedger::new());
    let (receipt, scope, _) = scope(&ledger, &[("k1", 1)]);
    pay(&scope, 1, CARD.into(), holder(0.5)).await.expect("performed");
    pay(&scope, 1, CARD.into(), holder(0.5)).await.expect("replayed");
    assert!(receipt.replayed());
    for (card, share, name) in [("4000", 0.5, "`card`"), (CARD, 0.6, "`holder`")] {
        let error = pay(&scope, 1, card.into(), holder(share)).await.expect_err("another value");
        let text = format!("{error} {error:?}");
        assert_eq!(error.kind(), ErrorKind::Mismatch);
        assert!(text.contains(name) && !text.contains(card), "{text}");
    }
}

#[tokio::test]
async fn a_digest_under_an_unknown_key_proves_nothing() {
    let ledger: Arc<dyn Ledger> = Arc::new(MemoryLedger::new());
    let (_, old, _) = scope(&ledger, &[("k1", 1)]);
    pay(&old, 2, CARD.into(), holder(0.5)).await.expect("performed");
    let (receipt, new, _) = scope(&ledger, &[("k2", 2)]);
    pay(&new, 2, "4000".into(), holder(0.5)).await.expect("nothing to compare with");
    assert!(receipt.replayed());
    let (_, both, _) = scope(&ledger, &[("k2", 2), ("k1", 1)]);
    let error = pay(&both, 2, "4000".into(), holder(0.5)).await.expect_err("the old key is known");
    assert_eq!(error.kind(), ErrorKind::Mismatch);
}

/// What is stored, made a second time from its specification.
#[tokio::test]
async fn the_stored_digest_is_the_specified_one() {
    let ledger: Arc<dyn Ledger> = Arc::new(MemoryLedger::new());
    let (receipt, scope, executor) = scope(&ledger, &[("k1", 1)]);
    pay(&scope, 3, CARD.into(), holder(0.5)).await.expect("performed");
    let id = receipt.effect_id().expect("it ended");
    let record = executor.inspect(&id).await.expect("the ledger answers").expect("a record").effect;
    let card: &ArgumentDigest =
        record.fingerprints.iter().find(|digest| digest.name == "card").expect("a digest");

    let mut input = b"effectual/argument\0\x01".to_vec();
    input.extend_from_slice(&4u64.to_be_bytes());
    input.extend_from_slice(b"card\x05");
    input.extend_from_slice(&16u64.to_be_bytes());
    input.extend_from_slice(CARD.as_bytes());
    let key = blake3::derive_key("effectual/fingerprint-key 1", &[1; 32]);
    assert_eq!(card.digest, *blake3::keyed_hash(&key, &input).as_bytes());
    assert_eq!(card.key_id.as_deref(), Some("k1"));
}

#[tokio::test]
async fn an_executor_without_a_key_does_not_start() {
    let error = Executor::builder(MemoryLedger::new()).build().expect_err("no key").to_string();
    for part in ["`pay`", "secret.rs", "`#[secret]`", ".fingerprint_key("] {
        assert!(error.contains(part), "{error}");
    }
}

/// The start sees what is linked in; this one is seen at its call, in an executor that has keys for another release's sake.
#[tokio::test]
async fn an_operation_that_is_first_seen_at_a_call_is_checked_before_its_claim() {
    use effectual::__private::{Arguments, Descriptor, KeyFields, call};
    static LATE: Descriptor =
        Descriptor::new("late", effectual::Keying::BusinessIdentity, "late (late.rs:1)").secret();
    static BOOKED: Descriptor =
        Descriptor::new("booked", effectual::Keying::BusinessIdentity, "late (late.rs:2)")
            .on_unknown(effectual::RecoveryClass::Transactional);
    let ledger: Arc<dyn Ledger> = Arc::new(MemoryLedger::new());
    let (_, scope, _) = scope(&ledger, &[("k1", 1)]);
    let at = |descriptor| {
        let arguments = Arguments::new().secret_argument("card", CARD);
        call::<_, u64, Never, _, _>(&scope, descriptor, KeyFields::new(), arguments, |_| async { Ok(1) })
    };
    let error = at(&LATE).await.expect_err("its argument found no key");
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("`card`") && !error.to_string().contains(CARD), "{error}");
    let error = at(&BOOKED).await.expect_err("no ledger offers it");
    assert!(error.kind() == ErrorKind::Config && error.to_string().contains("transactional"), "{error}");
}

#[tokio::test]
async fn keys_that_cannot_be_used_are_refused() {
    let refused = |keys: &[(&str, &[u8])]| {
        let mut builder = Executor::builder(MemoryLedger::new());
        for (id, secret) in keys {
            builder = builder.fingerprint_key(*id, *secret);
        }
        builder.build().expect_err("refused").to_string()
    };
    let good: &[u8] = b"a secret of 32 random bytes, say";
    assert!(refused(&[("k1", b"canary")]).contains("at least 16 bytes"));
    assert!(!refused(&[("k1", b"canary")]).contains("canary"));
    assert!(refused(&[("k 1", good)]).contains("1 to 64 characters"));
    assert!(refused(&[("k1", good), ("k1", good)]).contains("given twice with the id `k1`"));
}
