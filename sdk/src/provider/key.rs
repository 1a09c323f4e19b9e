//! The provider key: a documented derivative of the effect's identity, the same for its whole life.

use std::sync::LazyLock;

use blake3::hazmat::{ContextKey, HasherExt as _, hash_derive_key_context};
use serde::{Deserialize, Serialize};

use crate::identity::EffectId;

/// Separates provider keys from every other use of the digest.
const CONTEXT: &str = "effectual provider key 1";

/// What `derive_key` makes of the context, whatever the material.
static CONTEXT_KEY: LazyLock<ContextKey> = LazyLock::new(|| hash_derive_key_context(CONTEXT));

/// Room for a key of any form.
type Digits = [u8; 64];

/// How a provider key is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyForm {
    /// A lower-case UUID of 36 characters in the shape of version 4: 122 bits. Accepted nearly everywhere.
    #[default]
    Uuid,
    /// 40 lower-case hex digits: 160 bits.
    Hex40,
    /// 52 digits of lower-case base 32 (RFC 4648, without padding): 256 bits.
    Base32,
    /// 64 lower-case hex digits: 256 bits.
    Hex64,
}

impl KeyForm {
    /// The length of such a key, in characters; all are ASCII.
    #[must_use]
    pub const fn characters(self) -> usize {
        match self {
            Self::Uuid => 36,
            Self::Hex40 => 40,
            Self::Base32 => 52,
            Self::Hex64 => 64,
        }
    }

    /// Derives the key of an effect: `derive_key` of BLAKE3 over the identity's digest, keyed by the secret's digest
    /// where there is a secret, then written in this form.
    #[must_use]
    pub fn derive(self, effect: &EffectId, secret: Option<&[u8]>) -> String {
        self.write(effect, secret, &mut [0; _]).to_owned()
    }

    /// [`derive`](Self::derive) for who keeps it in another way.
    pub(crate) fn write<'d>(
        self,
        effect: &EffectId,
        secret: Option<&[u8]>,
        digits: &'d mut Digits,
    ) -> &'d str {
        let material = match secret {
            None => *effect.digest(),
            Some(secret) => {
                let key = blake3::derive_key("effectual provider key secret 1", secret);
                *blake3::keyed_hash(&key, effect.digest()).as_bytes()
            }
        };
        let derived = blake3::Hasher::new_from_context_key(&CONTEXT_KEY).update(&material).finalize();
        match self {
            Self::Uuid => uuid_shaped(derived.as_bytes(), digits),
            Self::Hex40 => written(derived.to_hex()[..40].bytes(), digits),
            Self::Base32 => base32(derived.as_bytes(), digits),
            Self::Hex64 => written(derived.to_hex().bytes(), digits),
        }
    }
}

fn uuid_shaped<'d>(derived: &[u8; 32], digits: &'d mut Digits) -> &'d str {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&derived[..16]);
    uuid::Builder::from_random_bytes(bytes).into_uuid().hyphenated().encode_lower(digits)
}

fn base32<'d>(bytes: &[u8], digits: &'d mut Digits) -> &'d str {
    const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| usize::from(byte >> (7 - at % 8) & 1));
    let digit = |at: usize| DIGITS[(at..at + 5).fold(0, |value, at| value << 1 | bit(at))];
    written((0..bytes.len() * 8).step_by(5).map(digit), digits)
}

fn written(from: impl Iterator<Item = u8>, digits: &mut Digits) -> &str {
    let length = digits.iter_mut().zip(from).map(|(place, digit)| *place = digit).count();
    std::str::from_utf8(&digits[..length]).expect("digits are ASCII")
}

#[cfg(test)]
mod tests {
    use super::{KeyForm, base32};
    use crate::identity::{EffectId, Tenant};

    fn effect(byte: u8) -> EffectId {
        EffectId::new(Tenant::parse("acme").expect("a valid tenant"), [byte; 32])
    }

    #[test]
    fn every_form_has_its_length_and_is_deterministic() {
        for form in [KeyForm::Uuid, KeyForm::Hex40, KeyForm::Base32, KeyForm::Hex64] {
            let key = form.derive(&effect(7), None);
            assert_eq!(key.len(), form.characters());
            assert_eq!(key, form.derive(&effect(7), None));
            assert_ne!(key, form.derive(&effect(8), None));
        }
    }

    #[test]
    fn f56_a_uuid_key_passes_a_uuid_check() {
        let key = KeyForm::Uuid.derive(&effect(7), None);
        let parsed = uuid::Uuid::parse_str(&key).expect("a UUID");
        assert_eq!(parsed.get_version_num(), 4);
        assert_eq!(parsed.get_variant(), uuid::Variant::RFC4122);
        assert_eq!(parsed.hyphenated().to_string(), key);
    }

    #[test]
    fn base32_agrees_with_the_vectors_of_rfc_4648() {
        for (bytes, text) in
            [("", ""), ("f", "my"), ("fo", "mzxq"), ("foo", "mzxw6"), ("foobar", "mzxw6ytboi")]
        {
            assert_eq!(base32(bytes.as_bytes(), &mut [0; _]), text);
        }
    }

    #[test]
    fn a_secret_changes_the_key() {
        assert_ne!(KeyForm::Uuid.derive(&effect(7), None), KeyForm::Uuid.derive(&effect(7), Some(b"secret")));
    }
}
