//! What was asked: one digest for each argument, so that the same effect asked for differently is noticed.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::canonical::{Encoder, Tag};
use super::effect_id::{digest_from_hex, digest_to_hex};
use super::json;
use super::secret::FingerprintKey;
use super::traits::Fingerprint;

const DOMAIN: &str = "effectual/argument";

/// Room for an argument of a usual length, and for an identity.
const CAPACITY: usize = 256;

/// The digest of one argument. As JSON: `["name","hex"]`, or `["name","hex","key id"]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentDigest {
    /// The argument's name.
    pub name: Cow<'static, str>,
    /// BLAKE3 over the canonical encoding of name and value.
    pub digest: [u8; 32],
    /// Which key the digest was made with; `None` for a digest without a key.
    pub key_id: Option<Cow<'static, str>>,
}

impl Serialize for ArgumentDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let hex = digest_to_hex(&self.digest).to_string();
        match &self.key_id {
            None => (&self.name, hex).serialize(serializer),
            Some(key_id) => (&self.name, hex, key_id).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ArgumentDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut parts = Vec::<String>::deserialize(deserializer)?.into_iter();
        let (Some(name), Some(hex), key_id, None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(de::Error::custom("an argument's digest has two or three parts"));
        };
        let digest = digest_from_hex(&hex)
            .ok_or_else(|| de::Error::custom("an argument's digest is 64 lower-case hexadecimal digits"))?;
        Ok(Self { name: name.into(), digest, key_id: key_id.map(Cow::Owned) })
    }
}

/// The arguments of one call, turned into digests as they are added.
pub struct Arguments {
    scratch: Encoder,
    keys: Vec<FingerprintKey>,
    digests: Vec<ArgumentDigest>,
    failure: Option<FingerprintError>,
}

impl Arguments {
    /// No argument yet.
    pub fn new() -> Self {
        Self::keyed(Vec::new())
    }

    /// No argument yet; secret ones will enter under these keys.
    #[must_use]
    pub fn keyed(keys: Vec<FingerprintKey>) -> Self {
        Self { scratch: Encoder::with_capacity(CAPACITY), keys, digests: Vec::new(), failure: None }
    }

    /// Adds an argument.
    #[must_use]
    pub fn argument(mut self, name: &'static str, value: &(impl Fingerprint + ?Sized)) -> Self {
        self.begin(name);
        value.encode_fingerprint(&mut self.scratch);
        self.end(name);
        self
    }

    /// Adds an argument by its canonical JSON. What keeps it from being written is kept for
    /// [`finish`](Self::finish).
    #[must_use]
    pub fn json_argument(mut self, name: &'static str, value: &(impl Serialize + ?Sized)) -> Self {
        match json::canonical(value) {
            Ok(text) => {
                self.begin(name);
                self.scratch.value(Tag::Json, &text);
                self.end(name);
            }
            Err(json::Refused(reason)) => {
                self.failure.get_or_insert(FingerprintError { argument: name, reason });
            }
        }
        self
    }

    /// Adds an argument whose value nobody may find out by trying: one keyed digest for each key. Without a key the call is
    /// refused by [`finish`](Self::finish).
    #[must_use]
    pub fn secret_argument(mut self, name: &'static str, value: &(impl Fingerprint + ?Sized)) -> Self {
        self.begin(name);
        value.encode_fingerprint(&mut self.scratch);
        self.end_secret(name);
        self
    }

    /// A secret argument by its canonical JSON.
    #[must_use]
    pub fn secret_json_argument(mut self, name: &'static str, value: &(impl Serialize + ?Sized)) -> Self {
        match json::canonical(value) {
            Ok(text) => {
                self.begin(name);
                self.scratch.value(Tag::Json, &text);
                self.end_secret(name);
            }
            Err(json::Refused(reason)) => {
                self.failure.get_or_insert(FingerprintError { argument: name, reason });
            }
        }
        self
    }

    /// The digests, in the order in which the arguments were added.
    ///
    /// # Errors
    ///
    /// The first argument that could not be written as JSON, or that is secret and found no key.
    pub fn finish(self) -> Result<Vec<ArgumentDigest>, FingerprintError> {
        match self.failure {
            None => Ok(self.digests),
            Some(failure) => Err(failure),
        }
    }

    /// Room to encode something else, once an argument's digest is there.
    pub(crate) fn scratch(&mut self) -> &mut Encoder {
        &mut self.scratch
    }

    fn begin(&mut self, name: &'static str) {
        self.scratch.restart(DOMAIN);
        self.scratch.name(name);
    }

    fn end(&mut self, name: &'static str) {
        let digest = self.scratch.digest();
        self.digests.push(ArgumentDigest { name: Cow::Borrowed(name), digest, key_id: None });
    }

    fn end_secret(&mut self, name: &'static str) {
        if self.keys.is_empty() {
            let reason = "it is secret, and the executor has no fingerprint key";
            self.failure.get_or_insert(FingerprintError { argument: name, reason });
        }
        for key in &self.keys {
            let digest = self.scratch.keyed_digest(&key.key);
            self.digests.push(ArgumentDigest {
                name: Cow::Borrowed(name),
                digest,
                key_id: Some(key.id.clone()),
            });
        }
        // The next argument begins anew, and the last one must not leave the value behind.
        self.scratch.restart(DOMAIN);
    }
}

impl Default for Arguments {
    fn default() -> Self {
        Self::new()
    }
}

/// An argument that cannot be compared between two calls, because it cannot be written as canonical JSON.
///
/// The effect was not started. The text holds nothing of the argument's value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("argument `{argument}` has no fingerprint: {reason}")]
pub struct FingerprintError {
    argument: &'static str,
    reason: &'static str,
}

