//! Canonical JSON of a text: no white space, names sorted, each string written in one way.
//!
//! Numbers stay as they are written: read as floats, two amounts that differ in the last digit of many could become one.
//! Equal names of one object stay, in their order: which of them counts is the handler's matter.

/// How deep arrays and objects may be nested; what is deeper is compared byte by byte.
const DEPTH_MAX: usize = 128;

/// The canonical text; `None` for what is no JSON, or is nested too deep.
pub(super) fn canonical(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    let mut reader = Reader { text, at: 0 };
    let mut out = Vec::with_capacity(text.len());
    reader.value(&mut out, 0)?;
    reader.space();
    (reader.at == text.len()).then_some(out)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, expected: u8) -> Option<()> {
        (self.peek()? == expected).then(|| self.at += 1)
    }

    /// The next byte that is no space, taken if it is `expected`.
    fn is_next(&mut self, expected: u8) -> bool {
        self.space();
        self.take(expected).is_some()
    }

    fn value(&mut self, out: &mut Vec<u8>, depth: usize) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        self.space();
        match self.peek()? {
            b'{' => self.object(out, depth),
            b'[' => self.array(out, depth),
            b'"' => write_string(out, &self.string()?),
            b't' => self.word("true", out),
            b'f' => self.word("false", out),
            b'n' => self.word("null", out),
            _ => self.number(out),
        }
    }

    fn word(&mut self, word: &str, out: &mut Vec<u8>) -> Option<()> {
        self.text[self.at..].starts_with(word).then(|| {
            self.at += word.len();
            out.extend_from_slice(word.as_bytes());
        })
    }

    fn array(&mut self, out: &mut Vec<u8>, depth: usize) -> Option<()> {
        self.take(b'[')?;
        out.push(b'[');
        if !self.is_next(b']') {
            loop {
                self.value(out, depth + 1)?;
                if self.is_next(b']') {
                    break;
                }
                self.take(b',')?;
                out.push(b',');
            }
        }
        out.push(b']');
        Some(())
    }

    fn object(&mut self, out: &mut Vec<u8>, depth: usize) -> Option<()> {
        self.take(b'{')?;
        let mut entries: Vec<(String, Vec<u8>)> = Vec::new();
        if !self.is_next(b'}') {
            loop {
                self.space();
                let name = self.string()?;
                self.is_next(b':').then_some(())?;
                let mut value = Vec::new();
                self.value(&mut value, depth + 1)?;
                entries.push((name, value));
                if self.is_next(b'}') {
                    break;
                }
                self.take(b',')?;
            }
        }
        // Stable: equal names keep their order.
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        out.push(b'{');
        for (at, (name, value)) in entries.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write_string(out, name)?;
            out.push(b':');
            out.extend_from_slice(value);
        }
        out.push(b'}');
        Some(())
    }

    fn number(&mut self, out: &mut Vec<u8>) -> Option<()> {
        let start = self.at;
        let _ = self.take(b'-');
        if self.take(b'0').is_none() {
            self.digits()?;
        }
        if self.take(b'.').is_some() {
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        out.extend_from_slice(&self.text.as_bytes()[start..self.at]);
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    /// What a string says.
    fn string(&mut self) -> Option<String> {
        self.take(b'"')?;
        let mut said = String::new();
        loop {
            let start = self.at;
            while !matches!(self.peek()?, b'"' | b'\\' | 0..=0x1f) {
                self.at += 1;
            }
            // A quote, a backslash or a control character never lies within a character of several bytes.
            said.push_str(self.text.get(start..self.at)?);
            let end = self.peek()?;
            self.at += 1;
            match end {
                b'"' => return Some(said),
                b'\\' => said.push(self.escape()?),
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        let kind = self.peek()?;
        self.at += 1;
        Some(match kind {
            b'"' | b'\\' | b'/' => char::from(kind),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => self.unicode()?,
            _ => return None,
        })
    }

    fn unicode(&mut self) -> Option<char> {
        let unit = self.unit()?;
        if !(0xd800..0xdc00).contains(&unit) {
            // A low surrogate alone is no character.
            return char::from_u32(unit);
        }
        self.take(b'\\')?;
        self.take(b'u')?;
        let low = self.unit().filter(|low| (0xdc00..0xe000).contains(low))?;
        char::from_u32(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00))
    }

    fn unit(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
    }
}

fn write_string(out: &mut Vec<u8>, text: &str) -> Option<()> {
    serde_json::to_writer(out, text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> Option<String> {
        canonical(json.as_bytes()).map(|bytes| String::from_utf8(bytes).expect("UTF-8"))
    }

    #[test]
    fn order_space_and_escapes_do_not_matter() {
        let one = text(" { \"b\" : [1, 2 ,\t{}],\r\n\"a\":\"\\u0041\\/\\ud83d\\ude00\" } ");
        assert_eq!(one.as_deref(), Some("{\"a\":\"A/\u{1f600}\",\"b\":[1,2,{}]}"));
        assert_eq!(one, text("{\"a\":\"A/\u{1f600}\",\"b\":[1,2,{}]}"));
        assert_eq!(text("\"\\u0000\\n\""), Some("\"\\u0000\\n\"".to_owned()));
    }

    #[test]
    fn what_differs_stays_different() {
        let pairs = [
            ("18446744073709551617", "18446744073709551618"),
            ("1", "\"1\""),
            ("1", "1.0"),
            ("{\"a\":1,\"a\":2}", "{\"a\":2,\"a\":1}"),
            ("{\"a\":null}", "{}"),
            ("[1,2]", "[2,1]"),
            ("\"a\"", "\"A\""),
        ];
        for (one, other) in pairs {
            assert!(text(one).is_some() && text(one) != text(other), "{one} and {other}");
        }
    }

    #[test]
    fn what_is_no_json_is_none() {
        let not = [
            "",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "01",
            "1.",
            ".5",
            "-",
            "+1",
            "NaN",
            "tru",
            "1 2",
            "\"\\x\"",
            "'a'",
        ];
        for odd in not {
            assert_eq!(text(odd), None, "{odd}");
        }
        for odd in [
            "\"\\ud800\"",
            "\"\\udc00\"",
            "\"\\ud800\\u0041\"",
            "\"\\u12\"",
            "\"\\u+123\"",
            "\"a\nb\"",
            "\"a",
        ] {
            assert_eq!(text(odd), None, "{odd}");
        }
        assert_eq!(canonical(b"\"\xff\""), None);
        assert!(canonical("[".repeat(100_000).as_bytes()).is_none(), "and the stack is not used up");
        let deep = |depth| [("[".repeat(depth)), "]".repeat(depth)].concat();
        assert!(text(&deep(100)).is_some() && text(&deep(200)).is_none());
    }
}
