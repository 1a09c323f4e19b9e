//! A payload codec over a real AEAD cipher, as an application would write one.

use effectual::ledger::codec::{About, CodecError, PayloadCodec};
use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    rand::{SecureRandom, SystemRandom},
};

/// ChaCha20-Poly1305 with a random nonce before each value, bound to the effect and the value's place.
pub struct Vault {
    name: String,
    key: LessSafeKey,
}

impl Vault {
    /// A codec of this name; its key is 32 times `byte`.
    ///
    /// # Panics
    /// Never: the key has the cipher's length.
    #[must_use]
    pub fn new(name: &str, byte: u8) -> Self {
        let key = UnboundKey::new(&CHACHA20_POLY1305, &[byte; 32]).expect("a key of 32 bytes");
        Self { name: name.to_owned(), key: LessSafeKey::new(key) }
    }
}

fn unspecified(_: ring::error::Unspecified) -> CodecError {
    CodecError::new("the cipher refused it")
}

impl PayloadCodec for Vault {
    fn name(&self) -> &str {
        &self.name
    }

    fn seal(&self, about: &About<'_>, plain: &[u8]) -> Result<Vec<u8>, CodecError> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(unspecified)?;
        let mut sealed = plain.to_vec();
        let aad = Aad::from(about.associated_data());
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed)
            .map_err(unspecified)?;
        sealed.splice(0..0, nonce);
        Ok(sealed)
    }

    fn open(&self, about: &About<'_>, sealed: &[u8]) -> Result<Vec<u8>, CodecError> {
        let (nonce, sealed) =
            sealed.split_at_checked(NONCE_LEN).ok_or_else(|| CodecError::new("it is too short"))?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(unspecified)?;
        let mut plain = sealed.to_vec();
        let aad = Aad::from(about.associated_data());
        let length = self.key.open_in_place(nonce, aad, &mut plain).map_err(unspecified)?.len();
        plain.truncate(length);
        Ok(plain)
    }
}
