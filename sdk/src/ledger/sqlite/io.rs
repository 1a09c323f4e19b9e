//! The writer: one connection, one commit for a batch.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use sqlx::{Connection, SqliteConnection};

use super::{
    among, checkpoint::Progress, columns::Statements, error::Failure, judging, open, settings::Settings,
    writing,
};
use crate::{
    clock::{Moment, Until},
    ledger::{
        ClaimRequest, LedgerError,
        writer::{Command, LedgerIo, Reply},
    },
    telemetry,
};

/// A judgement older than this is made again under the write lock, so that no lease starts in the past.
const JUDGED_FOR: Duration = Duration::from_millis(50);

type Answers = Vec<Result<Reply, LedgerError>>;

pub(super) struct Io {
    settings: Arc<Settings>,
    statements: Arc<Statements>,
    progress: Arc<Progress>,
    /// Absent after trouble with the disk: the next batch opens it anew.
    conn: Option<SqliteConnection>,
}

/// Whether it is a claim after a raised key-schema version, which has a transaction of its own.
fn has_earlier_identities(command: &Command) -> bool {
    matches!(command, Command::Claim(request) if !request.identities.is_empty())
}

#[async_trait]
impl LedgerIo for Io {
    async fn apply(&mut self, batch: &[Command]) -> Answers {
        let plain: Vec<_> = batch.iter().filter(|command| !has_earlier_identities(command)).collect();
        let mut plain = self.batch(&plain).await.into_iter();
        let mut answers = Vec::with_capacity(batch.len());
        for command in batch {
            if has_earlier_identities(command) {
                answers.extend(self.batch(&[command]).await);
            } else {
                answers.extend(plain.next());
            }
        }
        answers
    }
}

impl Io {
    async fn batch(&mut self, batch: &[&Command]) -> Answers {
        let failure = match self.patiently(batch).await {
            Ok(answers) => return answers,
            Err(failure) => failure,
        };
        if !failure.data || batch.len() == 1 {
            return batch.iter().map(|_| Err(failure.error())).collect();
        }
        let mut answers = Vec::with_capacity(batch.len());
        for command in batch {
            match self.patiently(&[*command]).await {
                Ok(answer) => answers.extend(answer),
                Err(failure) => answers.push(Err(failure.error())),
            }
        }
        answers
    }

    pub(super) fn new(
        settings: Arc<Settings>,
        statements: Arc<Statements>,
        progress: Arc<Progress>,
        conn: SqliteConnection,
    ) -> Self {
        Self { settings, statements, progress, conn: Some(conn) }
    }

    /// Goes on for as long as other processes are in the way.
    async fn patiently(&mut self, batch: &[&Command]) -> Result<Answers, Failure> {
        let patience = Until::new(Moment::now(), self.settings.busy_patience);
        loop {
            match self.once(batch).await {
                Err(failure) if failure.busy && !patience.is_past() => {}
                result => return result,
            }
        }
    }

    async fn once(&mut self, batch: &[&Command]) -> Result<Answers, Failure> {
        let mut conn = match self.conn.take() {
            Some(conn) => conn,
            None => open::reopen(&self.settings).await?,
        };
        let error = match self.run(&mut conn, batch).await {
            Ok(answers) => {
                self.conn = Some(conn);
                return Ok(answers);
            }
            Err(error) => error,
        };
        let failure = Failure::of("storing in", &self.settings.path, &error);
        let rolled_back = sqlx::raw_sql("ROLLBACK").execute(&mut conn).await;
        // Without a transaction there is nothing to roll back, and SQLite may have done it by itself; a connection is
        // kept only where the error leaves no doubt about it.
        if failure.busy || (failure.data && rolled_back.is_ok()) {
            self.conn = Some(conn);
        } else {
            drop(conn.close_hard().await);
        }
        Err(failure)
    }

    /// A claim that has earlier identities is looked for under all of them while nobody else writes.
    async fn run_among(&self, conn: &mut SqliteConnection, request: &ClaimRequest) -> sqlx::Result<Answers> {
        let _turn = self.progress.turn().await;
        sqlx::query("BEGIN IMMEDIATE").execute(&mut *conn).await?;
        let (answer, writes) = among::claim(conn, &self.statements, request, self.settings.now()).await?;
        let end = if writes { "COMMIT" } else { "ROLLBACK" };
        sqlx::query(end).execute(&mut *conn).await?;
        Ok(vec![answer])
    }

    async fn run(&self, conn: &mut SqliteConnection, batch: &[&Command]) -> sqlx::Result<Answers> {
        if let [Command::Claim(request)] = batch
            && has_earlier_identities(batch[0])
        {
            return self.run_among(conn, request).await;
        }
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let now = || self.settings.now();
        let mut judged = judging::judge(conn, &self.statements, batch, true, now).await?;
        if !judged.iter().any(writing::Judged::writes) {
            return Ok(judged.into_iter().map(|judged| judged.reply).collect());
        }
        let asked = Moment::now();
        let _turn = self.progress.turn().await;
        sqlx::query("BEGIN IMMEDIATE").execute(&mut *conn).await?;
        let missed = if asked.elapsed() > JUDGED_FOR {
            (0..batch.len()).collect()
        } else {
            writing::store(conn, &self.statements, &judged).await?
        };
        if !missed.is_empty() {
            // One after the other: two identities of the batch may name one effect.
            for position in missed {
                judged[position] = self.judge_again(conn, batch[position]).await?;
            }
        }
        sqlx::query("COMMIT").execute(&mut *conn).await?;
        self.progress.wrote(&judged);
        Ok(judged.into_iter().map(|judged| judged.reply).collect())
    }

    /// Nobody else writes while the lock is held, so that this judgement stands.
    async fn judge_again(
        &self,
        conn: &mut SqliteConnection,
        command: &Command,
    ) -> sqlx::Result<writing::Judged> {
        let now = || self.settings.now();
        let mut again = judging::judge(conn, &self.statements, &[command], false, now).await?;
        let stored = writing::store(conn, &self.statements, &again).await?.is_empty();
        match again.pop() {
            Some(judged) if stored => Ok(judged),
            _ => Err(sqlx::Error::Protocol("a row changed under the write lock".to_owned())),
        }
    }

    /// Closes the connection; SQLite moves the log into the file where no other process has it open.
    pub(super) async fn close(self) {
        if let Some(conn) = self.conn
            && let Err(error) = conn.close().await
        {
            telemetry::not_closed_cleanly(&error);
        }
    }
}
