//! The grammar of the caller's key.

/// The header's name.
pub(super) const HEADER: http::HeaderName = http::HeaderName::from_static("idempotency-key");

const LENGTH_MIN: usize = 22;
const LENGTH_MAX: usize = 128;

/// A key of the grammar. It has no `Debug`: it is shown nowhere.
pub(super) struct CallerKey<'a>(&'a [u8]);

impl CallerKey<'_> {
    pub(super) fn bytes(&self) -> &[u8] {
        self.0
    }
}

/// A header that is not one key of the grammar.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OutsideGrammar;

/// The key of the header's lines: `None` without a line. Two lines are no key, whatever they say.
pub(super) fn parse<'a>(
    lines: impl IntoIterator<Item = &'a [u8]>,
    is_quoted_accepted: bool,
) -> Result<Option<CallerKey<'a>>, OutsideGrammar> {
    let mut lines = lines.into_iter();
    let Some(line) = lines.next() else { return Ok(None) };
    if lines.next().is_some() {
        return Err(OutsideGrammar);
    }
    // What the grammar allows needs no escape in a structured field's string.
    let unquoted = line.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    let key = unquoted.filter(|_| is_quoted_accepted).unwrap_or(line);
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._~-".contains(byte);
    if (LENGTH_MIN..=LENGTH_MAX).contains(&key.len()) && key.iter().all(is_allowed) {
        Ok(Some(CallerKey(key)))
    } else {
        Err(OutsideGrammar)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_key(lines: &[&[u8]], quoted: bool) -> Option<bool> {
        parse(lines.iter().copied(), quoted).map(|key| key.is_some()).ok()
    }

    #[test]
    fn the_grammar_at_its_edges() {
        let of = |length: usize| "aZ0._~-".bytes().cycle().take(length).collect::<Vec<u8>>();
        assert_eq!(is_key(&[], false), Some(false));
        for length in [22, 36, 128] {
            assert_eq!(is_key(&[&of(length)], false), Some(true), "{length}");
        }
        for length in [0, 1, 21, 129, 10_000] {
            assert_eq!(is_key(&[&of(length)], false), None, "{length}");
        }
        let key = of(22);
        assert_eq!(is_key(&[&key, &key], false), None, "two lines");
        assert_eq!(is_key(&[&[&key[..], b",", &key].concat()], false), None, "a list");
        for odd in [&b" "[..], b"\t", b"\0", b"\"", b"/", b"\xc3\xa9", b"\x7f", b"\xff"] {
            assert_eq!(is_key(&[&[&key[..], odd].concat()], true), None, "{odd:?}");
        }
    }

    #[test]
    fn a_quoted_key_is_the_key_in_it_where_it_is_accepted() {
        let (plain, quoted) = (b"0123456789abcdef012345", b"\"0123456789abcdef012345\"");
        assert_eq!(is_key(&[quoted], false), None);
        let key = parse([&quoted[..]], true).ok().flatten().expect("a key");
        assert_eq!(key.bytes(), plain);
        for odd in [&b"\"0123456789abcdef01234\""[..], b"\"", b"\"\"", b"\"0123456789abcdef012345"] {
            assert_eq!(is_key(&[odd], true), None);
        }
    }
}
