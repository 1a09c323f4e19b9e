//! What an operator reads beside an effect's hash: the key's fields, with most of each text left out.

use std::fmt::Write as _;

use super::canonical::Tag;

/// The longest readable identity, in characters.
const LENGTH_MAX: usize = 200;

/// How many entries of a list are shown.
const ENTRIES_MAX: usize = 3;

/// Renders `name=value` for an encoded value. Numbers are shown whole, texts by their last characters: enough to tell one
/// order from the next, too little to tell who placed it.
pub(super) fn field(name: &str, encoded: &[u8], out: &mut String) {
    if !out.is_empty() {
        out.push(' ');
    }
    out.push_str(name);
    out.push('=');
    value(encoded, out);
    if out.len() > LENGTH_MAX && out.chars().count() > LENGTH_MAX {
        *out = out.chars().take(LENGTH_MAX - 1).collect();
        out.push('…');
    }
}

/// Renders the first value of `bytes`; what comes behind it is returned.
fn value<'a>(bytes: &'a [u8], out: &mut String) -> &'a [u8] {
    let Some((tag, content, rest)) = split(bytes) else {
        out.push('?');
        return &[];
    };
    match tag {
        _ if tag == Tag::None as u8 => out.push_str("none"),
        _ if tag == Tag::Unit as u8 => out.push_str("()"),
        _ if tag == Tag::Bool as u8 => out.push_str(if content == [0] { "false" } else { "true" }),
        _ if tag == Tag::Some as u8 => drop(value(content, out)),
        _ if tag == Tag::Text as u8 || tag == Tag::Char as u8 => text(content, out),
        _ if tag == Tag::Uuid as u8 => uuid(content, out),
        _ if (Tag::U8 as u8..=Tag::Usize as u8).contains(&tag) => number(content, false, out),
        _ if (Tag::I8 as u8..=Tag::Isize as u8).contains(&tag) => number(content, true, out),
        _ if tag == Tag::Variant as u8 => variant(content, out),
        _ if tag == Tag::List as u8 || tag == Tag::Tuple as u8 || tag == Tag::Set as u8 => {
            entries(content, out)
        }
        _ => out.push_str(&format!("({} bytes)", content.len())),
    }
    rest
}

/// The tag, the content and what follows.
fn split(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    let (content, rest) = sized(rest)?;
    Some((*tag, content, rest))
}

/// A length of 8 bytes, so many bytes, and what follows.
fn sized(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    rest.split_at_checked(usize::try_from(u64::from_be_bytes(*length)).ok()?)
}

/// The last characters, at most half of them.
fn text(content: &[u8], out: &mut String) {
    let text = String::from_utf8_lossy(content);
    let length = text.chars().count();
    let shown = (length / 2).min(4);
    out.push('…');
    // Whatever would break a line or hide another character is not shown.
    out.extend(text.chars().skip(length - shown).map(|c| if c.is_control() { '?' } else { c }));
}

fn uuid(content: &[u8], out: &mut String) {
    out.push('…');
    out.extend(content.iter().skip(content.len().saturating_sub(2)).map(|byte| format!("{byte:02x}")));
}

fn number(content: &[u8], is_signed: bool, out: &mut String) {
    let negative = is_signed && content.first().is_some_and(|byte| byte & 0x80 != 0);
    let mut wide = [if negative { 0xff } else { 0 }; 16];
    let start = wide.len().saturating_sub(content.len());
    wide[start..].copy_from_slice(&content[content.len().saturating_sub(16)..]);
    // Writing to a String cannot fail.
    let _ = if is_signed {
        write!(out, "{}", i128::from_be_bytes(wide))
    } else {
        write!(out, "{}", u128::from_be_bytes(wide))
    };
}

/// The variant's name, which the program chose, and its value.
fn variant(content: &[u8], out: &mut String) {
    let Some((name, rest)) = sized(content) else { return out.push('?') };
    out.push_str(&String::from_utf8_lossy(name));
    if rest.first() != Some(&(Tag::Unit as u8)) {
        out.push('(');
        value(rest, out);
        out.push(')');
    }
}

fn entries(content: &[u8], out: &mut String) {
    out.push('[');
    let mut rest = content;
    for shown in 0.. {
        if rest.is_empty() {
            break;
        }
        if shown > 0 {
            out.push_str(", ");
        }
        if shown == ENTRIES_MAX {
            out.push('…');
            break;
        }
        rest = value(rest, out);
    }
    out.push(']');
}

#[cfg(test)]
mod tests {
    use crate::identity::KeyFields;

    fn readable(key: &KeyFields) -> String {
        key.readable_at(1)
    }

    #[test]
    fn f58_numbers_are_whole_and_texts_are_not() {
        let key = KeyFields::new()
            .field("order", &"order-1042")
            .field("line", &7_u32)
            .field("delta", &-3_i64)
            .field("huge", &u128::MAX)
            .field("gift", &true)
            .field("coupon", &None::<u8>)
            .field("email", &"ann@example.org")
            .field("pin", &"7")
            .field("lines", &vec![1_u8 as u16, 2, 3, 4]);
        assert_eq!(
            readable(&key),
            format!(
                "order=…1042 line=7 delta=-3 huge={} gift=true coupon=none email=….org pin=… lines=[1, 2, 3, …]",
                u128::MAX
            )
        );
    }

    #[test]
    fn it_is_one_short_line_whatever_the_key_is() {
        let key = KeyFields::new().field("text", &"a\nb\u{7}\n\n").field("long", &vec!["x".repeat(50); 90]);
        let text = readable(&key);
        assert!(!text.contains(char::is_control) && text.chars().count() <= 200, "{text}");
    }
}
