//! From columns back to what is judged.

use super::{
    table::{AttemptRow, AuditRow, Bytes, EffectRow, EvidenceRow, Text},
    text::unescaped,
};
use crate::{
    descriptor::{Keying, RecoveryClass},
    identity::{EffectId, InvocationId, NodeId, RunId, Tenant},
    ledger::{
        audit::{AuditEntry, OperatorAction, Standing},
        record::{
            AbsentReason, AcceptedHandle, AttemptEnd, AttemptRecord, AttemptToken, AttemptVerdict, Doubt,
            EffectRecord, Evidence, OutcomeBody, OutcomeKind, Payload, Place, State, StoredOutcome,
        },
    },
};

/// Why a row cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// The named column holds what this library cannot read.
    Column(&'static str),
    /// The row is an alias of an alias.
    Alias,
}

type Read<T> = Result<T, Unreadable>;

fn have<T>(value: Option<T>, column: &'static str) -> Read<T> {
    value.ok_or(Unreadable::Column(column))
}

fn name<T>(text: &Text<'_>, parse: fn(&str) -> Option<T>, column: &'static str) -> Read<T> {
    have(text.as_deref().and_then(parse), column)
}

fn owned(text: &Text<'_>, column: &'static str) -> Read<Option<String>> {
    text.as_deref().map(|text| have(unescaped(text), column)).transpose()
}

fn number(value: Option<i64>, column: &'static str) -> Read<u32> {
    have(value.and_then(|value| u32::try_from(value).ok()), column)
}

fn digest(bytes: Bytes<'_>, column: &'static str) -> Read<Option<[u8; 32]>> {
    bytes.map(|bytes| have(bytes.try_into().ok(), column)).transpose()
}

fn token(token: Option<uuid::Uuid>) -> Read<AttemptToken> {
    Ok(AttemptToken(have(token, "token")?.into_bytes()))
}

fn identity(row: &EffectRow<'_>) -> Read<EffectId> {
    let tenant = name(&row.tenant, |text| Tenant::parse(text).ok(), "tenant")?;
    let mut bytes = [0; 32];
    let (head, tail) = bytes.split_at_mut(16);
    head.copy_from_slice(have(row.digest_head, "digest_head")?.as_bytes());
    let stored = have(row.digest_tail.filter(|stored| stored.len() == tail.len()), "digest_tail")?;
    tail.copy_from_slice(stored);
    Ok(EffectId::new(tenant, bytes))
}

/// The effect that the columns hold.
pub(super) fn effect(row: EffectRow<'_>) -> Read<EffectRecord> {
    if row.alias_of.is_some() {
        return Err(Unreadable::Alias);
    }
    let fingerprints = have(row.fingerprints.as_deref(), "fingerprints")?;
    Ok(EffectRecord {
        id: identity(&row)?,
        key_version: number(row.key_version, "key_version")?,
        keying: name(&row.keying, Keying::parse, "keying")?,
        fingerprints: have(serde_json::from_str::<Vec<_>>(fingerprints).ok(), "fingerprints")?.into(),
        state: name(&row.state, State::parse, "state")?,
        class: name(&row.class, RecoveryClass::parse, "class")?,
        end: end(row.ended_at, &row.verdict, row.send_digest, row.key_taken)?,
        doubt: doubt(&row)?,
        outcome: outcome(&row)?,
        place: place(&row.run, &row.node, &row.invocation)?,
        operation: have(owned(&row.operation, "operation")?, "operation")?.into(),
        readable: owned(&row.readable, "readable")?.map(Into::into),
        provider: owned(&row.provider, "provider")?.map(Into::into),
        provider_key: have(owned(&row.provider_key, "provider_key")?, "provider_key")?.into(),
        created_at: have(row.created_at, "created_at")?,
        first_send_at: row.first_send_at,
        fence: have(row.fence, "fence")?,
        attempt: number(row.attempt, "attempt")?,
        token: token(row.token)?,
        started_at: have(row.started_at, "started_at")?,
        lease_until: have(row.lease_until, "lease_until")?,
        attempt_timeout_ms: have(row.attempt_timeout_ms, "attempt_timeout_ms")?,
        accepted: match (owned(&row.accepted_handle, "accepted_handle")?, row.accepted_poll_after) {
            (Some(handle), Some(poll_after)) => Some(AcceptedHandle { handle, poll_after }),
            _ => None,
        },
        not_before: row.not_before,
        late_success: have(row.late_success, "late_success")?,
        double_suspected: have(row.double_suspected, "double_suspected")?,
        revision: have(row.revision, "revision")?,
    })
}

