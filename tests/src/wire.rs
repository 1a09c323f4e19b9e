//! HTTP over a plain socket, for tests of servers: what is sent is what was written, and what came is told as it came.

use std::io::{Error, ErrorKind, Result};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A request to be sent as it is, but for `Host`, `Connection: close` and the body's length.
#[derive(Debug, Clone)]
pub struct Request {
    head: String,
    body: Vec<u8>,
}

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Names in lower case and values, in order.
    pub headers: Vec<(String, String)>,
    /// The body, without the frames it came in.
    pub body: Vec<u8>,
    /// Whether the body came to the end that its frames promise.
    pub is_whole: bool,
}

impl Request {
    /// A request without headers and body.
    #[must_use]
    pub fn new(method: &str, path: &str) -> Self {
        Self { head: format!("{method} {path} HTTP/1.1\r\n"), body: Vec::new() }
    }

    /// A `GET`.
    #[must_use]
    pub fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    /// A `POST` of this JSON.
    #[must_use]
    pub fn post(path: &str, json: impl Into<Vec<u8>>) -> Self {
        Self::new("POST", path).header("Content-Type", "application/json").body(json)
    }

    /// With one more header line.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.head.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    /// With this key as the bearer's.
    #[must_use]
    pub fn bearer(self, key: &str) -> Self {
        self.header("Authorization", &format!("Bearer {key}"))
    }

    /// With this body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sends it to `host:port` and reads until the server closes.
    ///
    /// # Errors
    /// The connection broke before there was a whole head.
    pub async fn send(&self, authority: &str) -> Result<Answer> {
        let length = self.body.len();
        let framed = format!("{}Content-Length: {length}\r\n", self.head);
        let head = if length > 0 || self.head.starts_with("POST") { &framed } else { &self.head };
        let head = format!("{head}Host: {authority}\r\nConnection: close\r\n\r\n");
        raw(authority, [head.as_bytes(), &self.body].concat()).await
    }
}

/// Sends these bytes, whatever they are, and reads until the server closes.
///
/// # Errors
/// The connection broke before there was a whole head.
pub async fn raw(authority: &str, bytes: Vec<u8>) -> Result<Answer> {
    let (mut read, mut write) = TcpStream::connect(authority).await?.into_split();
    // A server may answer before it has read everything: sending goes on beside.
    let sending = tokio::spawn(async move { write.write_all(&bytes).await.map(|()| write) });
    let mut answer = Vec::new();
    // What came before the connection broke is still an answer.
    let broken = read.read_to_end(&mut answer).await.is_err();
    sending.abort();
    let mut answer = parse(&answer).ok_or_else(|| Error::new(ErrorKind::InvalidData, "no HTTP answer"))?;
    answer.is_whole &= !broken;
    Ok(answer)
}

fn parse(bytes: &[u8]) -> Option<Answer> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(head) = response.parse(bytes).ok()? else { return None };
    let status = response.code?;
    let headers: Vec<_> = response
        .headers
        .iter()
        .map(|header| (header.name.to_lowercase(), String::from_utf8_lossy(header.value).into_owned()))
        .collect();
    let find = |name: &str| headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone());
    let body = &bytes[head..];
    let (body, is_whole) = match (find("transfer-encoding"), find("content-length")) {
        (Some(_), _) => unchunked(body),
        (None, Some(length)) => (body.to_vec(), length.parse() == Ok(body.len())),
        (None, None) => (body.to_vec(), true),
    };
    Some(Answer { status, headers, body, is_whole })
}

/// The content of chunks, and whether the last one came.
fn unchunked(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") else { return (body, false) };
        let size =
            std::str::from_utf8(&rest[..end]).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
        let (Some(size), Some(chunk)) = (size, rest.get(end + 2..)) else { return (body, false) };
        if size == 0 {
            return (body, true);
        }
        let Some(after) = chunk.get(size + 2..) else { return (body, false) };
        body.extend_from_slice(&chunk[..size]);
        rest = after;
    }
}

impl Answer {
    /// A header's value; the first, if there are several.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When it is none.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| {
            panic!("no JSON ({error}) in the answer {}: {}", self.status, String::from_utf8_lossy(&self.body))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_taken_out_of_its_frames() {
        let answer = parse(b"HTTP/1.1 200 OK\r\nX-A: b\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n");
        let answer = answer.expect("an answer");
        assert_eq!((answer.status, answer.header("x-a"), answer.is_whole), (200, Some("b"), true));
        assert_eq!(answer.body, b"abc0123456789");
        let cut = parse(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\na\r\n01")
            .expect("a head");
        assert_eq!((cut.body.as_slice(), cut.is_whole), (&b"abc"[..], false));
        let short = parse(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc").expect("a head");
        assert!(!short.is_whole);
        assert!(parse(b"HTTP/1.1 200 OK\r\nX").is_none());
    }
}
