//! Rows to records and back.

use sqlx::{
    Decode, Row, Sqlite, Type,
    query::Query,
    sqlite::{SqliteArguments, SqliteRow},
};

use super::writing::Seen;
use crate::{
    descriptor::{Keying, RecoveryClass},
    identity::{EffectId, InvocationId, NodeId, RunId, Tenant},
    ledger::{
        LedgerError, LedgerErrorKind,
        audit::{AuditEntry, OperatorAction, Standing},
        record::{
            AbsentReason, AcceptedHandle, AttemptEnd, AttemptRecord, AttemptToken, AttemptVerdict, Doubt,
            EffectRecord, Evidence, OutcomeBody, OutcomeKind, Payload, Place, State, StoredOutcome,
        },
    },
};

pub(super) type Bound<'q> = Query<'q, Sqlite, SqliteArguments>;

/// Reads a row's columns one after the other.
pub(super) struct Columns<'r> {
    row: &'r SqliteRow,
    next: usize,
}

impl<'r> Columns<'r> {
    pub(super) fn new(row: &'r SqliteRow) -> Self {
        Self { row, next: 0 }
    }

    /// The columns behind the first `count`.
    pub(super) fn behind(row: &'r SqliteRow, count: usize) -> Self {
        Self { row, next: count }
    }

    pub(super) fn get<T: Decode<'r, Sqlite> + Type<Sqlite>>(&mut self) -> Result<T, LedgerError> {
        let index = self.next;
        self.next += 1;
        self.row.try_get(index).map_err(|_| unreadable("a column has another type than the schema says"))
    }

    pub(super) fn bytes<const N: usize>(&mut self) -> Result<Option<[u8; N]>, LedgerError> {
        let bytes: Option<&[u8]> = self.get()?;
        bytes
            .map(|bytes| bytes.try_into().map_err(|_| unreadable("a digest or token has another length")))
            .transpose()
    }

    /// A column that is read back by `parse`.
    pub(super) fn parsed<T>(
        &mut self,
        what: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, LedgerError> {
        let text: Option<&str> = self.get()?;
        text.map(|text| parse(text).ok_or_else(|| unreadable(what))).transpose()
    }
}

/// An error for what the schema does not allow to be stored.
pub(super) fn unreadable(what: &'static str) -> LedgerError {
    LedgerError::new(LedgerErrorKind::Corrupt, format!("a stored row cannot be read: {what}"))
}

pub(super) fn needed<T>(value: Option<T>) -> Result<T, LedgerError> {
    value.ok_or_else(|| unreadable("a column that is never null is null"))
}

/// The columns of [`effect_columns`](super::columns::effect_columns), from where `columns` stands.
pub(super) fn effect(columns: &mut Columns<'_>) -> Result<EffectRecord, LedgerError> {
    if columns.get::<Option<&[u8]>>()?.is_some() {
        return Err(unreadable("it is a further identity of a further identity"));
    }
    let digest = needed(columns.bytes()?)?;
    let tenant = needed(columns.parsed("tenant", |text| Tenant::parse(text).ok())?)?;
    let mut record = EffectRecord {
        id: EffectId::new(tenant, digest),
        key_version: columns.get()?,
        operation: columns.get::<&str>()?.into(),
        keying: needed(columns.parsed("keying", Keying::parse)?)?,
        readable: columns.get::<Option<&str>>()?.map(Into::into),
        provider: columns.get::<Option<&str>>()?.map(Into::into),
        provider_key: columns.get::<&str>()?.into(),
        fingerprints: needed(
            columns.parsed("fingerprints", |text| serde_json::from_str::<Vec<_>>(text).ok())?,
        )?
        .into(),
        created_at: columns.get()?,
        first_send_at: columns.get()?,
        state: needed(columns.parsed("state", State::parse)?)?,
        fence: columns.get()?,
        attempt: columns.get()?,
        token: AttemptToken(needed(columns.bytes()?)?),
        class: needed(columns.parsed("class", RecoveryClass::parse)?)?,
        place: place(columns)?,
        started_at: columns.get()?,
        lease_until: columns.get()?,
        attempt_timeout_ms: columns.get()?,
        end: end(columns)?,
        doubt: doubt(columns)?,
        accepted: accepted(columns)?,
        not_before: columns.get()?,
        outcome: None,
        late_success: false,
        double_suspected: false,
        revision: 0,
    };
    record.outcome = outcome(columns)?;
    record.late_success = columns.get()?;
    record.double_suspected = columns.get()?;
    record.revision = columns.get()?;
    Ok(record)
}

