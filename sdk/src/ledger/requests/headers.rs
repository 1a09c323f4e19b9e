//! Headers as a store keeps them: for each its name and its value, both behind their length. A value need not be text.
#![cfg_attr(
    not(any(feature = "sqlite", feature = "postgres")),
    allow(dead_code, reason = "for databases only")
)]

type Headers = Vec<(String, Vec<u8>)>;

pub(crate) fn encode(headers: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in headers {
        for part in [name.as_bytes(), value] {
            // A header of 4 GiB is no header.
            out.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
            out.extend_from_slice(part);
        }
    }
    out
}

/// Reads [`encode`] back; `None` for what it never writes.
pub(crate) fn decode(mut bytes: &[u8]) -> Option<Headers> {
    let mut headers = Vec::new();
    while !bytes.is_empty() {
        let name = String::from_utf8(part(&mut bytes)?.to_vec()).ok()?;
        headers.push((name, part(&mut bytes)?.to_vec()));
    }
    Some(headers)
}

fn part<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_at_checked(4)?;
    let length = u32::from_be_bytes(length.try_into().ok()?);
    let (part, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_and_nothing_else_is_read() {
        let headers = vec![("location".to_owned(), b"/x".to_vec()), ("x-odd".to_owned(), vec![0xff, b' '])];
        let bytes = encode(&headers);
        assert_eq!(decode(&bytes), Some(headers));
        assert_eq!(decode(&[]), Some(Vec::new()));
        for cut in (1..bytes.len()).filter(|cut| *cut != 18) {
            assert_eq!(decode(&bytes[..cut]), None, "cut at {cut}");
        }
    }
}
