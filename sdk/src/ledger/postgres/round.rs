//! One batch on its way: which of its commands are answered, and what is tried next.

use std::{borrow::Cow, sync::Arc};

use super::{
    connect::Target,
    decode::Unreadable,
    encode::{halves, head},
    error::{Cause, Trouble, report},
    rows_usual::is_settlement,
    time::limit,
};
use crate::{
    identity::EffectId,
    ledger::{
        Claim, LedgerError, LedgerErrorKind,
        record::{EffectRecord, Fence, LedgerTime, Place, State},
        transition::{Transition, Write},
        writer::{Command, Reply},
    },
};

/// A round that got no answer for so many passes in a row gives up: somebody hides rows from it.
const PASSES_MAX: u32 = 200;

/// The commands of a batch and their answers.
pub(super) struct Round<'b> {
    batch: &'b [Command],
    replies: Vec<Option<Result<Reply, LedgerError>>>,
    /// What has no answer yet, in the order in which rows are locked: everybody's order, so that no two batches wait
    /// for each other.
    open: Vec<Open>,
    /// Whether the commands go one by one, because one of them spoils the batch for the others.
    alone: bool,
    /// Whether claims look before they are inserted.
    pub(super) looks_first: bool,
    /// How many claims were inserted, less those that found a row.
    inserted: i64,
    passes_in_vain: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    /// The command's place in the batch.
    pub(super) at: usize,
    /// Whether a change may be judged by what its owner last saw.
    pub(super) by_hint: bool,
}

/// A command that is judged, and whose answer holds once its write is durable.
pub(super) struct Judged<'b> {
    pub(super) at: usize,
    pub(super) id: EffectId,
    /// State and fence of the row that was judged.
    pub(super) was: (State, Fence),
    pub(super) write: Option<Write>,
    pub(super) touch: Option<&'b Place>,
    /// Whether the write is no more than a settlement.
    pub(super) settles: bool,
    pub(super) reply: Reply,
}

impl<'b> Judged<'b> {
    pub(super) fn new<R>(
        at: usize,
        judged: &EffectRecord,
        transition: Transition<R>,
        reply: fn(R) -> Reply,
    ) -> Self {
        let was = (judged.state, judged.fence);
        let settles = transition.write.as_ref().is_some_and(|write| is_settlement(write, judged));
        Self {
            at,
            id: judged.id.clone(),
            was,
            write: transition.write,
            touch: None,
            settles,
            reply: reply(transition.reply),
        }
    }

    /// For a row that was judged at the time that the database gave.
    pub(super) fn at_real_time(mut self) -> Self {
        self.write.iter_mut().for_each(|write| limit(Arc::make_mut(&mut write.effect)));
        record_in(&mut self.reply).into_iter().for_each(limit);
        self
    }

    pub(super) fn is_stored(&self) -> bool {
        self.write.is_none() && self.touch.is_none()
    }
}

impl<'b> Round<'b> {
    pub(super) fn new(batch: &'b [Command], looks_first: bool) -> Self {
        let mut open: Vec<_> = (0..batch.len()).map(|at| Open { at, by_hint: true }).collect();
        open.sort_by_key(|open| head(batch[open.at].id()));
        let replies = batch.iter().map(|_| None).collect();
        Self { batch, replies, open, alone: false, looks_first, inserted: 0, passes_in_vain: 0 }
    }

    /// How many claims were inserted, and how many found a row.
    pub(super) fn claimed(&mut self, inserted: usize, found: usize) {
        self.inserted += i64::try_from(inserted).unwrap_or(0) - i64::try_from(found).unwrap_or(0);
    }

    /// Whether the next batch's claims had better look first: what most of these would have wanted.
    pub(super) fn next_looks_first(&self) -> bool {
        if self.inserted == 0 { self.looks_first } else { self.inserted < 0 }
    }

    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// What the next pass deals with.
    pub(super) fn turn(&self) -> Vec<(Open, &'b Command)> {
        let count = if self.alone { 1 } else { self.open.len() };
        self.open.iter().take(count).map(|open| (*open, &self.batch[open.at])).collect()
    }