/// The columns of [`ATTEMPT`](super::columns::ATTEMPT).
pub(super) fn attempt(columns: &mut Columns<'_>) -> Result<AttemptRecord, LedgerError> {
    Ok(AttemptRecord {
        attempt: columns.get()?,
        fence: columns.get()?,
        token: AttemptToken(needed(columns.bytes()?)?),
        class: needed(columns.parsed("class", RecoveryClass::parse)?)?,
        place: place(columns)?,
        started_at: columns.get()?,
        lease_until: columns.get()?,
        attempt_timeout_ms: columns.get()?,
        end: needed(end(columns)?)?,
    })
}

/// Attempt, fence, time, verdict, payload and its codec.
pub(super) fn evidence(columns: &mut Columns<'_>) -> Result<Evidence, LedgerError> {
    Ok(Evidence {
        attempt: columns.get()?,
        fence: columns.get()?,
        at: columns.get()?,
        verdict: needed(columns.parsed("verdict", AttemptVerdict::parse)?)?,
        payload: payload(columns)?,
    })
}

pub(super) fn audit(columns: &mut Columns<'_>) -> Result<AuditEntry, LedgerError> {
    Ok(AuditEntry {
        at: columns.get()?,
        who: columns.get()?,
        why: columns.get()?,
        action: needed(columns.parsed("action", OperatorAction::parse)?)?,
        before: needed(columns.parsed("before", Standing::parse)?)?,
        after: needed(columns.parsed("after", Standing::parse)?)?,
    })
}

fn place(columns: &mut Columns<'_>) -> Result<Place, LedgerError> {
    Ok(Place {
        run: columns.parsed("run", |text| RunId::parse(text).ok())?,
        node: columns.parsed("node", |text| NodeId::parse(text).ok())?,
        invocation: columns.parsed("invocation", |text| InvocationId::parse(text).ok())?,
    })
}

fn end(columns: &mut Columns<'_>) -> Result<Option<AttemptEnd>, LedgerError> {
    let at: Option<i64> = columns.get()?;
    let verdict = columns.parsed("verdict", AttemptVerdict::parse)?;
    let send_digest = columns.bytes()?;
    let key_taken: Option<bool> = columns.get()?;
    let Some(at) = at else { return Ok(None) };
    Ok(Some(AttemptEnd { at, verdict: needed(verdict)?, send_digest, key_taken: needed(key_taken)? }))
}

fn doubt(columns: &mut Columns<'_>) -> Result<Option<Doubt>, LedgerError> {
    let attempt: Option<u32> = columns.get()?;
    let since: Option<i64> = columns.get()?;
    let class = columns.parsed("class", RecoveryClass::parse)?;
    let acts_until: Option<i64> = columns.get()?;
    let send_digest = columns.bytes()?;
    let Some(attempt) = attempt else { return Ok(None) };
    let (since, class, acts_until) = (needed(since)?, needed(class)?, needed(acts_until)?);
    Ok(Some(Doubt { attempt, since, class, acts_until, send_digest }))
}

fn accepted(columns: &mut Columns<'_>) -> Result<Option<AcceptedHandle>, LedgerError> {
    let handle: Option<String> = columns.get()?;
    let poll_after: Option<i64> = columns.get()?;
    let Some(handle) = handle else { return Ok(None) };
    Ok(Some(AcceptedHandle { handle, poll_after: needed(poll_after)? }))
}

pub(super) fn payload(columns: &mut Columns<'_>) -> Result<Option<Payload>, LedgerError> {
    let bytes: Option<Vec<u8>> = columns.get()?;
    let codec: Option<String> = columns.get()?;
    let Some(bytes) = bytes else { return Ok(None) };
    Ok(Some(Payload { codec: needed(codec)?.into(), bytes }))
}

fn outcome(columns: &mut Columns<'_>) -> Result<Option<StoredOutcome>, LedgerError> {
    let kind = columns.parsed("outcome kind", OutcomeKind::parse)?;
    let payload = payload(columns)?;
    let absent = columns.parsed("reason of an absent payload", AbsentReason::parse)?;
    let provider_replay: Option<bool> = columns.get()?;
    let settled_at: Option<i64> = columns.get()?;
    let retain_until: Option<i64> = columns.get()?;
    let Some(kind) = kind else { return Ok(None) };
    let body = match payload {
        Some(payload) => OutcomeBody::Payload(payload),
        None => OutcomeBody::Absent(needed(absent)?),
    };
    Ok(Some(StoredOutcome {
        kind,
        body,
        provider_replay: needed(provider_replay)?,
        settled_at: needed(settled_at)?,
        retain_until: needed(retain_until)?,
    }))
}

