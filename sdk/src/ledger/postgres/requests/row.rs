//! Rows of request records, and parameters of what writes them.

use sqlx::{
    Arguments, Decode, Postgres, Row as _, Type,
    error::BoxDynError,
    postgres::{PgArguments, PgRow},
};
use uuid::Uuid;

use crate::{
    identity::Tenant,
    ledger::{
        LedgerError, LedgerErrorKind,
        record::LedgerTime,
        requests::{
            Absence, RecordKey, RequestRecord, RequestState, StoredResponse, decode_headers, encode_headers,
        },
    },
};

fn unreadable() -> LedgerError {
    LedgerError::new(LedgerErrorKind::Corrupt, "a stored request cannot be read: its row was changed by hand")
}

/// Reads columns one after the other.
struct Columns<'r> {
    row: &'r PgRow,
    next: usize,
}

impl<'r> Columns<'r> {
    fn get<T: Decode<'r, Postgres> + Type<Postgres>>(&mut self) -> Result<T, LedgerError> {
        let index = self.next;
        self.next += 1;
        self.row.try_get(index).map_err(|_| unreadable())
    }

    fn digest(&mut self) -> Result<Option<[u8; 32]>, LedgerError> {
        let bytes: Option<&[u8]> = self.get()?;
        bytes.map(|bytes| bytes.try_into().map_err(|_| unreadable())).transpose()
    }
}

/// The database's clock, and the record if there is one.
pub(super) fn read(row: &PgRow) -> Result<(LedgerTime, Option<RequestRecord>), LedgerError> {
    let mut columns = Columns { row, next: 0 };
    let now = columns.get()?;
    match columns.digest()? {
        Some(fingerprint) => Ok((now, Some(record(columns, fingerprint)?))),
        None => Ok((now, None)),
    }
}

fn record(mut columns: Columns<'_>, fingerprint: [u8; 32]) -> Result<RequestRecord, LedgerError> {
    let principal = columns.digest()?;
    let state: &str = columns.get()?;
    let (fence, token, ran_before) = (columns.get()?, columns.get::<Uuid>()?, columns.get()?);
    let (started_at, lease_until) = (columns.get()?, columns.get::<Option<LedgerTime>>()?);
    let (ended_at, retain_until) = (columns.get()?, columns.get()?);
    let status: Option<i32> = columns.get()?;
    let (headers, body) = (columns.get::<Option<&[u8]>>()?, columns.get::<Option<Vec<u8>>>()?);
    let absence: Option<&str> = columns.get()?;
    let revision = columns.get()?;
    let tenant = Tenant::parse(columns.get::<String>()?).map_err(|_| unreadable())?;
    let endpoint = columns.get()?;
    let digest = columns.digest()?.ok_or_else(unreadable)?;
    let state = match (state, lease_until, status, headers.and_then(decode_headers), body, absence) {
        ("pending", Some(lease_until), ..) => RequestState::Pending { lease_until },
        ("final", _, Some(status), Some(headers), Some(body), _) => {
            let status = u16::try_from(status).map_err(|_| unreadable())?;
            RequestState::Final(StoredResponse { status, headers, body })
        }
        ("unavailable", .., Some(reason)) => {
            RequestState::Unavailable(Absence::parse(reason).ok_or_else(unreadable)?)
        }
        ("retryable", ..) => RequestState::Retryable,
        _ => return Err(unreadable()),
    };
    Ok(RequestRecord {
        key: RecordKey::stored(tenant, endpoint, digest),
        fingerprint,
        principal,
        state,
        fence,
        token: token.into_bytes(),
        ran_before,
        started_at,
        ended_at,
        retain_until,
        revision,
    })
}

/// The parameters of what every write sets.
pub(super) fn add_set(arguments: &mut PgArguments, record: &RequestRecord) -> Result<(), BoxDynError> {
    let lease_until = match record.state {
        RequestState::Pending { lease_until } => Some(lease_until),
        _ => None,
    };
    let (response, absence) = match &record.state {
        RequestState::Final(response) => (Some(response), None),
        RequestState::Unavailable(absence) => (None, Some(absence.as_str())),
        _ => (None, None),
    };
    arguments.add(&record.fingerprint[..])?;
    arguments.add(record.principal.as_ref().map(|digest| &digest[..]))?;
    arguments.add(record.state.as_str())?;
    arguments.add(record.fence)?;
    arguments.add(Uuid::from_bytes(record.token))?;
    arguments.add(record.ran_before)?;
    arguments.add(record.started_at)?;
    arguments.add(lease_until)?;
    arguments.add(record.ended_at)?;
    arguments.add(record.retain_until)?;
    arguments.add(response.map(|response| i32::from(response.status)))?;
    arguments.add(response.map(|response| encode_headers(&response.headers)))?;
    arguments.add(response.map(|response| &response.body[..]))?;
    arguments.add(absence)?;
    arguments.add(record.revision)
}

/// The parameters of what only an insert sets.
pub(super) fn add_fixed(arguments: &mut PgArguments, key: &RecordKey) -> Result<(), BoxDynError> {
    arguments.add(key.tenant().as_str())?;
    arguments.add(key.endpoint())?;
    arguments.add(&key.digest()[..])
}

/// The parameters of what must still hold.
pub(super) fn add_seen(arguments: &mut PgArguments, seen: &RequestRecord) -> Result<(), BoxDynError> {
    arguments.add(&seen.key.digest()[..])?;
    arguments.add(seen.revision)?;
    arguments.add(seen.state.as_str())?;
    arguments.add(seen.fence)
}
