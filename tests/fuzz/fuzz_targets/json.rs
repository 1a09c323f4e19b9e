//! Canonical JSON, against another reader of JSON.
#![no_main]

use effectual::idempotency_key::fuzzing::canonical_json;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|text: &[u8]| {
    let read = serde_json::from_slice::<Value>(text);
    let Some(canonical) = canonical_json(text) else {
        // What is nested deeper than that is compared byte by byte.
        let is_deep = text.iter().filter(|byte| matches!(byte, b'[' | b'{')).count() > 100;
        assert!(read.is_err() || is_deep);
        return;
    };
    assert_eq!(canonical_json(&canonical).as_ref(), Some(&canonical));
    match read {
        Ok(value) => assert_eq!(serde_json::from_slice::<Value>(&canonical).ok(), Some(value)),
        Err(error) => {
            assert!(error.to_string().contains("out of range") || error.to_string().contains("recursion"))
        }
    }
});
