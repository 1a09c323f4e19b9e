//! A relay in front of a provider that notes every request which passes, and changes no byte.
//!
//! It stands behind the fault proxy, so what it notes is what the provider was really asked, whatever happened to the
//! answer. It runs on threads of its own: a test that drops its runtime, to crash what it tests, keeps its witness.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

mod requests;

pub use requests::{Arrival, Requests};

/// The relay. Dropping it closes its connections and stops it.
pub struct Recorder {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    upstream: String,
    stopped: AtomicBool,
    arrivals: Mutex<Vec<Arrival>>,
    open: Mutex<Vec<TcpStream>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder {
    /// Starts the relay on a loopback port of the kernel's choice, in front of `upstream` (`http://host:port`).
    ///
    /// # Panics
    ///
    /// When `upstream` is not such a URL, or no port can be had.
    pub fn in_front_of(upstream: &str) -> Self {
        let authority = upstream.strip_prefix("http://").expect("an upstream is http://host:port");
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a loopback port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared {
            upstream: authority.trim_end_matches('/').to_owned(),
            stopped: AtomicBool::new(false),
            arrivals: Mutex::default(),
            open: Mutex::default(),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &accepting));
        Self { address, shared }
    }

    /// Where to send requests: `http://127.0.0.1:port`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every whole request that reached the relay so far, in the order of their last bytes. A request is noted before
    /// the provider gets its last byte: once there is an answer, the request is in here.
    pub fn arrivals(&self) -> Vec<Arrival> {
        lock(&self.shared.arrivals).clone()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address); // wakes the accepting thread
        for stream in lock(&self.shared.open).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming().flatten() {
        if shared.stopped.load(Ordering::SeqCst) {
            return;
        }
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            // A refused or broken connection ends as one for the client too: the client is dropped with it.
            let _ = relay(client, &shared);
        });
    }
}

fn relay(mut client: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut provider = TcpStream::connect(&shared.upstream)?;
    for stream in [&client, &provider] {
        stream.set_nodelay(true)?;
        lock(&shared.open).push(stream.try_clone()?);
    }
    let (mut answers, mut back) = (provider.try_clone()?, client.try_clone()?);
    thread::spawn(move || {
        let _ = std::io::copy(&mut answers, &mut back);
        let _ = back.shutdown(Shutdown::Both);
    });
    let forwarded = forward(&mut client, &mut provider, shared);
    let _ = provider.shutdown(Shutdown::Write);
    forwarded
}

fn forward(client: &mut TcpStream, provider: &mut TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut requests = Requests::default();
    let mut chunk = [0; 16 * 1024];
    loop {
        let read = client.read(&mut chunk)?;
        if read == 0 {
            return Ok(());
        }
        let arrived = requests.feed(&chunk[..read])?;
        lock(&shared.arrivals).extend(arrived);
        provider.write_all(&chunk[..read])?;
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Answers each connection's first request, and says what bytes it got.
    fn provider() -> (String, thread::JoinHandle<Vec<u8>>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let serving = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut got = Vec::new();
            while !got.ends_with(b"amount=5") {
                let mut chunk = [0; 256];
                let read = stream.read(&mut chunk).expect("bytes");
                got.extend_from_slice(&chunk[..read]);
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").expect("an answer");
            got
        });
        (url, serving)
    }

    #[test]
    fn bytes_pass_untouched_and_are_noted() {
        let (url, serving) = provider();
        let recorder = Recorder::in_front_of(&url);
        let sent = b"POST /v1/refunds HTTP/1.1\r\nX-Odd:  two  spaces\r\nidempotency-KEY: k1\r\ncontent-length: 8\r\n\r\namount=5";
        let mut stream = TcpStream::connect(recorder.address).expect("the relay");
        stream.write_all(sent).expect("sent");
        let mut answer = [0; 40];
        stream.read_exact(&mut answer).expect("an answer");
        assert!(answer.ends_with(b"\r\n\r\nok"));
        assert_eq!(serving.join().expect("served"), sent);
        let expected = Arrival {
            method: "POST".into(),
            path: "/v1/refunds".into(),
            idempotency_key: Some("k1".into()),
            body: b"amount=5".to_vec(),
        };
        assert_eq!(recorder.arrivals(), [expected]);
    }

    #[test]
    fn a_provider_that_is_not_there_is_a_closed_connection() {
        let unused = TcpListener::bind(("127.0.0.1", 0)).and_then(|l| l.local_addr()).expect("a port");
        let recorder = Recorder::in_front_of(&format!("http://{unused}"));
        let mut stream = TcpStream::connect(recorder.address).expect("the relay");
        assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0);
        assert!(recorder.arrivals().is_empty());
    }

    #[test]
    fn dropping_it_closes_its_connections() {
        let (url, _serving) = provider();
        let recorder = Recorder::in_front_of(&url);
        let mut stream = TcpStream::connect(recorder.address).expect("the relay");
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("sent");
        let deadline = Instant::now() + Duration::from_secs(30);
        while recorder.arrivals().is_empty() {
            assert!(Instant::now() < deadline, "the request did not arrive");
            thread::yield_now();
        }
        drop(recorder);
        assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0);
    }
}
