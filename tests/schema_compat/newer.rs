//! The effects of the fixtures, as a later binary has them. The first release's types were
//!
//! ```text
//! struct Receipt { number: u64, state: State, note: String }
//! enum State { Paid, PartlyPaid { cents: u64 } }
//! enum PayError { Declined { code: String }, Lost }
//! ```

use std::{sync::Arc, sync::atomic::AtomicU32, sync::atomic::Ordering, time::Duration};

use effectual::{EffectContext, Failure, effect};
use effectual_tests::scripted::{Done, Scripted, ScriptedError};
use serde::{Deserialize, Serialize};

pub(crate) type Ran = Arc<AtomicU32>;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Invoice {
    pub(crate) number: u64,
    pub(crate) state: State1,
    pub(crate) note: String,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum State1 {
    Paid,
    PartlyPaid { cents: u64 },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Wider {
    pub(crate) number: u64,
    #[serde(default = "usd")]
    pub(crate) currency: String,
}

fn usd() -> String {
    "usd".to_owned()
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Aliased {
    pub(crate) state: State2,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum State2 {
    #[serde(alias = "Paid")]
    Settled,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Renamed {
    pub(crate) state: State3,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum State3 {
    Settled,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Retyped {
    pub(crate) number: String,
}

#[derive(Debug, thiserror::Error, Serialize, Deserialize, Failure)]
pub(crate) enum PayError {
    #[error("declined")]
    #[failure(refused)]
    Declined { code: String },
}

#[derive(Debug, thiserror::Error, Serialize, Deserialize, Failure)]
pub(crate) enum OtherError {
    #[error("turned down")]
    #[failure(refused)]
    TurnedDown { code: String },
}

/// None of them is ever performed: what they would return is beside the point.
macro_rules! pays {
    ($($name:ident = $operation:literal -> $value:ty, $error:ident, $refusal:ident;)+) => {$(
        #[effect(keying = business_identity, operation = $operation)]
        pub(crate) async fn $name(
            _cx: &EffectContext,
            #[key] order: String,
            amount: u64,
            #[skip] ran: Ran,
        ) -> effectual::Result<$value, $error> {
            let _ = amount;
            ran.fetch_add(1, Ordering::SeqCst);
            Err($error::$refusal { code: order })?
        }
    )+};
}

pays! {
    same = "compat-same" -> Invoice, PayError, Declined;
    wider = "compat-wider" -> Wider, PayError, Declined;
    aliased = "compat-aliased" -> Aliased, PayError, Declined;
    renamed = "compat-renamed" -> Renamed, OtherError, TurnedDown;
    retyped = "compat-retyped" -> Retyped, PayError, Declined;
}

#[effect(keying = business_identity, operation = "compat-sent", on_unknown = rerun)]
pub(crate) async fn sent(
    cx: &EffectContext,
    #[key] order: String,
    #[skip] provider: Scripted,
) -> effectual::Result<Done, ScriptedError> {
    Ok(provider.send(cx, &order).await?)
}

#[effect(keying = business_identity, operation = "compat-kept")]
pub(crate) async fn kept(
    cx: &EffectContext,
    #[key] order: String,
    #[skip] provider: Scripted,
) -> effectual::Result<Done, ScriptedError> {
    Ok(provider.send(cx, &order).await?)
}

#[effect(keying = business_identity, operation = "compat-accepted")]
pub(crate) async fn accepted(
    cx: &EffectContext,
    #[key] order: String,
) -> effectual::Result<Done, ScriptedError> {
    let _ = (order, cx.accepted("another job", Duration::from_secs(1)).await);
    Err(ScriptedError::Lost)?
}

/// Its key had no line under version 1, so that its effect has two identities.
#[effect(keying = business_identity, operation = "compat-ship", version = 2)]
pub(crate) async fn ship(
    cx: &EffectContext,
    #[key] order: String,
    #[key(since = 2)] line: u32,
    #[skip] provider: Scripted,
) -> effectual::Result<Done, ScriptedError> {
    Ok(provider.send(cx, &format!("{order}/{line}")).await?)
}
