//! By hand on SQLite: with a writer that shares commits, and with two statements for each effect.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    sync::Arc,
    thread,
    time::Duration,
};

use async_trait::async_trait;
use sqlx::{
    AssertSqlSafe, Connection, Row, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteRow, SqliteSynchronous},
};
use tokio::{runtime, sync::Mutex};

use super::{
    Claim, LEASE_MS, RETAIN_MS, Settle,
    queue::{self, Batch, Group, Intake},
    tables::Table,
};
use crate::contender::{Contender, Provider};

/// A batch is cut into pieces of these sizes, so that statements stay prepared.
const SIZES: [usize; 5] = [1, 4, 16, 64, 256];

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(Duration::from_secs(30))
}

async fn open(path: &Path, table: Table) -> SqliteConnection {
    let mut conn = SqliteConnection::connect_with(&options(path)).await.expect("a database");
    for statements in table.on_sqlite().schema {
        sqlx::raw_sql(*statements).execute(&mut conn).await.expect("a table");
    }
    conn
}

/// Starts the writer on a thread of its own, with a checkpointer beside it.
pub(crate) async fn group(path: &Path, table: Table, provider: &Arc<Provider>) -> Group {
    open(path, table).await.close().await.expect("a database");
    let (group, intake) = queue::queue(table, provider);
    let path = path.to_owned();
    thread::spawn(move || {
        let runtime = runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(serve(&path, table, &intake));
    });
    group
}

async fn serve(path: &Path, table: Table, intake: &Intake) {
    let mut conn = SqliteConnection::connect_with(&options(path)).await.expect("a database");
    sqlx::raw_sql("PRAGMA wal_autocheckpoint = 0").execute(&mut conn).await.expect("a pragma");
    let mut beside = SqliteConnection::connect_with(&options(path)).await.expect("a second connection");
    let statements = Statements::on(table);
    let write = async {
        while let Some(batch) = queue::next(intake).await {
            statements.apply(&mut conn, batch).await.expect("a commit");
        }
    };
    let checkpoint = async {
        let mut due = tokio::time::interval(Duration::from_millis(100));
        loop {
            due.tick().await;
            sqlx::raw_sql("PRAGMA wal_checkpoint(PASSIVE)").execute(&mut beside).await.expect("a checkpoint");
        }
    };
    tokio::select! {
        () = write => {}
        () = checkpoint => {}
    }
}

/// One text for each size.
struct Statements {
    claim: Vec<String>,
    settle: Vec<String>,
    read: Vec<String>,
}

impl Statements {
    fn on(table: Table) -> Self {
        let on = table.on_sqlite();
        let name = on.name;
        // Numbered from 1 on: a row may name a parameter twice.
        let claim_row = |at: usize| {
            (1..=6).fold(on.claim_row.to_owned(), |row, of| {
                row.replace(&format!("{{{of}}}"), &format!("?{}", 6 * at + of))
            })
        };
        let of = |row: &dyn Fn(usize) -> String, text: &dyn Fn(String) -> String| {
            let rows =
                |size: usize| (0..size).map(|at| format!("({})", row(at))).collect::<Vec<_>>().join(", ");
            SIZES.iter().map(|size| text(rows(*size))).collect()
        };
        Self {
            claim: of(&claim_row, &|rows| {
                format!(
                    "INSERT INTO {name} ({}) VALUES {rows} ON CONFLICT (digest) DO NOTHING RETURNING digest",
                    on.claim
                )
            }),
            settle: of(&|_| "?, ?, ?, ?, ?".to_owned(), &|rows| {
                format!(
                    "WITH v (digest, token, payload, at, retain) AS (VALUES {rows})
                     UPDATE {name} AS e SET state = 'completed', {}
                     FROM v WHERE e.digest = +v.digest AND e.token = v.token AND e.state = 'claimed' RETURNING digest",
                    on.settle
                )
            }),
            read: of(&|_| "?".to_owned(), &|rows| {
                format!(
                    "WITH v (digest) AS (VALUES {rows})
                     SELECT e.digest, e.payload FROM v CROSS JOIN {name} AS e ON e.digest = v.digest"
                )
            }),
        }
    }

