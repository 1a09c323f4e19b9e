//! Maps by effect. A digest is spread evenly already, so little has to be done to it; nor to names that only the program
//! chooses.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
};

/// Hashes an [`EffectId`](super::EffectId) by a part of its digest. Whoever chooses keys can find digests that agree in some
/// of their bits, but not without the seed digests that agree in their hashes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByDigest {
    seed: u64,
}

impl Default for ByDigest {
    fn default() -> Self {
        Self { seed: RandomState::new().hash_one(()) }
    }
}

impl BuildHasher for ByDigest {
    type Hasher = DigestHasher;

    fn build_hasher(&self) -> DigestHasher {
        DigestHasher { seed: self.seed | 1, hash: self.seed.rotate_left(32) }
    }
}

/// The state of one hash.
#[derive(Debug)]
pub(crate) struct DigestHasher {
    seed: u64,
    hash: u64,
}

impl Hasher for DigestHasher {
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.hash ^ word) * u128::from(self.seed);
        // Both halves: the low one alone would leave out what the upper bits say.
        self.hash = product as u64 ^ (product >> 64) as u64;
    }

    /// For what is not a digest.
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn finish(&self) -> u64 {
        self.hash
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::identity::{EffectId, Tenant};

    #[test]
    fn one_effect_has_one_hash_and_many_have_many() {
        let by_digest = ByDigest::default();
        let id = |number: u32| {
            let mut digest = [0; 32];
            digest[..4].copy_from_slice(&number.to_be_bytes());
            EffectId::new(Tenant::parse("acme").expect("a tenant"), digest)
        };
        assert_eq!(by_digest.hash_one(id(7)), by_digest.clone().hash_one(id(7)));
        let hashes: HashSet<_> = (0..10_000).map(|number| by_digest.hash_one(id(number))).collect();
        assert_eq!(hashes.len(), 10_000);
        assert_ne!(by_digest.hash_one(id(7)), ByDigest::default().hash_one(id(7)), "each map has a seed");
    }
}
