//! What a ledger keeps of an effect: one row with the current attempt, and the closed attempts behind it.

use std::{borrow::Cow, sync::Arc};

use serde::{Deserialize, Serialize};

use super::audit::AuditEntry;
use crate::{
    descriptor::{Keying, RecoveryClass},
    identity::{ArgumentDigest, EffectId, InvocationId, NodeId, RunId},
};

/// A point on the ledger's own clock, in milliseconds since the Unix epoch.
pub type LedgerTime = i64;

/// The number that makes a stale owner lose; it rises with each takeover and each new claim, from 1.
pub type Fence = i64;

/// Tells the writes of one attempt from those of every other, so that a lost acknowledgement is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttemptToken(pub [u8; 16]);

/// Where an effect stands; see the crate's page on the state machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// An executor is authorised until its lease ends.
    Claimed,
    /// The outcome is stored: a success, or the provider's final refusal.
    Completed,
    /// The attempts are known not to have performed it.
    Released,
    /// An attempt may have performed it and no outcome is stored.
    Escaped,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptVerdict {
    /// It performed the effect.
    Performed,
    /// The provider refused it.
    Refused,
    /// It is known not to have performed the effect.
    NotPerformed,
    /// Nobody knows.
    Unknown,
}

/// The end of an attempt, once it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptEnd {
    /// When it was recorded.
    pub at: LedgerTime,
    /// How it ended.
    pub verdict: AttemptVerdict,
    /// The digest of the first request that was sent, where the adapter computed one.
    pub send_digest: Option<[u8; 32]>,
    /// Whether the body took the provider key.
    pub key_taken: bool,
}

/// The earliest attempt whose end is unknown, and what all attempts in doubt have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// The earliest attempt in doubt.
    pub attempt: u32,
    /// When that attempt started: the provider's window counts from here.
    pub since: LedgerTime,
    /// The strictest class of the attempts in doubt.
    pub class: RecoveryClass,
    /// Until when a request of an attempt in doubt may still reach the provider.
    pub acts_until: LedgerTime,
    /// What the earliest attempt in doubt sent, where that was recorded.
    pub send_digest: Option<[u8; 32]>,
}

/// An encoded value and the name of its encoding.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload {
    /// The codec's name and version, such as `json/1`.
    pub codec: Cow<'static, str>,
    /// The encoded bytes.
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The bytes are the user's data.
        f.debug_struct("Payload").field("codec", &self.codec).field("size", &self.bytes.len()).finish()
    }
}

/// Whether an outcome is a success or the provider's final refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// Performed.
    Success,
    /// Refused, finally.
    Refusal,
}

/// Why a completed effect has no payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AbsentReason {
    /// It was dropped after its retention.
    Expired,
    /// The value could not be encoded.
    Unencodable,
    /// The encoded value was over the size limit.
    TooLarge,
}

/// What is stored of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutcomeBody {
    /// The encoded value.
    Payload(Payload),
    /// No value, and why.
    Absent(AbsentReason),
}

/// The final answer of a completed effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredOutcome {
    /// Success or refusal.
    pub kind: OutcomeKind,
    /// The value, or why there is none.
    pub body: OutcomeBody,
    /// Whether the provider said that this was a replay of its own stored answer.
    pub provider_replay: bool,
    /// When it was stored.
    pub settled_at: LedgerTime,
    /// Until when it is kept.
    pub retain_until: LedgerTime,
}

/// The handle of an effect that the provider accepted and works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedHandle {
    /// The provider's job, batch or resource id.
    pub handle: String,
    /// When it is worth asking again.
    pub poll_after: LedgerTime,
}

/// The workflow coordinates of an attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The run that made it.
    pub run: Option<RunId>,
    /// The node that made it.
    pub node: Option<NodeId>,
    /// The host's id of the node's execution.
    pub invocation: Option<InvocationId>,
}

