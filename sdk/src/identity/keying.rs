//! From what identifies an effect to its identity.

use std::fmt;
use std::ops::Range;

use super::canonical::Encoder;
use super::effect_id::EffectId;
use super::ids::{NodeId, RunId, Tenant};
use super::readable;
use super::traits::Identity;

const BUSINESS_DOMAIN: &str = "effectual/business-identity";
const RECIPE_DOMAIN: &str = "effectual/activity-recipe";

/// Room for a few fields.
const FIELDS_CAPACITY: usize = 64;

/// Room for what an operator reads of a usual key.
const READABLE_CAPACITY: usize = 64;

/// Room for the fixed part of an identity, so that a usual key is encoded without growing the buffer.
const CAPACITY: usize = 256;

/// The fields that identify a business operation, each under its name.
///
/// The order in which they are added means nothing. Values do not show in `Debug`.
pub struct KeyFields {
    encoded: Encoder,
    fields: Vec<Field>,
}

struct Field {
    name: &'static str,
    encoded: Range<usize>,
    /// The first version that has it.
    since: u32,
    /// The first version that has it no more.
    until: Option<u32>,
}

impl Field {
    fn is_in(&self, version: u32) -> bool {
        version >= self.since && self.until.is_none_or(|until| version < until)
    }
}

impl KeyFields {
    /// No field yet.
    pub fn new() -> Self {
        Self { encoded: Encoder::with_capacity(FIELDS_CAPACITY), fields: Vec::new() }
    }

    /// Adds a field. The attribute refuses one name for two fields; here both enter, in the order in which
    /// they were added.
    #[must_use]
    pub fn field(self, name: &'static str, value: &(impl Identity + ?Sized)) -> Self {
        self.field_in(name, value, 1, None)
    }

    /// Adds a field that belongs to some versions of the key schema only: from `since` on, and before `until` if there is
    /// one. Versions count from 1, so `since` 1 without `until` is [`field`](Self::field). In a version that has no field at
    /// all, every key is the same: the attribute refuses that, and here it is the caller's to see to.
    #[must_use]
    pub fn field_in(
        mut self,
        name: &'static str,
        value: &(impl Identity + ?Sized),
        since: u32,
        until: Option<u32>,
    ) -> Self {
        let start = self.encoded.position();
        value.encode(&mut self.encoded);
        self.fields.push(Field { name, encoded: start..self.encoded.position(), since, until });
        self
    }

    /// Whether the key schema's versions have different fields, so that earlier identities can be derived.
    pub(crate) fn has_versions(&self) -> bool {
        self.fields.iter().any(|field| field.since > 1 || field.until.is_some())
    }

    fn at(&self, version: u32) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(move |field| field.is_in(version))
    }

    /// The names of the fields of a version.
    pub(crate) fn names_at(&self, version: u32) -> impl Iterator<Item = &'static str> {
        self.at(version).map(|field| field.name)
    }

    /// The fields of a version as an operator may read them, most of each text left out.
    pub(crate) fn readable_at(&self, version: u32) -> String {
        let mut text = String::with_capacity(READABLE_CAPACITY);
        for field in self.at(version) {
            readable::field(field.name, &self.encoded.bytes()[field.encoded.clone()], &mut text);
        }
        text
    }

    /// [`business_identity`], encoded over what `out` held.
    pub(crate) fn identity(
        &self,
        tenant: &Tenant,
        operation: &str,
        version: u32,
        out: &mut Encoder,
    ) -> EffectId {
        out.restart(BUSINESS_DOMAIN);
        let record = out.open_record();
        out.name("key");
        self.encode(out, version);
        field(out, "operation", operation);
        field(out, "tenant", tenant);
        field(out, "version", &version);
        out.close(record);
        EffectId::new(tenant.clone(), out.digest())
    }

    fn encode(&self, out: &mut Encoder, version: u32) {
        let record = out.open_record();
        let mut write = |field: &Field| {
            out.name(field.name);
            out.append(&self.encoded.bytes()[field.encoded.clone()]);
        };
        if self.at(version).is_sorted_by_key(|field| field.name) {
            self.at(version).for_each(write);
        } else {
            let mut sorted: Vec<_> = self.at(version).collect();
            // Stable, and by bytes: no locale has a say in it.
            sorted.sort_by_key(|field| field.name);
            sorted.into_iter().for_each(&mut write);
        }
        out.close(record);
    }
}

impl Default for KeyFields {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for KeyFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.fields.iter().map(|field| field.name)).finish()
    }
}

/// The identity of a business operation, the same from every entry point: a node, an operator's route, a
/// scheduled job.
///
/// `version` is the version of the key schema, from 1: it rises when the key's fields change, and is part of the identity.
/// Fields that do not belong to it are left out.
pub fn business_identity(tenant: &Tenant, operation: &str, version: u32, key: &KeyFields) -> EffectId {
    let mut out = Encoder::with_capacity(CAPACITY + key.encoded.position());
    key.identity(tenant, operation, version, &mut out)
}

/// Where a call without a business key was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecipePlace {
    /// In a node of a run.
    Node {
        /// The run.
        run: RunId,
        /// The node within the run.
        node: NodeId,
    },
    /// In the body of another effect, whose identity stands in for run and node.
    Effect(EffectId),
}

/// The identity of an action that has no business key: the `ordinal`-th such call, from 0, of this place.
///
/// The action is the provider's pinned name, if there is a provider, and the operation.
pub fn activity_recipe(
    tenant: &Tenant,
    place: &RecipePlace,
    ordinal: u64,
    provider: Option<&str>,
    operation: &str,
) -> EffectId {
    let mut out = Encoder::with_capacity(2 * CAPACITY);
    out.restart(RECIPE_DOMAIN);
    let record = out.open_record();
    // The names are sorted in both shapes: effect or node, operation, ordinal, provider, run, tenant.
    match place {
        RecipePlace::Effect(effect) => field(&mut out, "effect", &effect.to_string()),
        RecipePlace::Node { node, .. } => field(&mut out, "node", node.as_str()),
    }
    field(&mut out, "operation", operation);
    field(&mut out, "ordinal", &ordinal);
    field(&mut out, "provider", &provider);
    if let RecipePlace::Node { run, .. } = place {
        field(&mut out, "run", run.as_str());
    }
    field(&mut out, "tenant", tenant);
    out.close(record);
    EffectId::new(tenant.clone(), out.digest())
}

fn field(out: &mut Encoder, name: &str, value: &(impl Identity + ?Sized)) {
    out.name(name);
    value.encode(out);
}
