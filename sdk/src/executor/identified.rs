//! The identities of a call.

use std::sync::Arc;

use crate::{
    descriptor::Descriptor,
    identity::{Arguments, EffectId, KeyFields, Tenant},
    ledger::identities::{Further, Identities},
};

/// Which effect a call is of, and under which earlier key-schema versions it may have been recorded.
pub(crate) struct Identified {
    pub(crate) id: EffectId,
    pub(crate) identities: Identities,
    pub(crate) readable: Readable,
}

/// What an operator reads beside the hash: written out for a claim only.
pub(crate) enum Readable {
    /// There is no key.
    Absent,
    /// The fields of this version of a key.
    Of(KeyFields, u32),
    /// As it is stored.
    Stored(Option<Arc<str>>),
}

impl Readable {
    pub(crate) fn text(&self) -> Option<Arc<str>> {
        match self {
            Self::Absent => None,
            Self::Of(key, version) => Some(key.readable_at(*version).into()),
            Self::Stored(text) => text.clone(),
        }
    }
}

impl Identified {
    /// By the key's fields of the descriptor's version; earlier versions with other fields are derived too.
    pub(crate) fn by_key(
        tenant: &Tenant,
        descriptor: &Descriptor,
        key: KeyFields,
        arguments: &mut Arguments,
    ) -> Self {
        let Descriptor { operation, version, .. } = *descriptor;
        let mut at = |version| key.identity(tenant, operation, version, arguments.scratch());
        let mut identities = Identities::default();
        if key.has_versions() {
            identities.further =
                (1..version).rev().map(|version| Further { id: at(version), key_version: version }).collect();
            identities.key_fields = key.names_at(version).map(str::to_owned).collect();
        }
        let id = at(version);
        Self { id, identities, readable: Readable::Of(key, version) }
    }
}

impl From<EffectId> for Identified {
    fn from(id: EffectId) -> Self {
        Self { id, identities: Identities::default(), readable: Readable::Absent }
    }
}