/// One effect, with its current attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectRecord {
    /// Which effect it is: the identity that it was first claimed under, also where a later key schema gave it further ones.
    pub id: EffectId,
    /// The operation's name.
    pub operation: Arc<str>,
    /// How the identity was derived.
    pub keying: Keying,
    /// The key-schema version that the identity was derived under.
    pub key_version: u32,
    /// The key's fields for an operator to read, most of each text left out: `order=…1042 line=7`. `None` where there is no
    /// key.
    pub readable: Option<Arc<str>>,
    /// The provider's pinned name, where one is named.
    pub provider: Option<Arc<str>>,
    /// The idempotency key presented to the provider, for the effect's whole life.
    pub provider_key: Arc<str>,
    /// What was asked.
    pub fingerprints: Arc<[ArgumentDigest]>,
    /// When the effect was first claimed.
    pub created_at: LedgerTime,
    /// When a request of it was first let through to the provider, as far as that was recorded.
    pub first_send_at: Option<LedgerTime>,
    /// Where the effect stands.
    pub state: State,
    /// The fence of the latest claim.
    pub fence: Fence,
    /// The number of the current attempt, from 1.
    pub attempt: u32,
    /// The token of the current attempt, or of the claim that looks it up.
    pub token: AttemptToken,
    /// The recovery class of the current attempt.
    pub class: RecoveryClass,
    /// Where the current attempt was made.
    pub place: Place,
    /// When the current attempt started.
    pub started_at: LedgerTime,
    /// When the latest claim's authority ends.
    pub lease_until: LedgerTime,
    /// How long one attempt may take, in milliseconds.
    pub attempt_timeout_ms: i64,
    /// The current attempt's end; `None` while it is open.
    pub end: Option<AttemptEnd>,
    /// The doubt, while there is any.
    pub doubt: Option<Doubt>,
    /// The handle of an accepted effect.
    pub accepted: Option<AcceptedHandle>,
    /// No attempt starts before this.
    pub not_before: Option<LedgerTime>,
    /// The final answer, of a completed effect.
    pub outcome: Option<StoredOutcome>,
    /// Whether an attempt behind a raised fence brought evidence of success. No look-up that finds nothing outweighs it.
    pub late_success: bool,
    /// Whether two attempts each brought a success of their own: the provider may have performed it twice. Neither what a
    /// look-up found nor a replay by the provider counts.
    pub double_suspected: bool,
    /// Rises with every write of the row: what the compare of each compare-and-set looks at, besides state and fence.
    pub revision: i64,
}

/// A closed attempt, as the history keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRecord {
    /// Its number, from 1.
    pub attempt: u32,
    /// The fence under which it was made.
    pub fence: Fence,
    /// Its token.
    pub token: AttemptToken,
    /// Its recovery class.
    pub class: RecoveryClass,
    /// Where it was made.
    pub place: Place,
    /// When it started.
    pub started_at: LedgerTime,
    /// When its authority ended.
    pub lease_until: LedgerTime,
    /// How long it was allowed to take, in milliseconds.
    pub attempt_timeout_ms: i64,
    /// How it ended.
    pub end: AttemptEnd,
}

/// An answer that came too late to be the outcome, or that a doubt kept from being it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The attempt that got it.
    pub attempt: u32,
    /// That attempt's fence.
    pub fence: Fence,
    /// When it was recorded.
    pub at: LedgerTime,
    /// What the answer says.
    pub verdict: AttemptVerdict,
    /// The value, where there is one.
    pub payload: Option<Payload>,
}

/// Everything that the ledger knows of one effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectHistory {
    /// The row.
    pub effect: EffectRecord,
    /// The closed attempts before the current one, oldest first. The current one is in `effect`, also when it has ended:
    /// [`attempts`](Self::attempts) has them all.
    pub closed: Vec<AttemptRecord>,
    /// Evidence, oldest first.
    pub evidence: Vec<Evidence>,
    /// What operators did, oldest first.
    pub audit: Vec<AuditEntry>,
}

impl EffectHistory {
    /// Every attempt's number and end, oldest first: the closed ones and the current one, whose end is `None` while it is
    /// open.
    pub fn attempts(&self) -> impl Iterator<Item = (u32, Option<&AttemptEnd>)> {
        let closed = self.closed.iter().map(|attempt| (attempt.attempt, Some(&attempt.end)));
        closed.chain(std::iter::once((self.effect.attempt, self.effect.end.as_ref())))
    }
}

impl EffectRecord {
    /// The current attempt as the history will keep it, with `end` where it has none of its own.
    pub(crate) fn closed_attempt(&self, end: AttemptEnd) -> AttemptRecord {
        AttemptRecord {
            attempt: self.attempt,
            fence: self.fence,
            token: self.token,
            class: self.class,
            place: self.place.clone(),
            started_at: self.started_at,
            lease_until: self.lease_until,
            attempt_timeout_ms: self.attempt_timeout_ms,
            end: self.end.clone().unwrap_or(end),
        }
    }
}
