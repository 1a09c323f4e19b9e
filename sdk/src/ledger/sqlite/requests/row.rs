//! Statements and rows of request records.

use sqlx::{SqliteConnection, query::Query, sqlite::SqliteArguments};

use crate::{
    identity::Tenant,
    ledger::{
        LedgerError,
        record::LedgerTime,
        requests::{
            Absence, RecordKey, RequestRecord, RequestState, StoredResponse, decode_headers, encode_headers,
            judge::Write,
        },
        sqlite::row::{Columns, needed, unreadable},
    },
};

const READ: &str = "SELECT tenant, endpoint, digest, fingerprint, principal, state, fence, token, ran_before,
    started_at, lease_until, ended_at, retain_until, status, headers, body, absent_reason, revision
    FROM effectual_requests WHERE digest = ?";

const INSERT: &str =
    "INSERT INTO effectual_requests (fingerprint, principal, state, fence, token, ran_before,
    started_at, lease_until, ended_at, retain_until, status, headers, body, absent_reason, revision,
    tenant, endpoint, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (digest) DO NOTHING";

const UPDATE: &str = "UPDATE effectual_requests SET fingerprint = ?, principal = ?, state = ?, fence = ?, token = ?,
    ran_before = ?, started_at = ?, lease_until = ?, ended_at = ?, retain_until = ?, status = ?, headers = ?, body = ?,
    absent_reason = ?, revision = ? WHERE digest = ? AND revision = ? AND state = ? AND fence = ?";

const DELETE: &str =
    "DELETE FROM effectual_requests WHERE digest = ? AND revision = ? AND state = ? AND fence = ?";

const SWEEP: &str = "DELETE FROM effectual_requests WHERE digest IN (SELECT digest FROM effectual_requests
    WHERE retain_until <= ?1 AND coalesce(lease_until, 0) <= ?1 ORDER BY retain_until LIMIT ?2)";

pub(super) type Read = Result<Option<RequestRecord>, LedgerError>;

pub(super) async fn read(conn: &mut SqliteConnection, digest: &[u8; 32]) -> sqlx::Result<Read> {
    let row = sqlx::query(READ).bind(&digest[..]).fetch_optional(conn).await?;
    Ok(row.map(|row| record(&mut Columns::new(&row))).transpose())
}

/// Stores what was judged; `false` where the row is no longer the judged one.
pub(super) async fn store(
    conn: &mut SqliteConnection,
    seen: Option<&RequestRecord>,
    write: &Write,
) -> sqlx::Result<bool> {
    let query = match (write, seen) {
        (Write::Put(record), None) => {
            let key = &record.key;
            bind(sqlx::query(INSERT), record)
                .bind(key.tenant().as_str())
                .bind(key.endpoint())
                .bind(&key.digest()[..])
        }
        (Write::Put(record), Some(seen)) => bind_seen(bind(sqlx::query(UPDATE), record), seen),
        (Write::Drop, Some(seen)) => bind_seen(sqlx::query(DELETE), seen),
        (Write::Drop, None) => return Ok(true),
    };
    Ok(query.execute(conn).await?.rows_affected() == 1)
}

pub(super) async fn sweep(conn: &mut SqliteConnection, now: LedgerTime, limit: u32) -> sqlx::Result<u64> {
    Ok(sqlx::query(SWEEP).bind(now).bind(limit).execute(conn).await?.rows_affected())
}

type Bound<'q> = Query<'q, sqlx::Sqlite, SqliteArguments>;

fn bind_seen<'q>(query: Bound<'q>, seen: &'q RequestRecord) -> Bound<'q> {
    query.bind(&seen.key.digest()[..]).bind(seen.revision).bind(seen.state.as_str()).bind(seen.fence)
}

fn bind<'q>(query: Bound<'q>, record: &'q RequestRecord) -> Bound<'q> {
    let lease_until = match record.state {
        RequestState::Pending { lease_until } => Some(lease_until),
        _ => None,
    };
    let (response, absence) = match &record.state {
        RequestState::Final(response) => (Some(response), None),
        RequestState::Unavailable(absence) => (None, Some(absence.as_str())),
        _ => (None, None),
    };
    query
        .bind(&record.fingerprint[..])
        .bind(record.principal.as_ref().map(|digest| &digest[..]))
        .bind(record.state.as_str())
        .bind(record.fence)
        .bind(&record.token[..])
        .bind(record.ran_before)
        .bind(record.started_at)
        .bind(lease_until)
        .bind(record.ended_at)
        .bind(record.retain_until)
        .bind(response.map(|response| response.status))
        .bind(response.map(|response| encode_headers(&response.headers)))
        .bind(response.map(|response| &response.body[..]))
        .bind(absence)
        .bind(record.revision)
}

fn record(columns: &mut Columns<'_>) -> Result<RequestRecord, LedgerError> {
    let tenant = needed(columns.parsed("tenant", |text| Tenant::parse(text).ok())?)?;
    let (endpoint, digest) = (columns.get()?, needed(columns.bytes()?)?);
    let (fingerprint, principal) = (needed(columns.bytes()?)?, columns.bytes()?);
    let state: String = columns.get()?;
    let (fence, token, ran_before) = (columns.get()?, needed(columns.bytes()?)?, columns.get()?);
    let (started_at, lease_until) = (columns.get()?, columns.get::<Option<LedgerTime>>()?);
    let (ended_at, retain_until) = (columns.get()?, columns.get()?);
    let status: Option<u16> = columns.get()?;
    let headers: Option<&[u8]> = columns.get()?;
    let body: Option<Vec<u8>> = columns.get()?;
    let absence = columns.parsed("absent_reason", Absence::parse)?;
    let state = match (state.as_str(), lease_until, absence) {
        ("pending", Some(lease_until), _) => RequestState::Pending { lease_until },
        ("final", ..) => RequestState::Final(StoredResponse {
            status: needed(status)?,
            headers: headers.and_then(decode_headers).ok_or_else(|| unreadable("headers"))?,
            body: needed(body)?,
        }),
        ("unavailable", _, Some(absence)) => RequestState::Unavailable(absence),
        ("retryable", ..) => RequestState::Retryable,
        _ => return Err(unreadable("the state of a request")),
    };
    let key = RecordKey::stored(tenant, endpoint, digest);
    let revision = columns.get()?;
    Ok(RequestRecord {
        key,
        fingerprint,
        principal,
        state,
        fence,
        token,
        ran_before,
        started_at,
        ended_at,
        retain_until,
        revision,
    })
}
