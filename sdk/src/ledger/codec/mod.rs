//! Encryption at rest: what every stored value passes through on its way to the ledger and back.
//!
//! A [`PayloadCodec`] is given to the executor; see [the page on retention](crate::docs::retention#encryption-at-rest).

mod codecs;
mod sealed;

use std::{error::Error, fmt};

pub(crate) use self::{codecs::Codecs, sealed::Sealed};
use super::record::{AttemptVerdict, OutcomeKind};
use crate::identity::EffectId;

/// Encrypts stored values: answers, refusals, late answers kept as evidence, stored arguments. Bytes in, bytes out.
///
/// Both methods are called on the executor's tasks and must not block: hold the key, and fetch it before the executor is built.
/// A panic counts as an error. No error's text may hold the value or the key.
pub trait PayloadCodec: Send + Sync + 'static {
    /// Its name and version, stored with each value that it sealed: 1 to 64 of `A-Z a-z 0-9 . _ / -`. A new key is a codec with a
    /// new name.
    fn name(&self) -> &str;

    /// Seals a value. It should be bound to `about`, as associated data: then no value can be passed off as another effect's, and
    /// no refusal as a success.
    ///
    /// # Errors
    /// [`CodecError`]. The effect was performed by then: it is recorded as such, without its value. Arguments that cannot be sealed
    /// keep their effect from being started.
    fn seal(&self, about: &About<'_>, plain: &[u8]) -> Result<Vec<u8>, CodecError>;

    /// Opens what [`seal`](Self::seal) sealed under this name.
    ///
    /// # Errors
    /// [`CodecError`]: the call ends with [`Unreadable`](crate::ErrorKind::Unreadable), and the effect is never performed again.
    fn open(&self, about: &About<'_>, sealed: &[u8]) -> Result<Vec<u8>, CodecError>;
}

/// What a stored value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Part {
    /// The value of a success, as the outcome or as evidence.
    Success,
    /// A refusal, as the outcome or as evidence.
    Refusal,
    /// The arguments of an effect that can be finished without its caller.
    Input,
}

/// Which value of which effect is sealed or opened.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    effect: &'a EffectId,
    part: Part,
}

impl<'a> About<'a> {
    pub(crate) fn new(effect: &'a EffectId, part: Part) -> Self {
        Self { effect, part }
    }

    /// The effect, by the identity that it was first claimed under.
    #[must_use]
    pub fn effect(&self) -> &'a EffectId {
        self.effect
    }

    /// Which of its values.
    #[must_use]
    pub fn part(&self) -> Part {
        self.part
    }

    /// Both as bytes, for an AEAD cipher's associated data: never to change for what is stored.
    #[must_use]
    pub fn associated_data(&self) -> Vec<u8> {
        let part = match self.part {
            Part::Success => "success",
            Part::Refusal => "refusal",
            Part::Input => "input",
        };
        format!("effectual/payload/1\n{}\n{part}", self.effect).into_bytes()
    }
}

impl Part {
    fn of(kind: OutcomeKind) -> Self {
        match kind {
            OutcomeKind::Success => Self::Success,
            OutcomeKind::Refusal => Self::Refusal,
        }
    }

    fn of_evidence(verdict: AttemptVerdict) -> Self {
        if verdict == AttemptVerdict::Refused { Self::Refusal } else { Self::Success }
    }
}

/// Why a value was not sealed or opened.
#[derive(Debug)]
pub struct CodecError(Box<dyn Error + Send + Sync>);

impl CodecError {
    /// With what the cipher or the key store says. It must hold no part of the value or of the key.
    pub fn new(why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for CodecError {}