/// Binds what is written with the first claim.
pub(super) fn bind_fixed<'q>(query: Bound<'q>, record: &'q EffectRecord) -> Bound<'q> {
    // A list of digests is text whatever it holds.
    let fingerprints = serde_json::to_string(&*record.fingerprints).unwrap_or_default();
    query
        .bind(&record.id.digest()[..])
        .bind(record.id.tenant().as_str())
        .bind(record.key_version)
        .bind(&*record.operation)
        .bind(record.keying.as_str())
        .bind(record.readable.as_deref())
        .bind(record.provider.as_deref())
        .bind(&*record.provider_key)
        .bind(fingerprints)
        .bind(record.created_at)
}

/// Binds the arguments that are stored with the first claim.
pub(super) fn bind_input<'q>(query: Bound<'q>, input: Option<&'q Payload>) -> Bound<'q> {
    query.bind(input.map(|input| &input.bytes[..])).bind(input.map(|input| &*input.codec))
}

/// Binds what a compare-and-set compares, beside the state.
pub(super) fn bind_seen<'q>(query: Bound<'q>, record: &'q EffectRecord, seen: &Seen) -> Bound<'q> {
    query.bind(&record.id.digest()[..]).bind(seen.revision).bind(seen.fence)
}

/// Binds what is written with every change.
pub(super) fn bind_current<'q>(query: Bound<'q>, record: &'q EffectRecord) -> Bound<'q> {
    let query = query
        .bind(record.first_send_at)
        .bind(record.state.as_str())
        .bind(record.fence)
        .bind(record.attempt)
        .bind(&record.token.0[..])
        .bind(record.class.as_str());
    let query = bind_place(query, &record.place)
        .bind(record.started_at)
        .bind(record.lease_until)
        .bind(record.attempt_timeout_ms);
    let doubt = record.doubt.as_ref();
    let accepted = record.accepted.as_ref();
    let query = bind_end(query, record.end.as_ref())
        .bind(doubt.map(|doubt| doubt.attempt))
        .bind(doubt.map(|doubt| doubt.since))
        .bind(doubt.map(|doubt| doubt.class.as_str()))
        .bind(doubt.map(|doubt| doubt.acts_until))
        .bind(doubt.and_then(|doubt| doubt.send_digest.as_ref()).map(|digest| &digest[..]))
        .bind(accepted.map(|accepted| accepted.handle.as_str()))
        .bind(accepted.map(|accepted| accepted.poll_after))
        .bind(record.not_before);
    bind_outcome(query, record.outcome.as_ref())
        .bind(record.late_success)
        .bind(record.double_suspected)
        .bind(record.revision)
}

/// Binds a closed attempt, behind its effect's digest.
pub(super) fn bind_attempt<'q>(query: Bound<'q>, attempt: &'q AttemptRecord) -> Bound<'q> {
    let query = query
        .bind(attempt.attempt)
        .bind(attempt.fence)
        .bind(&attempt.token.0[..])
        .bind(attempt.class.as_str());
    let query = bind_place(query, &attempt.place)
        .bind(attempt.started_at)
        .bind(attempt.lease_until)
        .bind(attempt.attempt_timeout_ms);
    bind_end(query, Some(&attempt.end))
}

pub(super) fn bind_place<'q>(query: Bound<'q>, place: &'q Place) -> Bound<'q> {
    query
        .bind(place.run.as_ref().map(RunId::as_str))
        .bind(place.node.as_ref().map(NodeId::as_str))
        .bind(place.invocation.as_ref().map(InvocationId::as_str))
}

pub(super) fn bind_end<'q>(query: Bound<'q>, end: Option<&'q AttemptEnd>) -> Bound<'q> {
    query
        .bind(end.map(|end| end.at))
        .bind(end.map(|end| end.verdict.as_str()))
        .bind(end.and_then(|end| end.send_digest.as_ref()).map(|digest| &digest[..]))
        .bind(end.map(|end| end.key_taken))
}

pub(super) fn bind_outcome<'q>(query: Bound<'q>, outcome: Option<&'q StoredOutcome>) -> Bound<'q> {
    let (payload, absent) = match outcome.map(|outcome| &outcome.body) {
        None => (None, None),
        Some(OutcomeBody::Payload(payload)) => (Some(payload), None),
        Some(OutcomeBody::Absent(reason)) => (None, Some(reason.as_str())),
    };
    query
        .bind(outcome.map(|outcome| outcome.kind.as_str()))
        .bind(payload.map(|payload| &payload.bytes[..]))
        .bind(payload.map(|payload| &*payload.codec))
        .bind(absent)
        .bind(outcome.map(|outcome| outcome.provider_replay))
        .bind(outcome.map(|outcome| outcome.settled_at))
        .bind(outcome.map(|outcome| outcome.retain_until))
}