    async fn apply(&self, conn: &mut SqliteConnection, batch: Batch) -> sqlx::Result<()> {
        let Batch { claims, claimants, settles, settlers, reads, readers } = batch;
        if !claims.is_empty() || !settles.is_empty() {
            sqlx::query("BEGIN IMMEDIATE").execute(&mut *conn).await?;
            let won = self.claim(conn, &claims).await?;
            let settled = self.settle(conn, &settles).await?;
            sqlx::query("COMMIT").execute(&mut *conn).await?;
            claims
                .iter()
                .zip(claimants)
                .for_each(|(claim, reply)| _ = reply.send(won.contains(&claim.digest)));
            settles
                .iter()
                .zip(settlers)
                .for_each(|(settle, reply)| _ = reply.send(settled.contains(&settle.digest)));
        }
        if !reads.is_empty() {
            let found = self.read(conn, &reads).await?;
            reads
                .iter()
                .zip(readers)
                .for_each(|(digest, reply)| _ = reply.send(found.get(digest).cloned().flatten()));
        }
        Ok(())
    }

    async fn claim(&self, conn: &mut SqliteConnection, claims: &[Claim]) -> sqlx::Result<HashSet<[u8; 32]>> {
        let mut won = HashSet::new();
        for (size, claims) in chunks(claims) {
            let mut query = sqlx::query(AssertSqlSafe(self.claim[size].as_str()));
            for claim in claims {
                query = query
                    .bind(&claim.digest[..])
                    .bind(&claim.fingerprint[..])
                    .bind(&claim.provider_key)
                    .bind(&claim.token[..])
                    .bind(claim.now)
                    .bind(claim.now + LEASE_MS);
            }
            for row in query.fetch_all(&mut *conn).await? {
                won.insert(digest(&row)?);
            }
        }
        Ok(won)
    }

    async fn settle(
        &self,
        conn: &mut SqliteConnection,
        settles: &[Settle],
    ) -> sqlx::Result<HashSet<[u8; 32]>> {
        let mut settled = HashSet::new();
        for (size, settles) in chunks(settles) {
            let mut query = sqlx::query(AssertSqlSafe(self.settle[size].as_str()));
            for settle in settles {
                query = query
                    .bind(&settle.digest[..])
                    .bind(&settle.token[..])
                    .bind(&settle.payload[..])
                    .bind(settle.now)
                    .bind(settle.now + RETAIN_MS);
            }
            for row in query.fetch_all(&mut *conn).await? {
                settled.insert(digest(&row)?);
            }
        }
        Ok(settled)
    }

    async fn read(&self, conn: &mut SqliteConnection, reads: &[[u8; 32]]) -> sqlx::Result<Found> {
        let mut found = HashMap::new();
        for (size, reads) in chunks(reads) {
            let mut query = sqlx::query(AssertSqlSafe(self.read[size].as_str()));
            for digest in reads {
                query = query.bind(&digest[..]);
            }
            for row in query.fetch_all(&mut *conn).await? {
                found.insert(digest(&row)?, row.try_get("payload")?);
            }
        }
        Ok(found)
    }
}

type Found = HashMap<[u8; 32], Option<Vec<u8>>>;

fn digest(row: &SqliteRow) -> sqlx::Result<[u8; 32]> {
    Ok(row.try_get::<&[u8], _>("digest")?.try_into().expect("32 bytes"))
}

/// A batch in pieces of the sizes that have a statement, the largest first.
fn chunks<T>(mut rows: &[T]) -> Vec<(usize, &[T])> {
    let mut pieces = Vec::new();
    for (size, length) in SIZES.iter().enumerate().rev() {
        while rows.len() >= *length {
            let (piece, rest) = rows.split_at(*length);
            pieces.push((size, piece));
            rows = rest;
        }
    }
    pieces
}

/// Two statements for each effect, each a commit of its own, on the one connection that can write.
pub(crate) struct TwoStatements {
    conn: Mutex<SqliteConnection>,
    statements: Statements,
    provider: Arc<Provider>,
}

impl TwoStatements {
    pub(crate) async fn open(path: &Path, provider: &Arc<Provider>) -> Self {
        let (conn, provider) = (Mutex::new(open(path, Table::Own).await), Arc::clone(provider));
        Self { conn, statements: Statements::on(Table::Own), provider }
    }
}

#[async_trait]
impl Contender for TwoStatements {
    async fn perform(&self, key: u64) {
        let claim = Claim::of(key);
        let won = self.statements.claim(&mut *self.conn.lock().await, std::slice::from_ref(&claim)).await;
        assert_eq!(won.expect("a claim").len(), 1, "nobody else has the claim");
        self.provider.perform();
        let settle = Settle::of(&claim, key);
        let settled = self.statements.settle(&mut *self.conn.lock().await, &[settle]).await;
        assert_eq!(settled.expect("a settle").len(), 1, "the claim is the caller's");
    }
    fn replays(&self) -> bool {
        false
    }

    fn count(&self) -> &'static str {
        Table::Own.count()
    }
}
