//! Values that are stored under a payload codec.

use std::sync::Arc;

use effectual::{
    By, ErrorKind, ExecutorBuilder, Ledger, Resolution,
    ledger::{
        codec::{About, CodecError, PayloadCodec},
        record::{AbsentReason, OutcomeBody, State},
    },
};
use effectual_tests::{
    on_each_ledger,
    scripted::{Act, Scripted},
    vault::Vault,
};

use crate::{
    effects::*,
    place::{Place, TODAY},
};

on_each_ledger![
    what_is_sealed_is_replayed_as_it_was_returned,
    a_key_that_was_replaced_opens_what_it_sealed,
    a_codec_that_fails_or_panics_loses_the_value_and_not_the_effect,
    what_an_operator_decides_is_sealed_too,
    evidence_is_sealed_too,
    what_was_stored_before_there_was_a_codec_stays_readable,
];

/// A text that must be nowhere in a database: it is what the provider was asked, and so what the effect returns.
const CANARY: &str = "canary-91b04e";

fn vault(ledger: &Arc<dyn Ledger>) -> ExecutorBuilder {
    builder(ledger).payload_codec(Vault::new("vault/1", 1))
}

fn unreadable<T: std::fmt::Debug, E>(answer: effectual::Result<T, E>) {
    match answer {
        Ok(value) => panic!("no value is expected, and {value:?} came"),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unreadable),
    }
}

async fn what_is_sealed_is_replayed_as_it_was_returned(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([Act::Perform, Act::Refuse]);
    let executor = vault(&ledger).build().expect("a valid set-up");
    let (receipt, scope) = receipted(&executor);
    let first = holding(&scope, "done".into(), 5, provider.clone()).await.expect("performed");
    assert_eq!(holding(&scope, "done".into(), 5, provider.clone()).await.expect("replayed"), first);
    for _ in 0..2 {
        let refused = holding(&scope, "refused".into(), 5, provider.clone()).await.expect_err("refused");
        assert_eq!((refused.kind(), refused.error().is_some()), (ErrorKind::Refused, true));
    }
    assert_eq!(provider.keys().len(), 2);
    // A process without the codec sees that there is one, and not what is under it.
    let id = receipt.effect_id().expect("an identity");
    let stored = ledger.read(&id).await.expect("an answer").expect("recorded");
    let OutcomeBody::Payload(payload) = stored.effect.outcome.expect("an outcome").body else {
        panic!("a payload")
    };
    assert_eq!(payload.codec, "json/1+vault/1");
    assert!(!String::from_utf8_lossy(&payload.bytes).contains("insufficient"));
    // One that has it shows the operator what it is.
    let OutcomeBody::Payload(payload) = record(&executor, &receipt).await.outcome.expect("an outcome").body
    else {
        panic!("a payload")
    };
    assert_eq!(payload.codec, "json/1");
    assert!(String::from_utf8_lossy(&payload.bytes).contains("insufficient"));
}

async fn a_key_that_was_replaced_opens_what_it_sealed(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let before = vault(&ledger).build().expect("a valid set-up");
    let (_, scope) = receipted(&before);
    let first = holding(&scope, "o-1".into(), 5, provider.clone()).await.expect("performed");
    let rotated = || builder(&ledger).payload_codec(Vault::new("vault/2", 2));
    let both = rotated().payload_decoder(Vault::new("vault/1", 1)).build().expect("a valid set-up");
    let (receipt, scope) = receipted(&both);
    assert_eq!(holding(&scope, "o-1".into(), 5, provider.clone()).await.expect("replayed"), first);
    holding(&scope, "o-2".into(), 5, provider.clone()).await.expect("performed");
    let sealed = ledger.read(&receipt.effect_id().expect("an identity")).await.expect("an answer");
    let OutcomeBody::Payload(payload) = sealed.expect("recorded").effect.outcome.expect("an outcome").body
    else {
        panic!("a payload")
    };
    assert_eq!(payload.codec, "json/1+vault/2");
    // Neither the old key alone, nor a wrong one under its name, nor none.
    let lost = rotated().build().expect("a valid set-up");
    let wrong = rotated().payload_decoder(Vault::new("vault/1", 9)).build().expect("a valid set-up");
    for executor in [lost, wrong, executor(&ledger)] {
        let (_, scope) = receipted(&executor);
        unreadable(holding(&scope, "o-1".into(), 5, provider.clone()).await);
    }
    assert_eq!(provider.performed(), 2, "an unreadable value is no reason to perform");
}

