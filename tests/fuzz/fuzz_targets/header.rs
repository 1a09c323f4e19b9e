//! The grammar of `Idempotency-Key`, against the grammar as it is written down.
#![no_main]

use effectual::idempotency_key::fuzzing::is_key;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._~-".contains(byte);
    let expected = (22..=128).contains(&line.len()) && line.iter().all(allowed);
    assert_eq!(is_key(&[line], false), expected.then_some(true));
    let quoted = [b"\"", line, b"\""].concat();
    assert_eq!(is_key(&[&quoted], true), expected.then_some(true));
    assert_eq!(is_key(&[line, line], true), None);
});
