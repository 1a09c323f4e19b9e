//! The rows of the usual way: a first claim and a settlement, without what they always have alike.

use std::borrow::Cow;

use sqlx::{Arguments, Row as _, error::BoxDynError, postgres::PgArguments, postgres::PgRow};
use uuid::Uuid;

use super::{
    encode,
    table::{Bytes, Cell, Column, Role, Shape, Table, Text, is_time, table},
    text::escaped,
    time::CLOCK,
};
use crate::ledger::{
    record::{AttemptVerdict, EffectRecord, OutcomeBody, OutcomeKind},
    transition::Write,
};

table! {
    /// A first claim. Its statement knows the rest: it is claimed, for the first attempt under the first fence, from now on.
    ClaimRow {
        digest_head: Option<Uuid>, Key;
        digest_tail: Bytes<'r>, Key;
        tenant: Text<'r>, Fixed;
        key_version: Option<i64>, Fixed;
        operation: Text<'r>, Fixed;
        keying: Text<'r>, Fixed;
        readable: Text<'r>, Fixed;
        provider: Text<'r>, Fixed;
        provider_key: Text<'r>, Fixed;
        fingerprints: Text<'r>, Fixed;
        token: Option<Uuid>, Fixed;
        class: Text<'r>, Fixed;
        lease_until: Option<i64>, Fixed time;
        attempt_timeout_ms: Option<i64>, Fixed;
        run: Text<'r>, Rare;
        node: Text<'r>, Rare;
        invocation: Text<'r>, Rare;
        input: Bytes<'r>, Rare;
        input_codec: Text<'r>, Rare;
    }
}

table! {
    /// A settlement. Its statement knows the rest: a claimed row is completed, its lease and its attempt end now, with the
    /// verdict that the kind of its outcome says.
    SettlementRow {
        slot: Option<i64>, Guard;
        was_fence: Option<i64>, Guard;
        was_revision: Option<i64>, Guard;
        digest_head: Option<Uuid>, Key;
        digest_tail: Bytes<'r>, Key;
        first_send_at: Option<i64>, Later time;
        send_digest: Bytes<'r>, Later;
        key_taken: Option<bool>, Later;
        outcome_kind: Text<'r>, Later;
        payload: Bytes<'r>, Later;
        payload_codec: Text<'r>, Later;
        absent_reason: Text<'r>, Later;
        provider_replay: Option<bool>, Later;
        retain_until: Option<i64>, Later time;
    }
}

impl ClaimRow<'_> {
    /// Whether it has what few claims have.
    pub(super) fn is_rare(&self) -> bool {
        self.run.is_some() || self.node.is_some() || self.invocation.is_some() || self.input.is_some()
    }
}

/// The row of a first claim.
pub(super) fn claim(write: &Write) -> ClaimRow<'_> {
    let record = &*write.effect;
    debug_assert!(is_first_claim(record), "a first claim is what its statement takes it for");
    let (run, node, invocation) = encode::place(&record.place);
    let (digest_head, digest_tail) = encode::halves(&record.id);
    ClaimRow {
        digest_head: Some(Uuid::from_bytes(digest_head)),
        digest_tail: Some(digest_tail),
        tenant: Some(escaped(record.id.tenant().as_str())),
        key_version: Some(record.key_version.into()),
        operation: Some(escaped(&record.operation)),
        keying: Some(record.keying.as_str().into()),
        readable: record.readable.as_deref().map(escaped),
        provider: record.provider.as_deref().map(escaped),
        provider_key: Some(escaped(&record.provider_key)),
        fingerprints: serde_json::to_string(&*record.fingerprints).ok().map(Cow::Owned),
        token: Some(encode::token(record.token)),
        class: Some(record.class.as_str().into()),
        lease_until: Some(record.lease_until),
        attempt_timeout_ms: Some(record.attempt_timeout_ms),
        run,
        node,
        invocation,
        input: write.input.as_ref().map(|input| input.bytes.as_slice()),
        input_codec: write.input.as_ref().map(|input| escaped(&input.codec)),
    }
}

/// Whether the row is one that a first claim's statement writes, whose time is the statement's.
pub(super) fn is_first_claim(record: &EffectRecord) -> bool {
    record.is_first_claim() && record.created_at == CLOCK
}

/// Whether the write is one that a settlement's statement makes of the row `seen`.
pub(super) fn is_settlement(write: &Write, seen: &EffectRecord) -> bool {
    let next = &*write.effect;
    let (Some(end), Some(outcome)) = (&next.end, &next.outcome) else { return false };
    let verdict = match outcome.kind {
        OutcomeKind::Success => AttemptVerdict::Performed,
        OutcomeKind::Refusal => AttemptVerdict::Refused,
    };
    write.is_settlement_of(seen)
        && (next.lease_until, end.at, outcome.settled_at) == (CLOCK, CLOCK, CLOCK)
        && end.verdict == verdict
        && next.revision == seen.revision + 1
}

/// The row of a settlement.
pub(super) fn settlement(slot: i64, record: &EffectRecord) -> SettlementRow<'_> {
    let (digest_head, digest_tail) = encode::halves(&record.id);
    let mut row = SettlementRow {
        slot: Some(slot),
        was_fence: Some(record.fence),
        was_revision: Some(record.revision - 1),
        digest_head: Some(Uuid::from_bytes(digest_head)),
        digest_tail: Some(digest_tail),
        first_send_at: record.first_send_at,
        ..SettlementRow::default()
    };
    if let Some(end) = &record.end {
        row.send_digest = end.send_digest.as_ref().map(<[u8; 32]>::as_slice);
        row.key_taken = Some(end.key_taken);
    }
    if let Some(outcome) = &record.outcome {
        row.outcome_kind = Some(outcome.kind.as_str().into());
        match &outcome.body {
            OutcomeBody::Payload(payload) => {
                row.payload = Some(&payload.bytes);
                row.payload_codec = Some(escaped(&payload.codec));
            }
            OutcomeBody::Absent(reason) => row.absent_reason = Some(reason.as_str().into()),
        }
        row.provider_replay = Some(outcome.provider_replay);
        row.retain_until = Some(outcome.retain_until);
    }
    row
}
