//! Clients that keep their connection and send one request after the other.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

pub(crate) const CLIENTS: usize = 16;
const EACH: usize = 250;

/// What one application did.
pub(crate) struct Measured {
    pub(crate) per_second: f64,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    pub(crate) replays_per_second: f64,
    /// How many of the second answers said that they were replays.
    pub(crate) marked: usize,
    pub(crate) requests: usize,
}

/// Sends every request, then every one again.
pub(crate) async fn measure(at: SocketAddr, cookie: &str) -> Measured {
    let requests: Vec<Vec<String>> = (0..CLIENTS)
        .map(|_| (0..EACH).map(|_| request(&uuid::Uuid::new_v4().to_string(), cookie)).collect())
        .collect();
    let (took, mut each, _) = send(at, requests.clone()).await;
    let (again, _, marked) = send(at, requests).await;
    each.sort_unstable();
    let count = (CLIENTS * EACH) as f64;
    Measured {
        per_second: count / took.as_secs_f64(),
        p50: each[each.len() / 2],
        p99: each[each.len() * 99 / 100],
        replays_per_second: count / again.as_secs_f64(),
        marked,
        requests: CLIENTS * EACH,
    }
}

fn request(key: &str, cookie: &str) -> String {
    let body = format!("{{\"key\":\"{key}\",\"note\":\"{}\"}}", "y".repeat(150));
    format!(
        "POST /runs HTTP/1.1\r\nhost: bench\r\n{cookie}content-type: application/json\r\nidempotency-key: {key}\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

async fn send(at: SocketAddr, requests: Vec<Vec<String>>) -> (Duration, Vec<Duration>, usize) {
    let began = Instant::now();
    let mut clients = JoinSet::new();
    for requests in requests {
        clients.spawn(async move {
            let mut stream = TcpStream::connect(at).await.expect("the server listens");
            stream.set_nodelay(true).expect("a socket");
            let (mut each, mut marked) = (Vec::new(), 0);
            for request in requests {
                let sent = Instant::now();
                let answer = exchange(&mut stream, &request).await;
                each.push(sent.elapsed());
                assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
                marked += usize::from(
                    answer.contains("idempotent-replay: true")
                        || answer.contains("idempotency-replayed: true"),
                );
            }
            (each, marked)
        });
    }
    let done = clients.join_all().await;
    let marked = done.iter().map(|(_, marked)| marked).sum();
    (began.elapsed(), done.into_iter().flat_map(|(each, _)| each).collect(), marked)
}

/// One request and its answer, on a connection that stays.
async fn exchange(stream: &mut TcpStream, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.expect("it is sent");
    let mut answer = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).await.expect("an answer");
        assert!(read > 0, "the connection ended");
        answer.extend_from_slice(&buffer[..read]);
        let text = std::str::from_utf8(&answer).expect("text");
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if body.len() >= length.unwrap_or(0) {
            return text.to_owned();
        }
    }
}

/// One request on a connection of its own; the head of the answer.
pub(crate) async fn once(at: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(at).await.expect("the server listens");
    exchange(&mut stream, request).await
}
