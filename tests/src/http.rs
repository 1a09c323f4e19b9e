//! One HTTP request to a server on this machine, for the helpers' own use: no client that pools, retries or reads
//! proxy settings stands between a test and what it asks.

use std::io::{Error, ErrorKind, Result};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Status and body of the answer. `authority` is `host:port`. The connection is closed afterwards.
pub(crate) async fn request(authority: &str, method: &str, path: &str, body: &str) -> Result<(u16, Vec<u8>)> {
    let mut stream = TcpStream::connect(authority).await?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    parse(&answer).ok_or_else(|| Error::new(ErrorKind::InvalidData, "not an HTTP answer"))
}

fn parse(answer: &[u8]) -> Option<(u16, Vec<u8>)> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(head) = response.parse(answer).ok()? else { return None };
    Some((response.code?, answer[head..].to_vec()))
}
