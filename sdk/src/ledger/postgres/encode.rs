//! From what is judged to columns.

use std::borrow::Cow;

use uuid::Uuid;

use super::{
    table::{AttemptRow, AuditRow, EffectRow, EvidenceRow, Text, TouchRow},
    text::escaped,
    time::CLOCK,
};
use crate::{
    identity::EffectId,
    ledger::{
        audit::AuditEntry,
        record::{
            AttemptRecord, AttemptToken, EffectRecord, Evidence, OutcomeBody, Payload, Place, StoredOutcome,
        },
    },
};

/// The half of the digest that is the key.
pub(super) fn head(id: &EffectId) -> Uuid {
    let (head, _) = halves(id);
    Uuid::from_bytes(head)
}

pub(super) fn halves(id: &EffectId) -> ([u8; 16], &[u8]) {
    let (head, tail) = id.digest().split_at(16);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(head);
    (bytes, tail)
}

pub(super) fn token(token: AttemptToken) -> Uuid {
    Uuid::from_bytes(token.0)
}

fn text(text: &str) -> Text<'_> {
    Some(escaped(text))
}

/// The row as its columns hold it, but for those that are written once and for all with the first claim.
pub(super) fn effect(record: &EffectRecord) -> EffectRow<'_> {
    let mut row = EffectRow {
        digest_head: Some(head(&record.id)),
        digest_tail: Some(halves(&record.id).1),
        first_send_at: record.first_send_at,
        state: text(record.state.as_str()),
        fence: Some(record.fence),
        attempt: Some(record.attempt.into()),
        token: Some(token(record.token)),
        class: text(record.class.as_str()),
        started_at: Some(record.started_at),
        lease_until: Some(record.lease_until),
        attempt_timeout_ms: Some(record.attempt_timeout_ms),
        not_before: record.not_before,
        late_success: Some(record.late_success),
        double_suspected: Some(record.double_suspected),
        revision: Some(record.revision),
        ..EffectRow::default()
    };
    (row.run, row.node, row.invocation) = place(&record.place);
    put_end_and_doubt(&mut row, record);
    if let Some(accepted) = &record.accepted {
        row.accepted_handle = text(&accepted.handle);
        row.accepted_poll_after = Some(accepted.poll_after);
    }
    if let Some(outcome) = &record.outcome {
        put_outcome(&mut row, outcome);
    }
    row
}

fn put_end_and_doubt<'r>(row: &mut EffectRow<'r>, record: &'r EffectRecord) {
    if let Some(end) = &record.end {
        row.ended_at = Some(end.at);
        row.verdict = text(end.verdict.as_str());
        row.send_digest = end.send_digest.as_ref().map(<[u8; 32]>::as_slice);
        row.key_taken = Some(end.key_taken);
    }
    if let Some(doubt) = &record.doubt {
        row.doubt_attempt = Some(doubt.attempt.into());
        row.doubt_since = Some(doubt.since);
        row.doubt_class = text(doubt.class.as_str());
        row.doubt_acts_until = Some(doubt.acts_until);
        row.doubt_send_digest = doubt.send_digest.as_ref().map(<[u8; 32]>::as_slice);
    }
}

fn put_outcome<'r>(row: &mut EffectRow<'r>, outcome: &'r StoredOutcome) {
    row.outcome_kind = text(outcome.kind.as_str());
    match &outcome.body {
        OutcomeBody::Payload(Payload { codec, bytes }) => {
            row.payload = Some(bytes);
            row.payload_codec = text(codec);
        }
        OutcomeBody::Absent(reason) => row.absent_reason = text(reason.as_str()),
    }
    row.provider_replay = Some(outcome.provider_replay);
    row.settled_at = Some(outcome.settled_at);
    row.retain_until = Some(outcome.retain_until);
}

pub(super) fn place(place: &Place) -> (Text<'_>, Text<'_>, Text<'_>) {
    let run = place.run.as_ref().map(|run| Cow::Borrowed(run.as_str()));
    let node = place.node.as_ref().map(|node| Cow::Borrowed(node.as_str()));
    let invocation = place.invocation.as_ref().map(|invocation| Cow::Borrowed(invocation.as_str()));
    (run, node, invocation)
}

/// A closed attempt of the effect that the statement stores in `slot`.
pub(super) fn attempt<'r>(id: &EffectId, slot: i64, closed: &'r AttemptRecord) -> AttemptRow<'r> {
    let (run, node, invocation) = place(&closed.place);
    AttemptRow {
        slot: Some(slot),
        digest_head: Some(head(id)),
        attempt: Some(closed.attempt.into()),
        fence: Some(closed.fence),
        token: Some(token(closed.token)),
        class: text(closed.class.as_str()),
        run,
        node,
        invocation,
        started_at: Some(closed.started_at),
        lease_until: Some(closed.lease_until),
        attempt_timeout_ms: Some(closed.attempt_timeout_ms),
        ended_at: Some(closed.end.at),
        verdict: text(closed.end.verdict.as_str()),
        send_digest: closed.end.send_digest.as_ref().map(<[u8; 32]>::as_slice),
        key_taken: Some(closed.end.key_taken),
    }
}

/// A touch, at the time at which it is stored.
pub(super) fn touch<'r>(id: &EffectId, slot: i64, by: &'r Place) -> TouchRow<'r> {
    let (run, node, invocation) = place(by);
    TouchRow { slot: Some(slot), run, digest_head: Some(head(id)), node, invocation, at: Some(CLOCK) }
}

/// Evidence of the effect that the statement stores in `slot`.
pub(super) fn evidence<'r>(id: &EffectId, slot: i64, evidence: &'r Evidence) -> EvidenceRow<'r> {
    EvidenceRow {
        slot: Some(slot),
        digest_head: Some(head(id)),
        attempt: Some(evidence.attempt.into()),
        fence: Some(evidence.fence),
        at: Some(evidence.at),
        verdict: text(evidence.verdict.as_str()),
        payload: evidence.payload.as_ref().map(|payload| payload.bytes.as_slice()),
        payload_codec: evidence.payload.as_ref().map(|payload| escaped(&payload.codec)),
    }
}

/// What an operator did to the effect that the statement stores in `slot`.
pub(super) fn audit<'r>(id: &EffectId, slot: i64, entry: &'r AuditEntry) -> AuditRow<'r> {
    AuditRow {
        slot: Some(slot),
        digest_head: Some(head(id)),
        at: Some(entry.at),
        who: text(&entry.who),
        why: text(&entry.why),
        action: text(entry.action.as_str()),
        before: Some(Cow::Owned(entry.before.to_text())),
        after: Some(Cow::Owned(entry.after.to_text())),
    }
}
