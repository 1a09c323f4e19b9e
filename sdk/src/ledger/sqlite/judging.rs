//! Which judgement each command of a batch gets, and on which row.

use std::collections::HashMap;

use sqlx::SqliteConnection;

use super::{
    beside::Touch,
    columns::Statements,
    row::{self, Columns, unreadable},
    sized::{Part, ROWS_MAX},
    writing::Judged,
};
use crate::identity::{EffectId, RunId};
use crate::ledger::{
    ClaimRequest, LedgerError, change, claim,
    record::{EffectRecord, LedgerTime},
    resolution,
    writer::{Command, Reply},
};

/// A row as it was read, and whether the asking run has met its effect.
pub(super) struct Found {
    pub(super) record: EffectRecord,
    met: bool,
}

type Rows = HashMap<[u8; 32], Result<Found, LedgerError>>;

/// What a command may be judged on without a read, where the write compares.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Trust {
    /// A change: on the row as its owner saw it.
    pub(super) owners: bool,
    /// A claim: on that there is no row.
    pub(super) absence: bool,
}

/// Judges every command: on what may be trusted where that leads to a write, on a fresh read otherwise.
pub(super) async fn judge(
    conn: &mut SqliteConnection,
    statements: &Statements,
    commands: &[&Command],
    trust: Trust,
    now: impl Fn() -> LedgerTime,
) -> sqlx::Result<Vec<Judged>> {
    let unread_at = now();
    let mut judged: Vec<Option<Judged>> =
        commands.iter().map(|command| unread(command, trust, unread_at)).collect();
    let unread: Vec<&Command> = commands
        .iter()
        .zip(&judged)
        .filter(|(_, judged)| judged.is_none())
        .map(|(command, _)| *command)
        .collect();
    if unread.is_empty() {
        return Ok(judged.into_iter().flatten().collect());
    }
    let mut rows = read(conn, statements, &unread).await?;
    let now = now();
    Ok(commands
        .iter()
        .zip(&mut judged)
        .map(|(command, judged)| judged.take().unwrap_or_else(|| on_row(command, &mut rows, now)))
        .collect())
}

/// `None` where nothing would be stored and so nothing compared.
fn unread(command: &Command, trust: Trust, now: LedgerTime) -> Option<Judged> {
    match command {
        Command::Claim(request) if trust.absence => Some(claimed(request, None, now)),
        Command::Change(owner, change) if trust.owners => {
            let seen = owner.seen.as_deref().filter(|seen| seen.id == owner.id)?;
            let transition = change::judge(Some(seen), owner, change, now);
            let write = Some(transition.write?);
            Some(Judged::new(Reply::Change(transition.reply), write, Some(seen), None))
        }
        _ => None,
    }
}

fn on_row(command: &Command, rows: &mut Rows, now: LedgerTime) -> Judged {
    let found = match rows.remove(command.id().digest()).transpose() {
        Ok(found) => found,
        Err(error) => return Judged::failed(error),
    };
    let current = found.as_ref().map(|found| &found.record);
    if current.is_some_and(|record| record.id.tenant() != command.id().tenant()) {
        return Judged::failed(unreadable("its tenant is another than the one asked for"));
    }
    match command {
        Command::Change(owner, change) => {
            let transition = change::judge(current, owner, change, now);
            Judged::new(Reply::Change(transition.reply), transition.write, current, None)
        }
        Command::Resolve(request) => {
            let transition = resolution::judge(current, request, now);
            Judged::new(Reply::Resolve(transition.reply), transition.write, current, None)
        }
        Command::Claim(request) => claimed(request, found.as_ref(), now),
    }
}

/// The judgement of a claim on the row that was found for it.
pub(super) fn claimed(request: &ClaimRequest, found: Option<&Found>, now: LedgerTime) -> Judged {
    let current = found.map(|found| &found.record);
    let transition = claim::judge(current, request, now);
    let met = found.filter(|found| transition.touch && !found.met);
    let touch =
        met.map(|found| Touch { digest: *found.record.id.digest(), place: request.place.clone(), at: now });
    Judged::new(Reply::Claim(transition.reply), transition.write, current, touch)
}

/// What one identity names, for a claim of a run.
pub(super) async fn find(
    conn: &mut SqliteConnection,
    statements: &Statements,
    id: &EffectId,
    run: Option<&RunId>,
) -> sqlx::Result<Option<Result<Found, LedgerError>>> {
    let query = sqlx::query(statements.read.of(1, Part::default()))
        .bind(&id.digest()[..])
        .bind(run.map(RunId::as_str));
    Ok(query.fetch_optional(conn).await?.map(|row| found(&row)))
}

async fn read(
    conn: &mut SqliteConnection,
    statements: &Statements,
    commands: &[&Command],
) -> sqlx::Result<Rows> {
    let mut rows = HashMap::with_capacity(commands.len());
    for commands in commands.chunks(ROWS_MAX) {
        let mut query = sqlx::query(statements.read.of(commands.len(), Part::default()));
        for command in commands {
            let run = match command {
                Command::Claim(request) => request.place.run.as_ref(),
                Command::Change(..) | Command::Resolve(_) => None,
            };
            query = query.bind(&command.id().digest()[..]).bind(run.map(|run| run.as_str()));
        }
        for row in query.fetch_all(&mut *conn).await? {
            let digest = sqlx::Row::try_get::<&[u8], _>(&row, "asked")?;
            let Ok(digest) = digest.try_into() else { continue };
            rows.insert(digest, found(&row));
        }
    }
    Ok(rows)
}

fn found(row: &sqlx::sqlite::SqliteRow) -> Result<Found, LedgerError> {
    let mut columns = Columns::new(row);
    let met = columns.get()?;
    let _asked: &[u8] = columns.get()?;
    Ok(Found { met, record: row::effect(&mut columns)? })
}
