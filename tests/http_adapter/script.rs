//! A provider that answers by a script, byte by byte, and notes what it was asked.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// What the provider does with one request, once it has read it whole.
#[derive(Clone)]
pub(crate) enum Step {
    /// Writes these bytes and closes.
    Say(String),
    /// Closes without a word.
    Close,
    /// Says nothing and keeps the connection.
    Silence,
}

/// A request as it arrived.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let value = |line: &'_ str| line.split_once(": ").map(|(own, _)| own.eq_ignore_ascii_case(name));
        self.head
            .lines()
            .find(|line| value(line) == Some(true))
            .and_then(|line| Some(line.split_once(": ")?.1))
    }
}

/// The provider. It answers requests in the order of the script, and closes connections after its end.
pub(crate) struct Script {
    authority: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Script {
    pub(crate) async fn start(steps: impl IntoIterator<Item = Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let authority = listener.local_addr().expect("an address").to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let task = tokio::spawn(serve(listener, steps.into_iter().collect(), asked.clone()));
        Self { authority, asked, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.authority)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, steps: Vec<Step>, asked: Arc<Mutex<Vec<Asked>>>) {
    let mut kept = Vec::new();
    let mut steps = steps.into_iter();
    while let Ok((mut stream, _)) = listener.accept().await {
        let Some(request) = read(&mut stream).await else { continue };
        asked.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        match steps.next().unwrap_or(Step::Close) {
            Step::Say(bytes) => {
                let _ = stream.write_all(bytes.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
            Step::Close => {}
            Step::Silence => kept.push(stream),
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let asked = Asked { head: head.to_owned(), body: body.to_owned() };
            let length = asked.header("content-length").map_or(0, |length| length.parse().expect("a length"));
            if asked.body.len() >= length {
                return Some(asked);
            }
        }
        let read = stream.read(&mut buffer).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
    }
}

/// A whole answer.
pub(crate) fn say(status: u16, headers: &[(&str, &str)], body: &str) -> Step {
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    Step::Say(format!(
        "HTTP/1.1 {status} Said\r\n{lines}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    ))
}

/// An answer whose connection ends before its body does.
pub(crate) fn cut(status: u16, body: &str) -> Step {
    let length = body.len() + 1;
    Step::Say(format!(
        "HTTP/1.1 {status} Said\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    ))
}
