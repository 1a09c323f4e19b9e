//! The identity of one effect.

use std::{
    fmt,
    hash::{Hash, Hasher},
};

use super::ids::{InvalidId, Tenant};

const RULE: &str = "`<tenant>/<digest>`, where the digest is 64 lower-case hexadecimal digits";

/// Which effect it is: `<tenant>/<64 lower-case hex>`.
///
/// The digest is the BLAKE3 of what identifies the effect (see [the encoding](crate::identity)), written in
/// hexadecimal because a base64 text now and then looks like a credential to secret scanners.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EffectId {
    tenant: Tenant,
    digest: [u8; 32],
}

impl EffectId {
    pub(crate) fn new(tenant: Tenant, digest: [u8; 32]) -> Self {
        Self { tenant, digest }
    }

    /// Reads an effect id back from its text.
    ///
    /// # Errors
    ///
    /// [`InvalidId`] where the text is not `<tenant>/<64 lower-case hex>`.
    pub fn parse(text: impl Into<String>) -> Result<Self, InvalidId> {
        let text = text.into();
        let invalid = InvalidId::new("effect id", RULE);
        let (tenant, hex) = text.split_once('/').ok_or(invalid)?;
        let tenant = Tenant::parse(tenant).map_err(|_| invalid)?;
        let digest = digest_from_hex(hex).ok_or(invalid)?;
        Ok(Self { tenant, digest })
    }

    /// The tenant whose effect this is.
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// The digest, without the tenant.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }
}

/// A part of the digest is enough: the digest covers the tenant too.
impl Hash for EffectId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [word, ..] = self.digest.as_chunks::<8>().0 else { return };
        state.write_u64(u64::from_le_bytes(*word));
    }
}

impl fmt::Display for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tenant, digest_to_hex(&self.digest))
    }
}

/// 64 lower-case hexadecimal digits.
pub(super) fn digest_to_hex(digest: &[u8; 32]) -> impl fmt::Display + use<> {
    blake3::Hash::from_bytes(*digest).to_hex()
}

/// Reads [`digest_to_hex`] back. Upper case is refused: one digest has one spelling.
pub(super) fn digest_from_hex(hex: &str) -> Option<[u8; 32]> {
    if hex.bytes().any(|b| b.is_ascii_uppercase()) {
        return None;
    }
    blake3::Hash::from_hex(hex).ok().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let id = EffectId::new(Tenant::parse("anon:acme").expect("a valid tenant"), [0xab; 32]);
        let text = format!("anon:acme/{}", "ab".repeat(32));
        assert_eq!((id.to_string(), format!("{id:?}")), (text.clone(), text.clone()));
        assert_eq!(EffectId::parse(text.as_str()).as_ref(), Ok(&id));
        assert_eq!(serde_json::to_string(&id).expect("text"), format!("\"{text}\""));
        assert_eq!(serde_json::from_str::<EffectId>(&format!("\"{text}\"")).ok(), Some(id));
    }

    #[test]
    fn one_spelling_only() {
        for bad in [
            format!("acme/{}", "AB".repeat(32)),
            format!("acme/{}", "ab".repeat(31)),
            format!("acme/{}g", "a".repeat(63)),
            format!("acme/{} ", "a".repeat(64)),
            format!("ac me/{}", "a".repeat(64)),
            "a".repeat(64),
        ] {
            assert!(EffectId::parse(bad.as_str()).is_err(), "{bad}");
        }
    }
}
