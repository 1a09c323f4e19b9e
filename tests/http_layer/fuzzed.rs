//! What the fuzz targets look for, over a bounded number of seeded inputs. `EFFECTUAL_SEED` repeats a run.

use effectual::idempotency_key::fuzzing::{canonical_json, is_key};
use serde_json::Value;

const ROUNDS: usize = 20_000;

/// Numbers that look random, and are the same for a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn seeded() -> Self {
        let seed = std::env::var("EFFECTUAL_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or(u64::from(std::process::id()));
        println!("EFFECTUAL_SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).expect("below a usize")
    }

    fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    fn text(&mut self) -> String {
        (0..self.below(6))
            .map(|_| self.one_of(&["a", "é", "\u{1f600}", "\"", "\\", "/", "\n", "\0", "\u{7f}"]))
            .collect()
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 4 } else { 6 }) {
            0 => Value::Null,
            1 => (self.below(2) == 0).into(),
            2 => (self.0 >> self.below(64)).into(),
            3 => self.text().into(),
            4 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => Value::Object((0..self.below(4)).map(|_| (self.text(), self.value(depth - 1))).collect()),
        }
    }

    /// The value in one of its many spellings.
    fn spelt(&mut self, value: &Value, out: &mut String) {
        out.push_str(self.one_of(&["", " ", "\n\t", "\r\n  "]));
        match value {
            Value::String(text) => self.spelt_text(text, out),
            Value::Array(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    self.spelt(item, out);
                }
                out.push_str(self.one_of(&["]", " ]"]));
            }
            Value::Object(entries) => {
                let mut entries: Vec<_> = entries.iter().collect();
                for at in (1..entries.len()).rev() {
                    entries.swap(at, self.below(at + 1));
                }
                out.push('{');
                for (at, (name, item)) in entries.into_iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    out.push_str(self.one_of(&["", " "]));
                    self.spelt_text(name, out);
                    out.push_str(self.one_of(&[":", " :"]));
                    self.spelt(item, out);
                }
                out.push_str(self.one_of(&["}", " }"]));
            }
            other => out.push_str(&other.to_string()),
        }
        out.push_str(self.one_of(&["", "\n"]));
    }

    fn spelt_text(&mut self, text: &str, out: &mut String) {
        out.push('"');
        for character in text.chars() {
            if self.below(2) == 0 || character < ' ' || matches!(character, '"' | '\\') {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    out.push_str(&if self.below(2) == 0 {
                        format!("\\u{unit:04x}")
                    } else {
                        format!("\\u{unit:04X}")
                    });
                }
            } else {
                out.push(character);
            }
        }
        out.push('"');
    }
}

#[test]
fn every_spelling_of_a_json_value_is_one_text() {
    let mut random = Random::seeded();
    for _ in 0..ROUNDS / 10 {
        let value = random.value(4);
        let (mut one, mut other) = (String::new(), String::new());
        random.spelt(&value, &mut one);
        random.spelt(&value, &mut other);
        let canonical = canonical_json(one.as_bytes()).unwrap_or_else(|| panic!("it is JSON: {one:?}"));
        assert_eq!(canonical_json(other.as_bytes()).as_ref(), Some(&canonical), "{one:?} and {other:?}");
        assert_eq!(canonical_json(&canonical).as_ref(), Some(&canonical), "once canonical, always");
        assert_eq!(serde_json::from_slice::<Value>(&canonical).ok(), Some(value), "it says the same");
    }
}

#[test]
fn any_bytes_are_json_or_not_as_others_read_them() {
    let mut random = Random::seeded();
    let mut accepted = 0;
    for _ in 0..ROUNDS {
        let mut text = String::new();
        let value = random.value(3);
        random.spelt(&value, &mut text);
        let mut bytes = text.into_bytes();
        for _ in 0..random.below(3) {
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => bytes[at] = u8::try_from(random.below(256)).expect("a byte"),
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, b"{}[]\",:0-.eE+\\u "[random.below(16)]),
            }
            if bytes.is_empty() {
                break;
            }
        }
        let canonical = canonical_json(&bytes);
        match serde_json::from_slice::<Value>(&bytes) {
            Ok(_) => assert!(canonical.is_some(), "{bytes:?}"),
            // Numbers that no float holds are JSON all the same.
            Err(error) if error.to_string().contains("out of range") => {}
            Err(error) => assert_eq!(canonical, None, "{error}: {bytes:?}"),
        }
        accepted += usize::from(canonical.is_some());
    }
    assert!(accepted > ROUNDS / 10 && accepted < ROUNDS, "{accepted} of {ROUNDS} were JSON");
}

#[test]
fn any_header_is_a_key_or_not_as_the_grammar_says() {
    let mut random = Random::seeded();
    let mut accepted = 0;
    for _ in 0..ROUNDS {
        let mut line: Vec<u8> = (0..random.below(140)).map(|_| b"aZ09._~-"[random.below(8)]).collect();
        if random.below(3) == 0 && !line.is_empty() {
            let at = random.below(line.len());
            line[at] = u8::try_from(random.below(256)).expect("a byte");
        }
        let allowed =
            |byte: &u8| matches!(byte, b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'~' | b'-');
        let expected = (22..=128).contains(&line.len()) && line.iter().all(allowed);
        assert_eq!(is_key(&[&line], false), expected.then_some(true), "{line:?}");
        let quoted = [b"\"", &line[..], b"\""].concat();
        assert_eq!(is_key(&[&quoted], true), expected.then_some(true), "{line:?} in quotes");
        assert_eq!(is_key(&[&line, &line], true), None, "two lines");
        accepted += usize::from(expected);
    }
    assert!(accepted > ROUNDS / 10 && accepted < ROUNDS, "{accepted} of {ROUNDS} were keys");
}
