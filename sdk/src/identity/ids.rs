//! The checked identifiers. A value of one of these types always satisfies its rule, so nothing downstream
//! checks it again.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::effect_id::EffectId;

const TENANT_RULE: &str = "1 to 128 of `A-Z a-z 0-9 . _ ~ -`, with `anon:` allowed in front";
const RUN_RULE: &str = "`<tenant>/<opaque>`, where the opaque part is 16 to 128 of `A-Z a-z 0-9 . _ ~ -`";
const NODE_RULE: &str = "1 to 128 of `A-Z a-z 0-9 . _ ~ : -`";

/// A text that is not an identifier of the kind that was asked for.
///
/// It names the kind and the rule, never the text: what was refused may be a secret that somebody put in the
/// wrong place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a valid {kind}: it must be {rule}")]
pub struct InvalidId {
    kind: &'static str,
    rule: &'static str,
}

impl InvalidId {
    pub(crate) const fn new(kind: &'static str, rule: &'static str) -> Self {
        Self { kind, rule }
    }

    /// What was expected: `tenant`, `run id`, `node id`, `invocation id` or `effect id`.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// The rule that the text breaks.
    pub fn rule(&self) -> &'static str {
        self.rule
    }
}

/// Whether `text` has between `least` and 128 characters, all unreserved or in `extra`.
fn is_token(text: &str, least: usize, extra: &[u8]) -> bool {
    (least..=128).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._~-".contains(&b) || extra.contains(&b))
}

/// The conversions that every checked identifier has, over its `parse`, `Display` and `Debug`.
macro_rules! checked_conversions {
    ($($id:ident),+) => {$(
        impl FromStr for $id {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::parse(text)
            }
        }

        impl TryFrom<&str> for $id {
            type Error = InvalidId;

            fn try_from(text: &str) -> Result<Self, InvalidId> {
                Self::parse(text)
            }
        }

        impl TryFrom<String> for $id {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                Self::parse(text)
            }
        }

        impl fmt::Debug for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl Serialize for $id {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $id {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::parse(String::deserialize(deserializer)?).map_err(de::Error::custom)
            }
        }
    )+};
}

