//! What a judgement writes: the shape that every backend stores by compare-and-set.

use super::{
    audit::AuditEntry,
    record::{AttemptRecord, EffectRecord, Evidence, Payload},
};

/// A judgement: what to answer, and what to store before answering.
#[derive(Debug, Clone)]
pub struct Transition<R> {
    /// The answer, true only once the write is durable.
    pub reply: R,
    /// The write, where there is one. A backend stores it only if the row is still the one that was judged.
    pub write: Option<Write>,
    /// Whether the first touch of the effect by the caller's run is to be kept, if the caller has a run and the
    /// effect is not one of that run's own.
    pub touch: bool,
}

/// One atomic write.
#[derive(Debug, Clone)]
pub struct Write {
    /// The whole row; its revision is the judged row's plus one.
    pub effect: EffectRecord,
    /// The attempt that moves into the history, because the row's attempt number changes.
    pub closed: Option<AttemptRecord>,
    /// Evidence to keep beside it.
    pub evidence: Option<Evidence>,
    /// The arguments to keep with a new row.
    pub input: Option<Payload>,
    /// What an operator did, whose doing this write is.
    pub audit: Option<AuditEntry>,
}

impl Write {
    pub(crate) fn effect(effect: EffectRecord) -> Self {
        Self { effect, closed: None, evidence: None, input: None, audit: None }
    }
}

impl<R> Transition<R> {
    pub(crate) fn read(reply: R) -> Self {
        Self { reply, write: None, touch: false }
    }

    pub(crate) fn write(reply: R, write: Write) -> Self {
        Self { reply, write: Some(write), touch: false }
    }

    pub(crate) fn with_touch(mut self) -> Self {
        self.touch = true;
        self
    }
}
