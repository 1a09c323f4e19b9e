//! How a body says what an error means.

use std::{num::ParseIntError, sync::Arc};

use effectual::{
    EffectContext, ErrorKind, Failure, Ledger, Nested as _, OrFail as _, Verdict, effect,
    ledger::record::State,
};
use effectual_tests::{
    on_each_ledger,
    scripted::{Act, Scripted, ScriptedError},
};
use serde::{Deserialize, Serialize};

use crate::effects::*;

on_each_ledger![
    each_way_of_saying_it,
    a_nested_effect_keeps_its_verdict,
    f59_a_nested_effect_replays_in_the_next_attempt
];

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize, Failure)]
enum OrderError {
    #[error("not a number")]
    NotANumber,
    #[error("no route")]
    #[failure(not_performed, retry)]
    NoRoute,
    #[error("{0}")]
    #[failure(transparent)]
    Provider(#[from] ScriptedError),
}

impl From<ParseIntError> for OrderError {
    fn from(_: ParseIntError) -> Self {
        Self::NotANumber
    }
}

#[effect(keying = business_identity, retry(attempts = 1))]
async fn parsing(_cx: &EffectContext, #[key] how: String) -> effectual::Result<u32, OrderError> {
    let parsed = "seven".parse::<u32>();
    match how.as_str() {
        "not performed" => Ok(parsed.not_performed()?),
        "refused" => Ok(parsed.refused()?),
        "unknown" => Ok(parsed.unknown()?),
        "its own" => Ok(parsed.or_fail()?),
        _ => Err(OrderError::NoRoute)?,
    }
}

async fn each_way_of_saying_it(ledger: Arc<dyn Ledger>) {
    let executor = executor(&ledger);
    let expected = [
        ("not performed", ErrorKind::Failed, State::Released, OrderError::NotANumber),
        ("refused", ErrorKind::Refused, State::Completed, OrderError::NotANumber),
        ("unknown", ErrorKind::Escaped, State::Escaped, OrderError::NotANumber),
        // A variant that says nothing is unknown.
        ("its own", ErrorKind::Escaped, State::Escaped, OrderError::NotANumber),
        ("plain", ErrorKind::Failed, State::Released, OrderError::NoRoute),
    ];
    for (how, kind, stored, value) in expected {
        let (receipt, scope) = receipted(&executor);
        let error = parsing(&scope, how.into()).await.expect_err("never a number");
        assert_eq!((error.kind(), error.error()), (kind, Some(&value)), "{how}");
        assert_eq!(state(&executor, &receipt).await, stored, "{how}");
    }
    assert_eq!(OrderError::NotANumber.verdict(), Verdict::Unknown);
}

#[effect(keying = business_identity, on_unknown = rerun, retry(attempts = 2))]
async fn outer(
    cx: &EffectContext,
    #[key] order: String,
    #[skip] inner: Scripted,
    #[skip] own: Scripted,
) -> effectual::Result<u32, OrderError> {
    let first = holding(cx, order.clone(), 5, inner).await.nested()?;
    let second = own.send(cx, &order).await.or_fail()?;
    Ok(first.number * 10 + second.number)
}

async fn a_nested_effect_keeps_its_verdict(ledger: Arc<dyn Ledger>) {
    let executor = executor(&ledger);
    for (act, kind) in [
        (Act::Refuse, ErrorKind::Refused),
        (Act::BadCredential, ErrorKind::Failed),
        (Act::PerformAndLose, ErrorKind::Escaped),
    ] {
        let (_, scope) = receipted(&executor);
        let (inner, own) = (Scripted::forgetful([act.clone()]), Scripted::forgetful([]));
        let error =
            outer(&scope, format!("{act:?}"), inner.clone(), own.clone()).await.expect_err("the inner one's");
        assert_eq!(error.kind(), kind, "{act:?}: {error}");
        assert_eq!((inner.keys().len(), own.performed()), (1, 0), "{act:?}");
    }
}

async fn f59_a_nested_effect_replays_in_the_next_attempt(ledger: Arc<dyn Ledger>) {
    let executor = executor(&ledger);
    let (_, scope) = receipted(&executor);
    let (inner, own) = (Scripted::forgetful([]), Scripted::forgetful([Act::LoseOnly]));
    let both = outer(&scope, "o-1".into(), inner.clone(), own.clone()).await.expect("the second attempt");
    assert_eq!((both, inner.performed(), own.performed()), (11, 1, 1));
}
