//! The form of a create call.

use std::collections::BTreeMap;

use super::EFFECT_METADATA;
use crate::{identity::EffectId, provider::http::HttpError};

/// Fields in the order in which they were added, the metadata last and by name: the same bytes on each attempt.
#[derive(Default)]
pub(super) struct Form {
    fields: Vec<(String, String)>,
    metadata: BTreeMap<String, String>,
}

impl Form {
    pub(super) fn field(mut self, name: &str, value: impl ToString) -> Self {
        self.fields.push((name.to_owned(), value.to_string()));
        self
    }

    pub(super) fn maybe(self, name: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.field(name, value),
            None => self,
        }
    }

    pub(super) fn metadata(mut self, metadata: &BTreeMap<String, String>) -> Self {
        self.metadata.clone_from(metadata);
        self
    }

    /// The fields, with the effect's mark among the metadata.
    pub(super) fn for_effect(self, effect: &EffectId) -> Result<Vec<(String, String)>, HttpError> {
        if self.metadata.contains_key(EFFECT_METADATA) {
            return Err(HttpError::request(format!(
                "the metadata name `{EFFECT_METADATA}` is the library's own"
            )));
        }
        let mut metadata = self.metadata;
        metadata.insert(EFFECT_METADATA.to_owned(), mark(effect));
        let metadata = metadata.into_iter().map(|(name, value)| (format!("metadata[{name}]"), value));
        Ok(self.fields.into_iter().chain(metadata).collect())
    }
}

/// The effect's digest. It covers the tenant, which is not shown.
pub(super) fn mark(effect: &EffectId) -> String {
    blake3::Hash::from_bytes(*effect.digest()).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Tenant;

    fn effect() -> EffectId {
        EffectId::new(Tenant::parse("acme").expect("a valid tenant"), [0xab; 32])
    }

    #[test]
    fn the_mark_is_added_and_cannot_be_set() {
        let own = BTreeMap::from([("z".to_owned(), "1".to_owned()), ("a".to_owned(), "2".to_owned())]);
        let form = Form::default().field("charge", "ch_1").maybe("amount", None::<u64>).metadata(&own);
        let fields = form.for_effect(&effect()).expect("fields");
        let mark = "ab".repeat(32);
        let expected = [
            ("charge", "ch_1"),
            ("metadata[a]", "2"),
            ("metadata[effectual_effect]", mark.as_str()),
            ("metadata[z]", "1"),
        ];
        assert_eq!(fields, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));

        let taken = BTreeMap::from([(EFFECT_METADATA.to_owned(), "canary".to_owned())]);
        let error = Form::default().metadata(&taken).for_effect(&effect()).expect_err("taken");
        assert!(error.to_string().contains("the library's own") && !error.to_string().contains("canary"));
    }
}
