//! Effects with more than one identity: a raised key-schema version finds what an earlier one recorded.
//!
//! An effect's own row is under the identity that it was first claimed by. Each further identity is an alias row of the
//! same table, under the same unique key, so that binaries with different key schemas exclude each other.

use std::sync::Arc;

use super::{claim::ClaimRequest, record::EffectRecord};
use crate::identity::{ArgumentDigest, EffectId};

/// An earlier identity of the same call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Further {
    /// Under that version.
    pub id: EffectId,
    /// The key-schema version that it is derived under, from 1.
    pub key_version: u32,
}

/// The earlier identities of a call, and how a holder that knows only those is told from another effect. Empty, the default,
/// for a call whose key has not changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identities {
    /// The latest version first.
    pub further: Vec<Further>,
    /// The names of the key fields of the call's own version, as they are in its fingerprints.
    pub key_fields: Vec<String>,
}

impl Identities {
    /// Whether the call has no earlier identity, so that its own row is the only one to look for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.further.is_empty()
    }
}

/// The effect that an identity names, directly or as an alias.
#[derive(Debug, Clone)]
pub struct Named {
    /// Its row.
    pub holder: EffectRecord,
    /// The key-schema versions of all its identities, its own row's and its aliases'.
    pub versions: Vec<u32>,
}

/// Which row a claim is to be judged on.
#[derive(Debug, Clone)]
pub enum Resolved {
    /// This one, or none; together with what the judgement stores, these identities become aliases of it.
    Row {
        /// The row.
        holder: Option<Arc<EffectRecord>>,
        /// The new aliases.
        aliases: Vec<Further>,
    },
    /// An effect that an earlier identity names may be this one and cannot prove it.
    Ambiguous,
}

/// Finds the row for a claim. Pure.
///
/// `own` is what the claim's own identity names, and `further` what each of its earlier ones does: as many, and in the order, as
/// in [`Identities::further`], all read under one lock or snapshot. A backend stores the aliases together with the claim, or
/// finds on the way that one of them was taken meanwhile, and resolves again.
#[must_use]
pub fn resolve(request: &ClaimRequest, own: Option<Named>, further: Vec<Option<Named>>) -> Resolved {
    if let Some(named) = own {
        return Resolved::Row { holder: Some(Arc::new(named.holder)), aliases: Vec::new() };
    }
    let mut free = Vec::new();
    for (earlier, named) in request.identities.further.iter().zip(further) {
        let Some(named) = named else {
            free.push(earlier.clone());
            continue;
        };
        if named.versions.contains(&request.key_version) {
            // It has an identity of our version and it is not ours: another effect, which keeps the earlier identity.
            continue;
        }
        if !is_same(&request.identities.key_fields, &named.holder.fingerprints, &request.fingerprints) {
            return Resolved::Ambiguous;
        }
        let own = Further { id: request.id.clone(), key_version: request.key_version };
        return Resolved::Row { holder: Some(Arc::new(named.holder)), aliases: vec![own] };
    }
    Resolved::Row { holder: None, aliases: free }
}

/// Whether recorded fingerprints hold every field of our key, with the same values.
fn is_same(key_fields: &[String], stored: &[ArgumentDigest], asked: &[ArgumentDigest]) -> bool {
    let find =
        |digests: &[ArgumentDigest], name: &str| digests.iter().find(|digest| digest.name == name).cloned();
    key_fields.iter().all(|name| {
        let asked = find(asked, name);
        asked.is_some() && asked == find(stored, name)
    })
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::{
        descriptor::{Keying, RecoveryClass},
        identity::Tenant,
        ledger::{
            claim::{self, Claim},
            record::{AttemptToken, Place},
        },
    };

    fn id(byte: u8) -> EffectId {
        EffectId::new(Tenant::parse("acme").expect("a tenant"), [byte; 32])
    }

    fn argument(name: &'static str, byte: u8) -> ArgumentDigest {
        ArgumentDigest { name: Cow::Borrowed(name), digest: [byte; 32], key_id: None }
    }

    /// A call under version 2, whose key has `order` and `line`; its identity under version 1 is `id(1)`.
    fn request(own: u8, line: u8) -> ClaimRequest {
        ClaimRequest {
            id: id(own),
            operation: "refund".into(),
            keying: Keying::BusinessIdentity,
            key_version: 2,
            identities: Identities {
                further: vec![Further { id: id(1), key_version: 1 }],
                key_fields: vec!["order".to_owned(), "line".to_owned()],
            },
            readable: None,
            provider: None,
            provider_key: "key".into(),
            fingerprints: [argument("order", 9), argument("line", line)].into(),
            input: None,
            class: RecoveryClass::Hold,
            can_perform: true,
            can_look_up: false,
            can_poll: false,
            resend_window_ms: None,
            resend_quiet_ms: None,
            token: AttemptToken([own; 16]),
            lease_ms: 1,
            attempt_timeout_ms: 1,
            place: Place::default(),
        }
    }

    fn recorded(fingerprints: Vec<ArgumentDigest>, versions: &[u32]) -> Named {
        let request = ClaimRequest { id: id(1), fingerprints: fingerprints.into(), ..request(1, 7) };
        let Claim::Won { record, .. } = claim::judge(None, &request, 0).reply else {
            panic!("a first claim")
        };
        Named { holder: Arc::unwrap_or_clone(record), versions: versions.to_vec() }
    }

    fn row(resolved: Resolved) -> Option<(bool, Vec<EffectId>)> {
        match resolved {
            Resolved::Row { holder, aliases } => {
                Some((holder.is_some(), aliases.into_iter().map(|alias| alias.id).collect()))
            }
            Resolved::Ambiguous => None,
        }
    }

    #[test]
    fn nothing_found_claims_every_identity() {
        assert_eq!(row(resolve(&request(2, 7), None, vec![None])), Some((false, vec![id(1)])));
    }

    #[test]
    fn an_earlier_record_that_holds_our_key_is_ours() {
        let held = vec![argument("order", 9), argument("line", 7)];
        let named = recorded(held, &[1]);
        assert_eq!(row(resolve(&request(2, 7), None, vec![Some(named)])), Some((true, vec![id(2)])));
    }

    #[test]
    fn an_earlier_record_that_cannot_prove_it_is_ambiguous() {
        let without = recorded(vec![argument("order", 9)], &[1]);
        let differing = recorded(vec![argument("order", 9), argument("line", 8)], &[1]);
        for named in [without, differing] {
            assert_eq!(row(resolve(&request(2, 7), None, vec![Some(named)])), None);
        }
    }

    #[test]
    fn an_earlier_record_with_another_identity_of_our_version_is_another_effect() {
        let named = recorded(vec![argument("order", 9), argument("line", 8)], &[1, 2]);
        assert_eq!(row(resolve(&request(2, 7), None, vec![Some(named)])), Some((false, vec![])));
    }

    #[test]
    fn our_own_identity_settles_it() {
        let own = recorded(vec![argument("order", 9)], &[1, 2]);
        assert_eq!(row(resolve(&request(2, 7), Some(own), vec![None])), Some((true, vec![])));
    }
}
