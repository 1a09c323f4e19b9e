//! Finds the requests in the bytes of one HTTP/1.1 connection.

use std::io::{Error, ErrorKind, Result};

use httparse::Status;

/// One request as a provider got it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// The method, in upper case as sent.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The value of `Idempotency-Key`, `None` where the request has none.
    pub idempotency_key: Option<String>,
    /// The body's bytes, without any transfer coding.
    pub body: Vec<u8>,
}

/// The requests of one connection, and what has not made a whole one yet.
#[derive(Default)]
pub struct Requests {
    pending: Vec<u8>,
}

impl Requests {
    /// Takes the next bytes; gives the requests that they complete.
    ///
    /// # Errors
    ///
    /// `InvalidData` when they are not HTTP/1.1.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Arrival>> {
        self.pending.extend_from_slice(bytes);
        let mut complete = Vec::new();
        while let Some((arrival, length)) = first(&self.pending)? {
            complete.push(arrival);
            self.pending.drain(..length);
        }
        Ok(complete)
    }
}

fn invalid(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(ErrorKind::InvalidData, reason)
}

/// The first whole request in `bytes` and its length there.
fn first(bytes: &[u8]) -> Result<Option<(Arrival, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    let Status::Complete(head) = request.parse(bytes).map_err(invalid)? else { return Ok(None) };
    let header = |name: &str| {
        let found = request.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name));
        found.map(|h| String::from_utf8_lossy(h.value).into_owned())
    };
    let rest = &bytes[head..];
    let body = match (header("transfer-encoding"), header("content-length")) {
        (Some(_), _) => chunked(rest)?,
        (None, Some(length)) => {
            let length: usize = length.trim().parse().map_err(invalid)?;
            rest.get(..length).map(|body| (body.to_vec(), length))
        }
        (None, None) => Some((Vec::new(), 0)),
    };
    let Some((body, length)) = body else { return Ok(None) };
    let arrival = Arrival {
        method: request.method.unwrap_or_default().to_owned(),
        path: request.path.unwrap_or_default().to_owned(),
        idempotency_key: header("idempotency-key"),
        body,
    };
    Ok(Some((arrival, head + length)))
}

/// A chunked body and its length as sent; trailers are not expected of anything here.
fn chunked(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let size = httparse::parse_chunk_size(&bytes[at..]).map_err(|_| invalid("a chunk without a size"))?;
        let Status::Complete((line, size)) = size else { return Ok(None) };
        let start = at + line;
        let end = start + usize::try_from(size).map_err(invalid)?;
        let Some(chunk) = bytes.get(start..end) else { return Ok(None) };
        let Some(ending) = bytes.get(end..end + 2) else { return Ok(None) };
        if ending != b"\r\n" {
            return Err(invalid("a chunk that does not end where its size says"));
        }
        body.extend_from_slice(chunk);
        at = end + 2;
        if size == 0 {
            return Ok(Some((body, at)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &[u8] =
        b"POST /v1/charges?x=1 HTTP/1.1\r\nIdempotency-Key: k\r\nContent-Length: 3\r\n\r\na=1";
    const CHUNKED: &[u8] =
        b"POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n";
    const BARE: &[u8] = b"GET /g HTTP/1.1\r\n\r\n";

    #[test]
    fn any_cut_of_the_stream_gives_the_same_requests() {
        let stream = [PLAIN, CHUNKED, BARE, PLAIN].concat();
        let whole = Requests::default().feed(&stream).expect("HTTP");
        assert_eq!(
            whole.iter().map(|a| a.path.as_str()).collect::<Vec<_>>(),
            ["/v1/charges?x=1", "/c", "/g", "/v1/charges?x=1"]
        );
        assert_eq!(whole[0].idempotency_key.as_deref(), Some("k"));
        assert_eq!((&whole[0].body[..], &whole[1].body[..]), (&b"a=1"[..], &b"abcde"[..]));
        assert_eq!((whole[1].idempotency_key.as_ref(), whole[2].body.len()), (None, 0));
        for cut in 0..stream.len() {
            let mut requests = Requests::default();
            let mut got = requests.feed(&stream[..cut]).expect("HTTP");
            got.extend(requests.feed(&stream[cut..]).expect("HTTP"));
            assert_eq!(got, whole, "cut at byte {cut}");
        }
    }

    #[test]
    fn what_is_not_http_is_refused() {
        assert!(Requests::default().feed(b"\x16\x03\x01\x02\x00").is_err());
        let bad_chunk = b"POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcXX0\r\n\r\n";
        assert!(Requests::default().feed(bad_chunk).is_err());
    }
}