impl FingerprintError {
    /// The argument's name.
    pub fn argument(&self) -> &'static str {
        self.argument
    }
}

/// The names of the arguments that two calls of one effect gave differently.
///
/// An argument that only one of the two knows, or that was digested with another key, proves nothing: an older
/// or newer binary may have made the other call.
pub fn mismatches(stored: &[ArgumentDigest], asked: &[ArgumentDigest]) -> Vec<String> {
    let differs = |asked: &&ArgumentDigest| {
        stored.iter().any(|s| s.name == asked.name && s.key_id == asked.key_id && s.digest != asked.digest)
    };
    asked.iter().filter(differs).map(|argument| argument.name.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn digests(arguments: Arguments) -> Vec<ArgumentDigest> {
        arguments.finish().expect("every argument serialises")
    }

    #[test]
    fn only_what_both_know_can_differ() {
        let stored = digests(Arguments::new().argument("amount", &5u64).argument("old", &1u8));
        let same = digests(Arguments::new().argument("new", "x").argument("amount", &5u64));
        let other = digests(Arguments::new().argument("amount", &6u64));
        assert!(mismatches(&stored, &same).is_empty() && mismatches(&same, &stored).is_empty());
        assert_eq!(mismatches(&stored, &other), ["amount"]);

        let mut keyed = other;
        keyed[0].key_id = Some("2024".into());
        assert!(mismatches(&stored, &keyed).is_empty(), "another key proves nothing");
    }

    #[test]
    fn a_secret_enters_under_every_key_and_never_without_one() {
        let key = |id: &str| FingerprintKey::new(id, &[7; 32]).expect("a key");
        let asked = |keys: &[&str], card: &str| {
            let keys = keys.iter().map(|id| key(id)).collect();
            digests(Arguments::keyed(keys).secret_argument("card", card))
        };
        let (one, both) = (asked(&["k1"], "4242"), asked(&["k1", "k2"], "4242"));
        assert_eq!(one[0].key_id.as_deref(), Some("k1"));
        assert_eq!(both.len(), 2);
        assert_ne!(one[0].digest, digests(Arguments::new().argument("card", "4242"))[0].digest);
        assert!(mismatches(&one, &both).is_empty());
        assert_eq!(mismatches(&one, &asked(&["k2", "k1"], "4243")), ["card"]);
        assert!(mismatches(&one, &asked(&["k2"], "4243")).is_empty(), "an unknown key proves nothing");
        let json = digests(Arguments::keyed(vec![key("k1")]).secret_json_argument("card", "4242"));
        assert_eq!((json[0].key_id.as_deref(), json[0].digest == one[0].digest), (Some("k1"), false));

        let error = Arguments::new().secret_argument("card", "4242").finish().expect_err("no key");
        assert!(error.argument() == "card" && !format!("{error} {error:?}").contains("4242"));
    }

    #[test]
    fn a_key_is_judged_and_not_shown() {
        for (id, secret) in [("", &[7; 32][..]), ("a b", &[7; 32]), ("k1", &[7; 15])] {
            assert!(FingerprintKey::new(id, secret).is_err(), "{id}");
        }
        let key = FingerprintKey::new("k1", b"a secret of some length").expect("a key");
        assert_eq!(format!("{key:?}"), "FingerprintKey { id: \"k1\", .. }");
    }

    #[test]
    fn compact_json_and_back() {
        let mut digests = digests(Arguments::new().argument("amount", &5u64).argument("card", "4242"));
        digests[1].key_id = Some("k1".into());
        let json = serde_json::to_string(&digests).expect("text");
        let hex = blake3::Hash::from_bytes(digests[0].digest).to_hex();
        assert!(json.starts_with(&format!("[[\"amount\",\"{hex}\"],[\"card\",\"")), "{json}");
        assert!(json.ends_with("\",\"k1\"]]"), "{json}");
        assert_eq!(serde_json::from_str::<Vec<ArgumentDigest>>(&json).ok(), Some(digests));
        for bad in ["[\"a\"]", "[\"a\",\"b\"]", "[\"a\",\"b\",\"c\",\"d\"]"] {
            assert!(serde_json::from_str::<ArgumentDigest>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn f47_what_is_not_a_number_is_never_null() {
        let error = Arguments::new()
            .json_argument("fine", &1)
            .json_argument("rates", &[1.0, f64::NAN])
            .json_argument("later", &f64::INFINITY)
            .finish()
            .expect_err("NaN has no JSON");
        assert_eq!(error.argument(), "rates");
        let float = |value: f64| digests(Arguments::new().argument("x", &value));
        assert_eq!(float(f64::NAN), float(-f64::NAN), "one NaN, whatever its bits");
        assert_ne!(float(f64::NAN), float(f64::INFINITY));
        assert_ne!(float(f64::NAN), digests(Arguments::new().argument("x", &None::<f64>)));
    }

    #[test]
    fn a_value_that_does_not_serialise_is_an_error_without_its_content() {
        let by_pair = HashMap::from([(("canary", 1), 2)]);
        let error =
            Arguments::new().json_argument("by_pair", &by_pair).finish().expect_err("a tuple as a key");
        assert_eq!(error.argument(), "by_pair");
        assert!(!format!("{error} {error:?}").contains("canary"));
    }

    #[test]
    fn json_arguments_do_not_depend_on_map_order() {
        let entries = || (0..50).map(|n| (format!("k{n}"), n));
        let one: HashMap<_, _> = entries().collect();
        let two: HashMap<_, _> = entries().rev().collect();
        let digest = |map| digests(Arguments::new().json_argument("map", map));
        assert_eq!(digest(&one), digest(&two));
    }
}
