//! The codecs of one executor: one that seals, and those whose values can still be opened.

use std::{panic::AssertUnwindSafe, sync::Arc};

use super::{About, CodecError, PayloadCodec};
use crate::{ledger::Payload, telemetry};

/// Stands between the name of the inner encoding and that of the codec, as in `json/1+vault/2026-01`.
const BETWEEN: char = '+';

const NAME_MAX: usize = 64;

/// Opens with all, seals with the first.
#[derive(Clone, Default)]
pub(crate) struct Codecs {
    all: Vec<Arc<dyn PayloadCodec>>,
    seals: bool,
}

impl Codecs {
    /// The codec that seals from now on; it opens as well.
    pub(crate) fn seal_with(&mut self, codec: Arc<dyn PayloadCodec>) {
        if self.seals {
            self.all[0] = codec;
        } else {
            self.all.insert(0, codec);
            self.seals = true;
        }
    }

    pub(crate) fn open_with(&mut self, codec: Arc<dyn PayloadCodec>) {
        self.all.push(codec);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn seals(&self) -> bool {
        self.seals
    }

    /// What is wrong with them.
    pub(crate) fn check(&self) -> Result<(), String> {
        for (at, codec) in self.all.iter().enumerate() {
            let name = codec.name();
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte);
            if !(1..=NAME_MAX).contains(&name.len()) || !name.bytes().all(plain) {
                return Err(format!(
                    "the payload codec's name `{}` must be 1 to {NAME_MAX} of `A-Z a-z 0-9 . _ / -`",
                    name.escape_debug()
                ));
            }
            if self.all[..at].iter().any(|other| other.name() == name) {
                return Err(format!(
                    "two payload codecs have the name `{name}`: another key is another codec, with a name of its own"
                ));
            }
        }
        Ok(())
    }

    /// The value as it is stored.
    pub(super) fn seal(&self, about: &About<'_>, plain: &Payload) -> Result<Payload, CodecError> {
        let Some(codec) = self.all.first().filter(|_| self.seals) else { return Ok(plain.clone()) };
        let sealed = caught(|| codec.seal(about, &plain.bytes));
        if sealed.is_err() {
            telemetry::not_sealed(about.effect());
        }
        Ok(Payload { codec: format!("{}{BETWEEN}{}", plain.codec, codec.name()).into(), bytes: sealed? })
    }

    /// Opens a stored value in place. One that is not sealed, or that cannot be opened here, stays as it is: its encoding then has a
    /// name that nothing reads.
    pub(super) fn open(&self, about: &About<'_>, stored: &mut Payload) {
        let Some((inner, name)) = stored.codec.split_once(BETWEEN) else { return };
        let Some(codec) = self.all.iter().find(|codec| codec.name() == name) else { return };
        match caught(|| codec.open(about, &stored.bytes)) {
            Ok(bytes) => *stored = Payload { codec: inner.to_owned().into(), bytes },
            Err(_) => telemetry::not_opened(about.effect()),
        }
    }
}

/// A panic of the codec is an error like another: the effect has been performed.
fn caught(work: impl FnOnce() -> Result<Vec<u8>, CodecError>) -> Result<Vec<u8>, CodecError> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(CodecError::new("it panicked")))
}
