//! Durations as options write them: `"250ms"`, `"10s"`, `"5m"`, `"2h"`, `"1d"`.

use proc_macro2::Ident;
use syn::LitStr;
use syn::parse::ParseStream;

use crate::option::assigned;

/// The longest duration that an option takes: beyond it, databases' timestamps are the limit, and a typing error the cause.
const MS_MAX: u64 = 365 * 24 * 60 * 60 * 1000;

/// A duration with the token that says it.
#[derive(Clone)]
pub(crate) struct Millis {
    pub(crate) ms: u64,
    pub(crate) literal: LitStr,
}

/// Whether zero makes sense for an option.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zero {
    Allowed,
    Refused,
}

/// Reads `= "10s"`.
pub(crate) fn read(name: &Ident, example: &str, zero: Zero, input: ParseStream<'_>) -> syn::Result<Millis> {
    let literal: LitStr = assigned(name, &format!("\"{example}\""), input)?;
    let text = literal.value();
    let refuse = |why: String| Err(syn::Error::new(literal.span(), why));
    let Some(ms) = parse_ms(&text) else {
        return refuse(format!(
            "`{text}` is not a duration: write a whole number and a unit, as in \"250ms\", \"10s\", \"5m\", \"2h\" or \"1d\""
        ));
    };
    match ms {
        0 if zero == Zero::Refused => {
            refuse(format!("`{name}` must be longer than zero: write a duration such as \"{example}\""))
        }
        ms if ms > MS_MAX => refuse(format!("`{name}` is at most \"365d\"")),
        ms => Ok(Millis { ms, literal }),
    }
}

/// Whole number and unit to milliseconds; saturating, so that a number of any length is a duration that is too long.
fn parse_ms(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    if number.is_empty() {
        return None;
    }
    Some(number.parse().unwrap_or(u64::MAX).saturating_mul(unit_ms))
}

#[cfg(test)]
mod tests {
    use super::parse_ms;

    #[test]
    fn reads_number_and_unit() {
        assert_eq!(parse_ms("250ms"), Some(250));
        assert_eq!(parse_ms("10s"), Some(10_000));
        assert_eq!(parse_ms("5m"), Some(300_000));
        assert_eq!(parse_ms("2h"), Some(7_200_000));
        assert_eq!(parse_ms("1d"), Some(86_400_000));
        assert_eq!(parse_ms("0s"), Some(0));
        assert_eq!(parse_ms("99999999999999999999d"), Some(u64::MAX));
    }

    #[test]
    fn refuses_anything_else() {
        for text in ["", "10", "s", "10 s", " 10s", "1.5s", "-1s", "+1s", "1m30s", "10S", "10sec", "٣s"] {
            assert_eq!(parse_ms(text), None, "{text:?}");
        }
    }
}