type Fails = fn() -> Result<Vec<u8>, CodecError>;

struct Failing(Fails);

impl PayloadCodec for Failing {
    fn name(&self) -> &str {
        "failing"
    }

    fn seal(&self, _: &About<'_>, _: &[u8]) -> Result<Vec<u8>, CodecError> {
        (self.0)()
    }

    fn open(&self, _: &About<'_>, _: &[u8]) -> Result<Vec<u8>, CodecError> {
        (self.0)()
    }
}

async fn a_codec_that_fails_or_panics_loses_the_value_and_not_the_effect(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let fails: [Fails; 2] = [|| Err(CodecError::new("no key today")), || panic!("a bug in the codec")];
    for (order, fail) in fails.into_iter().enumerate() {
        let executor = builder(&ledger).payload_codec(Failing(fail)).build().expect("a valid set-up");
        let (receipt, scope) = receipted(&executor);
        for _ in 0..2 {
            unreadable(holding(&scope, order.to_string(), 5, provider.clone()).await);
        }
        let record = record(&executor, &receipt).await;
        assert_eq!(record.state, State::Completed);
        assert_eq!(record.outcome.expect("an outcome").body, OutcomeBody::Absent(AbsentReason::Unencodable));
    }
    assert_eq!(provider.performed(), 2);
}

async fn what_an_operator_decides_is_sealed_too(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([Act::PerformAndLose]);
    let executor = vault(&ledger).retry(quick().attempts_max(1)).build().expect("a valid set-up");
    let (receipt, scope) = receipted(&executor);
    holding(&scope, "o-1".into(), 5, provider.clone()).await.expect_err("its answer was lost");
    let id = receipt.effect_id().expect("an identity");
    let found = effectual_tests::scripted::Done { number: 41, what: CANARY.to_owned() };
    let by = By::new("an operator", "seen at the provider").expect("who and why");
    executor.resolve(&id, Resolution::done(&found), &by).await.expect("resolved");
    assert_eq!(holding(&scope, "o-1".into(), 5, provider.clone()).await.expect("as resolved"), found);
    let stored = ledger.read(&id).await.expect("an answer").expect("recorded");
    assert!(!format!("{:?}", raw_payloads(&stored)).contains(CANARY));
}

/// Everything stored of values, as text.
fn raw_payloads(history: &effectual::ledger::EffectHistory) -> Vec<String> {
    let outcome = history.effect.outcome.iter().filter_map(|outcome| match &outcome.body {
        OutcomeBody::Payload(payload) => Some(payload),
        OutcomeBody::Absent(_) => None,
    });
    let evidence = history.evidence.iter().filter_map(|evidence| evidence.payload.as_ref());
    outcome.chain(evidence).map(|payload| String::from_utf8_lossy(&payload.bytes).into_owned()).collect()
}

/// A refusal beside an older doubt is evidence, and not the outcome.
async fn evidence_is_sealed_too(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([Act::PerformAndLose, Act::Refuse]);
    let executor = vault(&ledger).build().expect("a valid set-up");
    let (receipt, scope) = receipted(&executor);
    let doubted = resending(&scope, "o-1".into(), 5, provider.clone()).await.expect_err("in doubt");
    assert_eq!(doubted.kind(), ErrorKind::Escaped);
    let stored = ledger.read(&receipt.effect_id().expect("an identity")).await.expect("an answer");
    let [sealed] = raw_payloads(&stored.expect("recorded")).try_into().expect("one evidence");
    assert!(!sealed.contains("insufficient"), "{sealed}");
    let [opened] = raw_payloads(&history(&executor, &receipt).await).try_into().expect("one evidence");
    assert!(opened.contains("insufficient_funds"), "{opened}");
}

