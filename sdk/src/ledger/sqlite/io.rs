//! The writer: one connection, one commit for a batch.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use sqlx::{Connection, SqliteConnection};

use super::{
    among,
    checkpoint::Progress,
    columns::Statements,
    error::{Failure, is_busy},
    guess::Guess,
    judging::{self, Trust},
    open,
    settings::Settings,
    writing::{self, Judged, Transaction},
};
use crate::{
    clock::{self, Moment, Until},
    ledger::{
        ClaimRequest, LedgerError, LedgerErrorKind,
        writer::{Command, LedgerIo, Reply},
    },
    telemetry,
};

/// A judgement older than this is not stored but made again, so that no lease starts in the past.
const JUDGED_FOR: Duration = Duration::from_millis(50);

/// Between two tries to have the lock that another process has; each is twice as long as the last, up to the second.
const BUSY_PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(16)];

/// After so many rounds in a row that answered nothing a batch gives up: somebody hides rows from it.
const ROUNDS_IN_VAIN_MAX: u32 = 200;

type Answers = Vec<Result<Reply, LedgerError>>;

pub(super) struct Io {
    settings: Arc<Settings>,
    statements: Arc<Statements>,
    progress: Arc<Progress>,
    /// Absent after trouble with the disk: the next batch opens it anew.
    conn: Option<SqliteConnection>,
    guess: Guess,
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
        Self { settings, statements, progress, conn: Some(conn), guess: Guess::default() }
    }

    /// Goes on for as long as other processes are in the way.
    async fn patiently(&mut self, batch: &[&Command]) -> Result<Answers, Failure> {
        let patience = Until::new(Moment::now(), self.settings.busy_patience);
        loop {
            match self.once(batch).await {
                Err(failure) if failure.busy && !patience.is_past() => clock::sleep(BUSY_PAUSES[0]).await,
                result => return result,
            }
        }
    }

    async fn once(&mut self, batch: &[&Command]) -> Result<Answers, Failure> {
        let mut conn = match self.conn.take() {
            Some(conn) => conn,
            None => open::reopen_writer(&self.settings).await?,
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

    /// Judges and stores in rounds, until every command has its answer: what a round could not store, because a row was no
    /// longer the judged one, is read and judged again in the next.
    async fn run(&mut self, conn: &mut SqliteConnection, batch: &[&Command]) -> sqlx::Result<Answers> {
        if let [Command::Claim(request)] = batch
            && has_earlier_identities(batch[0])
        {
            return self.run_among(conn, request).await;
        }
        let progress = Arc::clone(&self.progress);
        let mut turn = self.guess.is_absent().then(|| progress.turn_at_once()).flatten();
        let mut trust = Trust { owners: true, absence: turn.is_some() };
        let mut answers: Vec<_> = batch.iter().map(|_| None).collect();
        let mut pending: Vec<usize> = (0..batch.len()).collect();
        let mut in_vain = 0;
        while !pending.is_empty() && in_vain < ROUNDS_IN_VAIN_MAX {
            let commands: Vec<_> = pending.iter().map(|position| batch[*position]).collect();
            let asked = Moment::now();
            let now = || self.settings.now();
            let judged = judging::judge(conn, &self.statements, &commands, trust, now).await?;
            let mut again = Vec::new();
            if judged.iter().any(Judged::writes) {
                if turn.is_none() {
                    turn = Some(progress.turn().await);
                }
                again = self.store(conn, &judged, asked, trust).await?;
            }
            self.guess.learn(&commands, &judged, &again, trust);
            trust = Trust::default();
            let mut left = again.iter().map(|at| pending[*at]).collect::<Vec<_>>();
            left.sort_unstable();
            in_vain = if left.len() == pending.len() { in_vain + 1 } else { 0 };
            for (position, judged) in pending.into_iter().zip(judged) {
                if left.binary_search(&position).is_err() {
                    answers[position] = Some(judged.reply);
                }
            }
            pending = left;
        }
        Ok(answers.into_iter().map(|answer| answer.unwrap_or_else(|| Err(self.hidden()))).collect())
    }

    fn hidden(&self) -> LedgerError {
        let path = self.settings.path.display();
        let context =
            format!("a row of {path} can neither be stored nor seen; check the ledger's tables for triggers");
        LedgerError::new(LedgerErrorKind::Corrupt, context)
    }

    /// Stores in a transaction of its own; the positions of what is to be judged again. No statement waits for the lock: a
    /// claim that was only thought to be new is looked for first, and a judgement that grows old is an error like the lock
    /// itself.
    async fn store(
        &self,
        conn: &mut SqliteConnection,
        judged: &[Judged],
        asked: Moment,
        trust: Trust,
    ) -> sqlx::Result<Vec<usize>> {
        let [mut pause, pause_max] = BUSY_PAUSES;
        loop {
            if asked.elapsed() > JUDGED_FOR {
                return Ok((0..judged.len()).collect());
            }
            let error = match writing::store(conn, &self.statements, judged, Transaction::Own).await {
                Err(error) if is_busy(&error) => error,
                stored => {
                    self.progress.wrote(judged);
                    return stored;
                }
            };
            // Nothing is open where it was the first statement that had to wait.
            drop(sqlx::raw_sql("ROLLBACK").execute(&mut *conn).await);
            if trust.absence {
                return Ok((0..judged.len()).collect());
            }
            if asked.elapsed() + pause > JUDGED_FOR {
                return Err(error);
            }
            clock::sleep(pause).await;
            pause = (2 * pause).min(pause_max);
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
