//! Requests as they go over the wire: no client corrects, pools or repeats them.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// An answer takes no longer than this, or the test fails instead of hanging.
const LIMIT: Duration = Duration::from_secs(60);

/// A key of the grammar.
pub(crate) fn fresh_key() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// A request, with the bytes of each header's value.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    pub(crate) is_chunked: bool,
}

/// An answer, its body whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

pub(crate) fn post(path: impl Into<String>, body: impl Into<Vec<u8>>) -> Request {
    let headers = vec![("x-tenant", b"acme".to_vec()), ("content-type", b"application/json".to_vec())];
    Request { method: "POST", path: path.into(), headers, body: body.into(), is_chunked: false }
}

impl Request {
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.with("Idempotency-Key", key)
    }

    pub(crate) fn method(mut self, method: &'static str) -> Self {
        self.method = method;
        self
    }

    pub(crate) fn chunked(mut self) -> Self {
        self.is_chunked = true;
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes =
            format!("{} {} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n", self.method, self.path)
                .into_bytes();
        for (name, value) in &self.headers {
            bytes.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
        if self.is_chunked {
            bytes.extend(b"transfer-encoding: chunked\r\n\r\n");
            for chunk in self.body.chunks(7) {
                bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
                bytes.extend([chunk, b"\r\n"].concat());
            }
            bytes.extend(b"0\r\n\r\n");
        } else {
            bytes.extend(format!("content-length: {}\r\n\r\n", self.body.len()).into_bytes());
            bytes.extend(&self.body);
        }
        bytes
    }

    /// Sends it, and leaves the connection to the caller.
    pub(crate) async fn start(&self, to: SocketAddr) -> TcpStream {
        let mut stream = TcpStream::connect(to).await.expect("the server listens");
        // A server that has answered before it has read all resets the connection.
        drop(stream.write_all(&self.bytes()).await);
        stream
    }

    pub(crate) async fn send(&self, to: SocketAddr) -> Answer {
        let answer = tokio::time::timeout(LIMIT, Answer::read(self.start(to).await)).await;
        answer.expect("an answer in time").expect("a whole answer")
    }
}

impl Answer {
    /// `None` where the connection ended before the answer did.
    pub(crate) async fn read(mut stream: TcpStream) -> Option<Self> {
        let mut bytes = Vec::new();
        // After an early answer the rest of the connection may be reset.
        drop(stream.read_to_end(&mut bytes).await);
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut response = httparse::Response::new(&mut headers);
        let Ok(httparse::Status::Complete(head)) = response.parse(&bytes) else { return None };
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let headers = response.headers.iter();
        let headers: Vec<_> =
            headers.map(|header| (header.name.to_lowercase(), text(header.value))).collect();
        let mut answer = Self { status: response.code?, headers, body: bytes[head..].to_vec() };
        if answer.header("transfer-encoding") == Some("chunked") {
            answer.body = unchunked(&answer.body)?;
        }
        Some(answer)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.header("openwop-idempotent-replay") == Some("true")
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a text")
    }

    /// The code of a refusal, whose body has the seed's shape and nothing else.
    pub(crate) fn code(&self) -> String {
        let body: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no refusal: {self:?}"));
        assert!(body.keys().all(|name| ["error", "message"].contains(&name.as_str())), "{body:?}");
        body["error"].as_str().expect("a code").to_owned()
    }

    #[track_caller]
    pub(crate) fn is_refused(&self, status: u16, code: &str) {
        assert_eq!((self.status, self.code().as_str()), (status, code), "{}", self.text());
        assert!(!self.is_replay());
    }
}

fn unchunked(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
        let length = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).ok()?, 16).ok()?;
        let rest = bytes.get(end + 2..)?;
        if length == 0 {
            return Some(whole);
        }
        whole.extend_from_slice(rest.get(..length)?);
        bytes = rest.get(length + 2..)?;
    }
}