async fn what_was_stored_before_there_was_a_codec_stays_readable(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::forgetful([]);
    let (_, scope) = receipted(&executor(&ledger));
    let first = holding(&scope, "o-1".into(), 5, provider.clone()).await.expect("performed");
    let (_, scope) = receipted(&vault(&ledger).build().expect("a valid set-up"));
    assert_eq!(holding(&scope, "o-1".into(), 5, provider.clone()).await.expect("replayed"), first);
}

/// In no column, and in neither the file of SQLite nor its log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_clear_text_is_in_the_database() {
    for place in Place::all("retention: no clear text").await {
        let ledger = place.open(TODAY).await;
        let provider = Scripted::forgetful([]);
        let executor = vault(&ledger).build().expect("a valid set-up");
        let (_, scope) = receipted(&executor);
        let order = CANARY.repeat(500);
        holding(&scope, order.clone(), 5, provider.clone()).await.expect("performed");
        match place.file() {
            Some(file) => {
                for name in [file.clone(), file.with_extension("db-wal")] {
                    let bytes = std::fs::read(name).expect("a file");
                    assert!(!bytes.windows(CANARY.len()).any(|part| part == CANARY.as_bytes()));
                }
            }
            None => {
                let found = "SELECT count(*)::text FROM effectual_effects e WHERE e::text LIKE '%canary%'
                    OR encode(e.payload, 'escape') LIKE '%canary%'";
                assert_eq!(place.texts(found).await, ["0"], "on {}", place.name());
            }
        }
        // It can be found where it is not sealed: the search is no pretence.
        let plain = crate::effects::executor(&ledger);
        let (_, scope) = receipted(&plain);
        holding(&scope, format!("{order}-plain"), 5, provider.clone()).await.expect("performed");
        match place.file() {
            Some(file) => {
                let bytes = std::fs::read(file.with_extension("db-wal")).expect("the log");
                assert!(bytes.windows(CANARY.len()).any(|part| part == CANARY.as_bytes()));
            }
            None => {
                let found = "SELECT count(*)::text FROM effectual_effects e WHERE encode(e.payload, 'escape') LIKE '%canary%'";
                assert_eq!(place.texts(found).await, ["1"], "on {}", place.name());
            }
        }
    }
}

/// A value is bound to its effect, and to whether it is a success.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_in_another_place_is_unreadable() {
    for place in Place::all("retention: swapped values").await {
        let ledger = place.open(TODAY).await;
        let provider = Scripted::forgetful([Act::Perform, Act::Perform, Act::Refuse]);
        let executor = vault(&ledger).build().expect("a valid set-up");
        let (_, scope) = receipted(&executor);
        for order in ["a", "b"] {
            holding(&scope, order.into(), 5, provider.clone()).await.expect("performed");
        }
        holding(&scope, "c".into(), 5, provider.clone()).await.expect_err("refused");
        place
            .execute(
                "CREATE TABLE kept AS SELECT provider_key, payload FROM effectual_effects WHERE outcome_kind = 'success';
                 UPDATE effectual_effects SET payload = (SELECT kept.payload FROM kept
                    WHERE kept.provider_key <> effectual_effects.provider_key) WHERE outcome_kind = 'success';
                 UPDATE effectual_effects SET outcome_kind = 'success', verdict = 'performed' WHERE outcome_kind = 'refusal'",
            )
            .await;
        for order in ["a", "b", "c"] {
            unreadable(holding(&scope, order.into(), 5, provider.clone()).await);
        }
        assert_eq!(provider.keys().len(), 3, "nothing is performed again on {}", place.name());
    }
}

#[tokio::test]
async fn codecs_with_a_wrong_name_or_one_name_are_refused_at_start() {
    let ledger: Arc<dyn Ledger> = Arc::new(effectual::MemoryLedger::new());
    for name in ["", "a+b", "a b", &"x".repeat(65)] {
        let text = builder(&ledger).payload_codec(Vault::new(name, 1)).build().expect_err("a wrong name");
        assert!(text.to_string().contains("1 to 64"), "{text}");
    }
    let twice = vault(&ledger).payload_decoder(Vault::new("vault/1", 2)).build().expect_err("one name");
    assert!(twice.to_string().contains("`vault/1`"), "{twice}");
}
