//! Run ids on a URL's path.
//!
//! A run id has two parts and a path parameter is one segment. The spelling that survives every intermediary is one
//! segment in which each byte outside `A-Z a-z 0-9 . _ -` is `~` and two hexadecimal digits: `acme~2F0123…`. Accepted are
//! that, `acme%2F0123…` and the plain `acme/0123…`; a `~` is always the start of such an escape, and so `~7E` itself.

use crate::identity::{InvalidId, RunId};

/// A path that names no run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunPathError {
    /// A `%` or `~` is not followed by two hexadecimal digits, or what they stand for is no text.
    #[error(
        "a `%` or `~` on the path is not the start of an escape: write each as two hexadecimal digits behind it"
    )]
    Escape,
    /// The text is no run id.
    #[error(transparent)]
    Id(InvalidId),
}

/// Reads a run id from the part of a URL's path that stands for it, as it was sent: percent-escapes are decoded once, and
/// then `~XX` once.
///
/// # Errors
/// [`RunPathError`]; whether such a run exists plays no part.
pub fn run_id_from_path(raw: &str) -> Result<RunId, RunPathError> {
    let decoded = unescape(raw.as_bytes(), b'%').ok_or(RunPathError::Escape)?;
    let decoded = unescape(&decoded, b'~').ok_or(RunPathError::Escape)?;
    let text = String::from_utf8(decoded).map_err(|_| RunPathError::Escape)?;
    RunId::parse(text).map_err(RunPathError::Id)
}

/// The run id as one segment of a URL's path.
#[must_use]
pub fn run_id_to_path(run: &RunId) -> String {
    let mut path = String::with_capacity(run.as_str().len() + 2);
    for byte in run.as_str().bytes() {
        if byte.is_ascii_alphanumeric() || b"._-".contains(&byte) {
            path.push(char::from(byte));
        } else {
            path.push('~');
            path.extend(
                [byte >> 4, byte & 15].map(|half| char::from(b"0123456789ABCDEF"[usize::from(half)])),
            );
        }
    }
    path
}

/// Replaces `marker` and two hexadecimal digits by the byte that they stand for, each once.
fn unescape(text: &[u8], marker: u8) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(&byte) = rest.next() {
        if byte == marker {
            let mut digit =
                || char::from(*rest.next()?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            bytes.push(digit()? << 4 | digit()?);
        } else {
            bytes.push(byte);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "acme/0123456789abcdef";

    #[test]
    fn three_spellings_are_one_run() {
        for path in [
            PLAIN,
            "acme%2F0123456789abcdef",
            "acme%2f0123456789abcdef",
            "acme~2F0123456789abcdef",
            "%61cme~2f%30123456789abcdef",
        ] {
            assert_eq!(run_id_from_path(path).map(|run| run.to_string()), Ok(PLAIN.to_owned()), "{path}");
        }
        let strange = RunId::parse("anon:a~b/~123456789abcdef~").expect("a run id");
        assert_eq!(run_id_to_path(&strange), "anon~3Aa~7Eb~2F~7E123456789abcdef~7E");
        assert_eq!(run_id_from_path("anon:a~7Eb/~7E123456789abcdef%7E7E"), Ok(strange));
    }

    #[test]
    fn nothing_is_decoded_twice() {
        // `%257E` is `%7E` once decoded, which is no run id's; it is not decoded again.
        assert!(matches!(run_id_from_path("acme%252F0123456789abcdef"), Err(RunPathError::Id(_))));
        assert!(matches!(run_id_from_path("acme/0123456789abcdef%257E7E"), Err(RunPathError::Id(_))));
        let tilde = run_id_from_path("acme/0123456789abcdef~7E7E").expect("a run id");
        assert_eq!(tilde.opaque(), "0123456789abcdef~7E");
    }

    #[test]
    fn malformed_escapes_and_other_texts_are_refused() {
        for path in [
            "acme~2",
            "acme~",
            "acme~2G0123456789abcdef",
            "acme%2",
            "acme%zz0123456789abcdef",
            "acme/~z123456789abcdef",
            "acme~2F0123456789abcdef%C3",
            "acme~2F0123456789abcdef~FF",
        ] {
            assert_eq!(run_id_from_path(path), Err(RunPathError::Escape), "{path}");
        }
        for path in [
            "",
            "acme",
            "acme/short",
            "acme/0123456789abcdef/",
            "/0123456789abcdef",
            "acme//0123456789abcdef",
            "acme/0123456789abcdef%00",
            "acme/../0123456789abcdef",
            "acme/0123456789abcdef%20",
            "acme/0123456789abcd\u{e9}f",
        ] {
            assert!(matches!(run_id_from_path(path), Err(RunPathError::Id(_))), "{path}");
        }
    }
}
