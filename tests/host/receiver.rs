//! A receiver of messages: it counts what arrives, and loses answers by script.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// What arrived: the idempotency key of each request, in order.
pub(crate) struct Receiver {
    address: String,
    keys: Arc<Mutex<Vec<Option<String>>>>,
    serving: JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Receiver {
    /// Cuts the connection of the first `cut` requests after they have arrived, and answers the others.
    pub(crate) async fn start(cut: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let keys = Arc::new(Mutex::new(Vec::new()));
        let arrived = Arc::clone(&keys);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&arrived), cut));
            }
        });
        Self { address, keys, serving }
    }

    /// An address that no other test uses.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/inbox?for={}", self.address, uuid::Uuid::new_v4())
    }

    pub(crate) fn keys(&self) -> Vec<Option<String>> {
        self.keys.lock().expect("not poisoned").clone()
    }
}

async fn answer(mut stream: TcpStream, arrived: Arc<Mutex<Vec<Option<String>>>>, cut: usize) {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    let key = loop {
        let Ok(read @ 1..) = stream.read(&mut piece).await else { return };
        bytes.extend_from_slice(&piece[..read]);
        if let Some(key) = whole(&bytes) {
            break key;
        }
    };
    let number = {
        let mut arrived = arrived.lock().expect("not poisoned");
        arrived.push(key);
        arrived.len()
    };
    if number > cut {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
        // A client that went away has no use for the answer.
        drop(stream.write_all(answer).await);
    }
}

/// The idempotency key of a request that has arrived whole.
fn whole(bytes: &[u8]) -> Option<Option<String>> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(head) = request.parse(bytes).expect("an HTTP request") else {
        return None;
    };
    let header = |name: &str| {
        let found = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        found.map(|header| String::from_utf8_lossy(header.value).into_owned())
    };
    let length: usize = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    (bytes.len() >= head + length).then(|| header("idempotency-key"))
}
