//! Text that PostgreSQL cannot hold: a NUL, which a provider's handle, say, may well contain.

use std::borrow::Cow;

/// Stands before what replaces a character. Unicode reserves it for such uses inside a program.
const ESCAPE: char = '\u{10ffff}';

/// The text with each NUL escaped: unchanged, but for the rarest.
pub(super) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\0' => escaped.extend([ESCAPE, '0']),
            ESCAPE => escaped.extend([ESCAPE, ESCAPE]),
            other => escaped.push(other),
        }
    }
    Cow::Owned(escaped)
}

/// Reads [`escaped`] back; `None` for what it never writes.
pub(super) fn unescaped(text: &str) -> Option<String> {
    if !text.contains(ESCAPE) {
        return Some(text.to_owned());
    }
    let mut characters = text.chars();
    let mut plain = String::with_capacity(text.len());
    while let Some(character) = characters.next() {
        plain.push(match character {
            ESCAPE => match characters.next()? {
                '0' => '\0',
                ESCAPE => ESCAPE,
                _ => return None,
            },
            other => other,
        });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_comes_back_and_none_holds_a_nul() {
        for text in ["", "plain", "a\0b", "\0\0", "\u{10ffff}", "\u{10ffff}0", "0\u{10ffff}\0\u{10ffff}"] {
            let stored = escaped(text);
            assert!(!stored.contains('\0'));
            assert_eq!(unescaped(&stored).as_deref(), Some(text));
        }
        assert!(matches!(escaped("plain"), Cow::Borrowed(_)));
        assert_eq!(unescaped("\u{10ffff}x"), None);
        assert_eq!(unescaped("\u{10ffff}"), None);
    }
}