    pub(super) fn answer(&mut self, at: usize, answer: Result<Reply, LedgerError>) {
        self.replies[at] = Some(answer);
        self.open.retain(|open| open.at != at);
        self.passes_in_vain = 0;
    }

    /// The row that a change was judged by is not the stored one: it is read next time.
    pub(super) fn missed(&mut self, at: usize) {
        for open in self.open.iter_mut().filter(|open| open.at == at) {
            open.by_hint = false;
        }
    }

    /// A pass ended without an error; fails what is left when that has been in vain for too long.
    pub(super) fn passed(&mut self, target: &Target) {
        self.passes_in_vain += 1;
        if self.passes_in_vain > PASSES_MAX {
            let context = format!(
                "rows of {target} can neither be stored nor seen; check the ledger's tables for policies, rules and \
                 triggers"
            );
            self.fail_all(|| LedgerError::new(LedgerErrorKind::Corrupt, context.clone()));
        }
    }

    /// Makes room for the others after an error that is the fault of one command. Fails the command whose fault it is
    /// once that is known.
    pub(super) fn single_out(&mut self, trouble: Trouble, target: &Target, cause: &Cause) {
        let is_one = self.alone || self.open.len() == 1;
        self.alone = true;
        match (is_one, trouble) {
            (true, Trouble::Locked) => self.open.rotate_left(1),
            (true, _) => {
                let error = report(trouble.kind(), "storing an effect in", target, cause);
                self.answer(self.open[0].at, Err(error));
            }
            (false, _) => {}
        }
    }

    pub(super) fn fail_all(&mut self, error: impl Fn() -> LedgerError) {
        for open in std::mem::take(&mut self.open) {
            self.replies[open.at] = Some(Err(error()));
        }
    }

    pub(super) fn into_replies(self) -> Vec<Result<Reply, LedgerError>> {
        let unanswered =
            || LedgerError::new(LedgerErrorKind::Unavailable, "the batch ended without an answer");
        self.replies.into_iter().map(|reply| reply.unwrap_or_else(|| Err(unanswered()))).collect()
    }
}

/// A row that a statement read.
pub(super) struct Held {
    pub(super) now: LedgerTime,
    /// Whether the asking run is known to have met the effect.
    pub(super) met: bool,
    /// The second half of the digest that is stored with the half that was asked for.
    pub(super) tail: Vec<u8>,
    /// The effect: the row itself, or the one that it is an alias of.
    pub(super) record: Result<EffectRecord, Unreadable>,
}

impl Held {
    /// The row as the effect `id`, or why it is not that.
    pub(super) fn as_effect(&self, id: &EffectId) -> Result<&EffectRecord, LedgerError> {
        let corrupt = |what: Cow<'static, str>| {
            LedgerError::new(LedgerErrorKind::Corrupt, format!("effect {id}: {what}"))
        };
        if self.tail != halves(id).1 {
            let what = "its row holds another effect, whose digest begins with the same 16 bytes";
            return Err(corrupt(what.into()));
        }
        match &self.record {
            Ok(record) if record.id.tenant() == id.tenant() => Ok(record),
            Ok(_) => Err(corrupt("its row belongs to another tenant".into())),
            Err(Unreadable::Alias) => Err(corrupt("its row is an alias of an alias".into())),
            Err(Unreadable::Column(column)) => {
                Err(corrupt(format!("its column `{column}` holds what this library cannot read").into()))
            }
        }
    }
}

/// The record in an answer; shared with nobody if its write was dropped.
pub(super) fn record_in(reply: &mut Reply) -> Option<&mut EffectRecord> {
    use crate::ledger::{Changed, ResolutionReply};
    match reply {
        Reply::Claim(
            Claim::Won { record, .. }
            | Claim::Settled { record, .. }
            | Claim::Escaped(record)
            | Claim::Released(record),
        ) => Some(Arc::make_mut(record)),
        Reply::Change(Changed::Applied(record) | Changed::Stale(Some(record))) => Some(Arc::make_mut(record)),
        Reply::Resolve(ResolutionReply::Applied(record)) => Some(Arc::make_mut(record)),
        _ => None,
    }
}
