//! An HTTP answer, as a profile's rules look at it.

use serde_json::Value;

/// The parts of an HTTP answer that a profile judges. Independent of any HTTP client.
#[derive(Clone)]
pub struct Answer<'a> {
    pub(super) status: u16,
    headers: Vec<(&'a str, &'a str)>,
    body: &'a [u8],
}

impl<'a> Answer<'a> {
    /// An answer with this status, without headers and body.
    #[must_use]
    pub fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: &[] }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &'a str, value: &'a str) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Adds the whole body. One that did not arrive whole must not be judged: such an answer is unknown.
    #[must_use]
    pub fn body(mut self, body: &'a [u8]) -> Self {
        self.body = body;
        self
    }

    /// The first header of this name.
    pub(super) fn value_of(&self, name: &str) -> Option<&'a str> {
        let found = self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim())
    }

    pub(super) fn has(&self, (name, value): &(String, String)) -> bool {
        self.value_of(name).is_some_and(|own| own.eq_ignore_ascii_case(value.trim()))
    }

    pub(super) fn json(&self) -> Option<Value> {
        serde_json::from_slice(self.body).ok()
    }
}

/// Shows neither headers nor body: they may hold what nobody should log.
impl std::fmt::Debug for Answer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer").field("status", &self.status).finish_non_exhaustive()
    }
}

/// The texts and numbers at a path like `/errors/*/code`.
pub(super) fn codes_at(value: &Value, path: &str) -> Vec<String> {
    let steps: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let mut codes = Vec::new();
    collect(value, &steps, &mut codes);
    codes
}

fn collect(value: &Value, steps: &[&str], codes: &mut Vec<String>) {
    let Some((step, rest)) = steps.split_first() else {
        match value {
            Value::String(code) => codes.push(code.clone()),
            Value::Number(code) => codes.push(code.to_string()),
            _ => {}
        }
        return;
    };
    match value {
        Value::Object(fields) if *step == "*" => {
            fields.values().for_each(|value| collect(value, rest, codes))
        }
        Value::Array(items) if *step == "*" => items.iter().for_each(|value| collect(value, rest, codes)),
        Value::Object(fields) => fields.get(*step).into_iter().for_each(|value| collect(value, rest, codes)),
        Value::Array(items) => {
            let item = step.parse::<usize>().ok().and_then(|index| items.get(index));
            item.into_iter().for_each(|value| collect(value, rest, codes));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_finds_every_code_that_it_names() {
        let body = serde_json::json!({
            "error": { "code": "a", "type": "b", "number": 704 },
            "errors": [{ "code": "c" }, { "code": "d" }, { "other": 1 }, 5],
            "data": { "refund": { "userErrors": [{ "code": "e" }] }, "nothing": null },
        });
        for (path, codes) in [
            ("/error/code", vec!["a"]),
            ("/error/number", vec!["704"]),
            ("/errors/*/code", vec!["c", "d"]),
            ("/errors/1/code", vec!["d"]),
            ("/data/*/userErrors/*/code", vec!["e"]),
            ("/error", vec![]),
            ("/errors/9/code", vec![]),
            ("/none/at/all", vec![]),
        ] {
            assert_eq!(codes_at(&body, path), codes, "{path}");
        }
    }

    #[test]
    fn header_names_and_values_are_compared_without_case() {
        let answer = Answer::new(200).header("idempotent-replayed", " True ");
        assert!(answer.has(&("Idempotent-Replayed".into(), "true".into())));
        assert!(!answer.has(&("Idempotent-Replayed".into(), "false".into())));
        assert!(!answer.has(&("Other".into(), "true".into())));
    }
}