fn place(run: &Text<'_>, node: &Text<'_>, invocation: &Text<'_>) -> Read<Place> {
    fn checked<T>(text: &Text<'_>, parse: fn(&str) -> Option<T>, column: &'static str) -> Read<Option<T>> {
        text.as_ref().map(|_| name(text, parse, column)).transpose()
    }
    Ok(Place {
        run: checked(run, |text| RunId::parse(text).ok(), "run")?,
        node: checked(node, |text| NodeId::parse(text).ok(), "node")?,
        invocation: checked(invocation, |text| InvocationId::parse(text).ok(), "invocation")?,
    })
}

fn end(
    at: Option<i64>,
    verdict: &Text<'_>,
    send_digest: Bytes<'_>,
    key_taken: Option<bool>,
) -> Read<Option<AttemptEnd>> {
    let Some(at) = at else { return Ok(None) };
    Ok(Some(AttemptEnd {
        at,
        verdict: name(verdict, AttemptVerdict::parse, "verdict")?,
        send_digest: digest(send_digest, "send_digest")?,
        key_taken: have(key_taken, "key_taken")?,
    }))
}

fn doubt(row: &EffectRow<'_>) -> Read<Option<Doubt>> {
    if row.doubt_attempt.is_none() {
        return Ok(None);
    }
    Ok(Some(Doubt {
        attempt: number(row.doubt_attempt, "doubt_attempt")?,
        since: have(row.doubt_since, "doubt_since")?,
        class: name(&row.doubt_class, RecoveryClass::parse, "doubt_class")?,
        acts_until: have(row.doubt_acts_until, "doubt_acts_until")?,
        send_digest: digest(row.doubt_send_digest, "doubt_send_digest")?,
    }))
}

fn outcome(row: &EffectRow<'_>) -> Read<Option<StoredOutcome>> {
    if row.outcome_kind.is_none() {
        return Ok(None);
    }
    let body = match payload(row.payload, &row.payload_codec)? {
        Some(payload) => OutcomeBody::Payload(payload),
        None => OutcomeBody::Absent(name(&row.absent_reason, AbsentReason::parse, "absent_reason")?),
    };
    Ok(Some(StoredOutcome {
        kind: name(&row.outcome_kind, OutcomeKind::parse, "outcome_kind")?,
        body,
        provider_replay: have(row.provider_replay, "provider_replay")?,
        settled_at: have(row.settled_at, "settled_at")?,
        retain_until: have(row.retain_until, "retain_until")?,
    }))
}

pub(super) fn payload(bytes: Bytes<'_>, codec: &Text<'_>) -> Read<Option<Payload>> {
    let Some(bytes) = bytes else { return Ok(None) };
    let codec = have(owned(codec, "payload_codec")?, "payload_codec")?;
    Ok(Some(Payload { codec: codec.into(), bytes: bytes.to_vec() }))
}

/// The closed attempt that the columns hold.
pub(super) fn attempt(row: AttemptRow<'_>) -> Read<AttemptRecord> {
    Ok(AttemptRecord {
        attempt: number(row.attempt, "attempt")?,
        fence: have(row.fence, "fence")?,
        token: token(row.token)?,
        class: name(&row.class, RecoveryClass::parse, "class")?,
        place: place(&row.run, &row.node, &row.invocation)?,
        started_at: have(row.started_at, "started_at")?,
        lease_until: have(row.lease_until, "lease_until")?,
        attempt_timeout_ms: have(row.attempt_timeout_ms, "attempt_timeout_ms")?,
        end: have(end(row.ended_at, &row.verdict, row.send_digest, row.key_taken)?, "ended_at")?,
    })
}

/// The evidence that the columns hold.
pub(super) fn evidence(row: EvidenceRow<'_>) -> Read<Evidence> {
    Ok(Evidence {
        attempt: number(row.attempt, "attempt")?,
        fence: have(row.fence, "fence")?,
        at: have(row.at, "at")?,
        verdict: name(&row.verdict, AttemptVerdict::parse, "verdict")?,
        payload: payload(row.payload, &row.payload_codec)?,
    })
}

/// The audit entry that the columns hold.
pub(super) fn audit(row: AuditRow<'_>) -> Read<AuditEntry> {
    Ok(AuditEntry {
        at: have(row.at, "at")?,
        who: have(owned(&row.who, "who")?, "who")?,
        why: have(owned(&row.why, "why")?, "why")?,
        action: name(&row.action, OperatorAction::parse, "action")?,
        before: name(&row.before, Standing::parse, "before")?,
        after: name(&row.after, Standing::parse, "after")?,
    })
}
