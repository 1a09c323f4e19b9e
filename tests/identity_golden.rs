//! The identity encoding is frozen: every vector of `golden/identity.json` is reproduced by the library from
//! real Rust values, and by a second implementation that was written from the specification alone.

#[path = "identity_golden/library.rs"]
mod library;
#[path = "identity_golden/spec.rs"]
mod spec;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

fn vectors() -> BTreeMap<String, Value> {
    let all: Vec<Value> =
        serde_json::from_str(include_str!("golden/identity.json")).expect("the vectors are JSON");
    let count = all.len();
    let by_name: BTreeMap<_, _> =
        all.into_iter().map(|v| (v["name"].as_str().expect("a name").to_owned(), v)).collect();
    assert_eq!(by_name.len(), count, "every vector has a name of its own");
    by_name
}

fn expected(vector: &Value) -> &str {
    vector["id"].as_str().or(vector["digest"].as_str()).expect("an id or a digest")
}

#[test]
fn the_library_reproduces_every_vector() {
    let vectors = vectors();
    let answers = library::answers();
    let names: BTreeSet<_> = answers.iter().map(|(name, _)| *name).collect();
    let wanted: BTreeSet<_> = vectors.keys().map(String::as_str).collect();
    assert_eq!(names, wanted, "each vector has its Rust value, and each value its vector");
    for (name, answer) in &answers {
        assert_eq!(answer, expected(&vectors[*name]), "{name}");
    }
}

#[test]
fn a_second_implementation_reproduces_every_vector() {
    for (name, vector) in vectors() {
        let encoded = spec::encode(&vector);
        if let Some(hex) = vector["encoded"].as_str() {
            assert_eq!(spec::hex(&encoded), hex, "{name}");
        }
        let digest = blake3::hash(&encoded).to_hex();
        let tenant = vector["business"]["tenant"].as_str().or(vector["recipe"]["tenant"].as_str());
        let answer = tenant.map_or(digest.to_string(), |tenant| format!("{tenant}/{digest}"));
        assert_eq!(answer, expected(&vector), "{name}");
    }
}

#[test]
fn f44_f45_f46_f48_no_two_vectors_are_one_effect() {
    let vectors = vectors();
    let mut seen = BTreeMap::new();
    for (name, vector) in &vectors {
        let other = seen.insert(expected(vector), name);
        assert!(other.is_none(), "{name} and {other:?} have one digest");
    }
}
