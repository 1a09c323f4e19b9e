//! The keys under which `#[secret]` arguments enter the fingerprint, so that a stored digest cannot be tried against a list of
//! likely values.

use std::{borrow::Cow, fmt};

/// Derives the digest's key from the secret that the executor was given. Part of the encoding.
const CONTEXT: &str = "effectual/fingerprint-key 1";

/// A shorter secret could be guessed together with what it protects.
const SECRET_MIN: usize = 16;

/// One key and the name that is stored with its digests. Executors make theirs from what
/// [`fingerprint_key`](crate::ExecutorBuilder::fingerprint_key) is given. Neither the secret nor the key shows in `Debug`.
#[derive(Clone)]
pub struct FingerprintKey {
    pub(super) id: Cow<'static, str>,
    pub(super) key: [u8; 32],
}

impl FingerprintKey {
    /// A key from a secret of at least 16 bytes. The id is stored beside each digest; it is 1 to 64 of `A-Z a-z 0-9 . _ -`.
    ///
    /// # Errors
    /// [`InvalidFingerprintKey`] if the id or the length of the secret is wrong; its text holds nothing of the secret.
    pub fn new(id: impl Into<String>, secret: &[u8]) -> Result<Self, InvalidFingerprintKey> {
        let id = id.into();
        let is_id = (1..=64).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'));
        if !is_id {
            return Err(InvalidFingerprintKey("its id is 1 to 64 characters of `A-Z a-z 0-9 . _ -`"));
        }
        if secret.len() < SECRET_MIN {
            return Err(InvalidFingerprintKey("its secret has at least 16 bytes, from a random source"));
        }
        Ok(Self { id: Cow::Owned(id), key: blake3::derive_key(CONTEXT, secret) })
    }

    /// The name that is stored.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl fmt::Debug for FingerprintKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FingerprintKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Why something cannot be a fingerprint key. The text holds nothing of the secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint key is refused: {0}")]
pub struct InvalidFingerprintKey(&'static str);
