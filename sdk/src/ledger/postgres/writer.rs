//! What the group commit's loop drives: batches against a connection that may be lost at any point.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::{
    connect::{Link, Setback},
    encode,
    error::{Trouble, report},
    pass::pass,
    reader::Request,
    round::Round,
    signals::{News, Signals},
};
use crate::{
    clock::{self, Moment, Until},
    ledger::{
        Changed, EffectRecord, LedgerError, ResolutionReply,
        record::State,
        writer::{Command, LedgerIo, Reply},
    },
};

/// The first pause after a connection was lost; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(10);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// The effect of an answer that stored its last word for now.
fn moved(answer: &Result<Reply, LedgerError>) -> Option<Uuid> {
    match answer {
        Ok(Reply::Change(Changed::Applied(record)) | Reply::Resolve(ResolutionReply::Applied(record)))
            if record.state != State::Claimed =>
        {
            Some(encode::head(&record.id))
        }
        _ => None,
    }
}

/// Has those told who wait for the effect of this row.
pub(super) fn tell(signals: &Signals, reads: &mpsc::Sender<Request>, record: &EffectRecord) {
    let moved = signals.take_awaited([encode::head(&record.id)].into_iter());
    if !moved.is_empty() {
        drop(reads.try_send(Request::Tell(News::Moved, moved)));
    }
}

/// One of the writers of a ledger.
pub(super) struct Writer {
    pub(super) link: Link,
    /// Whether claims look before they are inserted: most of the last ones found a row.
    pub(super) looks_first: bool,
    /// Where others are told what moved; `None` where nobody listens.
    pub(super) tells: Option<(Arc<Signals>, mpsc::Sender<Request>)>,
}

#[async_trait]
impl LedgerIo for Writer {
    async fn apply(&mut self, batch: &[Command]) -> Vec<Result<Reply, LedgerError>> {
        let mut round = Round::new(batch, self.looks_first);
        let patience = Until::new(Moment::now(), self.link.connector.patience);
        let mut pause = PAUSE;
        while round.is_open() {
            match self.pass(&mut round, &patience).await {
                Ok(()) => round.passed(&self.link.connector.target),
                Err(setback) => self.handle(&mut round, setback, &patience, &mut pause).await,
            }
        }
        self.looks_first = round.next_looks_first();
        let replies = round.into_replies();
        self.tell(&replies);
        replies
    }
}

impl Writer {
    /// Has those told who wait for an effect that is no longer in flight. Never waits: they look again by themselves.
    fn tell(&self, replies: &[Result<Reply, LedgerError>]) {
        let Some((signals, reads)) = &self.tells else { return };
        let moved = signals.take_awaited(replies.iter().filter_map(moved));
        if !moved.is_empty() {
            drop(reads.try_send(Request::Tell(News::Moved, moved)));
        }
    }

    async fn pass(&mut self, round: &mut Round<'_>, patience: &Until) -> Result<(), Setback> {
        // A batch that comes when patience is at its end still gets a fair try.
        let limit = patience.remaining().max(self.link.connector.patience / 4);
        let session = self.link.get().await?;
        clock::within(limit, pass(round, session)).await.unwrap_or_else(|| Err(Setback::timeout()))
    }

    /// Prepares for the next pass, or fails what is left. Repeating is safe: what was stored without an acknowledgement
    /// is recognised by its token.
    async fn handle(
        &mut self,
        round: &mut Round<'_>,
        setback: Setback,
        patience: &Until,
        pause: &mut Duration,
    ) {
        let Setback { trouble, cause } = setback;
        let target = &self.link.connector.target;
        let is_over = patience.is_past();
        match trouble {
            Trouble::Again => {}
            Trouble::Data | Trouble::Taken => round.single_out(trouble, target, &cause),
            Trouble::Locked if !is_over => round.single_out(trouble, target, &cause),
            Trouble::Lost if !is_over => {
                self.link.lose();
                clock::sleep((*pause).min(patience.remaining())).await;
                *pause = (*pause * 2).min(PAUSE_MAX);
            }
            Trouble::Lost | Trouble::Locked | Trouble::Final(_) => {
                let target = target.clone();
                round.fail_all(|| report(trouble.kind(), "storing effects in", &target, &cause));
                self.link.lose();
            }
        }
    }
}