/// An identifier that is one token, with its kind, its rule and the check of that rule.
macro_rules! token_id {
    ($(#[$doc:meta])+ $id:ident, $kind:literal, $rule:expr, $check:expr) => {
        $(#[$doc])+
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $id(Arc<str>);

        impl $id {
            /// Checks a text against this identifier's rule.
            ///
            /// # Errors
            ///
            /// [`InvalidId`] where the text breaks the rule.
            pub fn parse(text: impl Into<String>) -> Result<Self, InvalidId> {
                let text = text.into();
                let check: fn(&str) -> bool = $check;
                if check(&text) { Ok(Self(text.into())) } else { Err(InvalidId::new($kind, $rule)) }
            }

            /// The identifier's text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

token_id! {
    /// Whose effects these are: `^(anon:)?[A-Za-z0-9._~-]{1,128}$`.
    ///
    /// Take it from the caller's credential, never from the request's body.
    Tenant, "tenant", TENANT_RULE, |text| is_token(text.strip_prefix("anon:").unwrap_or(text), 1, b"")
}

token_id! {
    /// A node of a workflow run: `^[A-Za-z0-9._~:-]{1,128}$`.
    NodeId, "node id", NODE_RULE, |text| is_token(text, 1, b":")
}

token_id! {
    /// One invocation that the host made: `^[A-Za-z0-9._~:-]{1,128}$`.
    InvocationId, "invocation id", NODE_RULE, |text| is_token(text, 1, b":")
}

checked_conversions!(Tenant, NodeId, InvocationId, RunId, EffectId);

/// A workflow run, bound to its tenant: `<tenant>/<opaque>`, with the opaque part
/// `^[A-Za-z0-9._~-]{16,128}$`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId {
    text: Arc<str>,
    tenant: Tenant,
}

impl RunId {
    /// Checks a text against the rule of run ids.
    ///
    /// # Errors
    ///
    /// [`InvalidId`] where the text breaks the rule.
    pub fn parse(text: impl Into<String>) -> Result<Self, InvalidId> {
        let text = text.into();
        let invalid = InvalidId::new("run id", RUN_RULE);
        let (tenant, opaque) = text.split_once('/').ok_or(invalid)?;
        let tenant = Tenant::parse(tenant).map_err(|_| invalid)?;
        if !is_token(opaque, 16, b"") {
            return Err(invalid);
        }
        Ok(Self { text: text.into(), tenant })
    }

    /// A new random run id of `tenant`. Its opaque part has 122 random bits and no `~`, so that it needs no
    /// escape on a URL's path.
    pub fn mint(tenant: &Tenant) -> Self {
        let opaque = uuid::Uuid::new_v4();
        Self { text: format!("{tenant}/{}", opaque.simple()).into(), tenant: tenant.clone() }
    }

    /// The tenant whose run this is.
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// The part behind the tenant.
    pub fn opaque(&self) -> &str {
        &self.text[self.tenant.as_str().len() + 1..]
    }

    /// The whole identifier's text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammars_at_their_edges() {
        let long = "x".repeat(128);
        for good in ["a", "anon:a", "A.z_0~-", long.as_str(), &format!("anon:{long}")] {
            assert_eq!(Tenant::parse(good).expect(good).as_str(), good);
        }
        for bad in ["", "anon:", "a:b", "a/b", "a b", "é", "anon:anon:a", "a\n", &format!("{long}x")] {
            assert!(Tenant::parse(bad).is_err(), "{bad:?}");
        }
        for good in ["a:b", "a", ":", long.as_str()] {
            assert!(NodeId::parse(good).is_ok() && InvocationId::parse(good).is_ok(), "{good:?}");
        }
        for bad in ["", "a/b", "a b", "\u{1f600}", "a\0"] {
            assert!(NodeId::parse(bad).is_err() && InvocationId::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn run_id_is_bound_to_its_tenant() {
        let run = RunId::parse("anon:acme/0123456789abcdef").expect("a valid run id");
        assert_eq!((run.tenant().as_str(), run.opaque()), ("anon:acme", "0123456789abcdef"));
        let long = "x".repeat(129);
        for bad in [
            "acme",
            "acme/0123456789abcde",
            "/0123456789abcdef",
            "a/b/0123456789abcdef",
            &format!("a/{long}"),
        ] {
            assert!(RunId::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn minted_run_ids_parse_and_differ() {
        let tenant = Tenant::parse("acme").expect("a valid tenant");
        let (one, two) = (RunId::mint(&tenant), RunId::mint(&tenant));
        assert_ne!(one, two);
        assert_eq!(RunId::parse(one.as_str()).as_ref(), Ok(&one));
        assert!(one.tenant() == &tenant && !one.opaque().contains('~'));
    }

    #[test]
    fn a_refusal_names_kind_and_rule_and_not_the_value() {
        let error = RunId::parse("canary secret").expect_err("a space");
        let text = format!("{error} {error:?}");
        assert!(text.contains("run id") && text.contains("<tenant>/<opaque>"), "{text}");
        assert!(!text.contains("canary"), "{text}");
    }

    #[test]
    fn serde_checks_what_it_reads() {
        let run: RunId = serde_json::from_str("\"acme/0123456789abcdef\"").expect("a valid run id");
        assert_eq!(serde_json::to_string(&run).expect("text"), "\"acme/0123456789abcdef\"");
        assert!(serde_json::from_str::<RunId>("\"acme/short\"").is_err());
        assert!(serde_json::from_str::<Tenant>("\"a b\"").is_err());
        assert!(NodeId::try_from("a b").is_err() && "a:b".parse::<NodeId>().is_ok());
    }
}
