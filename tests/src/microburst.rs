//! The fault proxy in front of a real provider, one for each test: its own rules, its own port, its own count.

use std::fs::File;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::recorder::{Arrival, Recorder};
use crate::{http, wait};

const READY_WITHIN: Duration = Duration::from_secs(30);

/// A microburst process: requests go to [`url`](Self::url), through the rules, past a recorder, to the provider.
/// Dropping it ends the process; when the test has failed, its log goes to standard error.
pub struct Microburst {
    child: Child,
    port: u16,
    log: NamedTempFile,
    recorder: Recorder,
}

impl Microburst {
    /// Starts the proxy in front of `provider` (`http://host:port`) and returns once it answers. It has no rules yet:
    /// everything passes.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub async fn in_front_of(executable: &Path, provider: &str) -> Self {
        let recorder = Recorder::in_front_of(provider);
        // Another process may take the port between the asking and the start.
        for _ in 0..3 {
            let (mut child, port, log) = spawn(executable, &recorder.url());
            if is_ready(&mut child, port, &recorder.url()).await {
                return Self { child, port, log, recorder };
            }
            end(&mut child);
            show(&log);
        }
        panic!("microburst did not start; its log is above");
    }

    /// Where to send requests: `http://localhost:port`, and not the address: a host with a dot in it makes the proxy
    /// read 450 descriptions of cloud services at its first request, which takes four seconds.
    pub fn url(&self) -> String {
        format!("http://localhost:{}", self.port)
    }

    /// Replaces the rules. A rule fires on requests that it matches, at most `times` times, then they pass:
    ///
    /// - `{"times": 2, "response": {"abort_bytes": 0}}`: the provider acts, the body of its answer is lost;
    /// - `{"times": 1, "reset": true}`: the connection breaks and the provider is not called;
    /// - `{"times": 1, "error": {"code": "ServiceUnavailable", "status": 503}}`: a refusal, the provider is not called.
    ///
    /// # Panics
    ///
    /// When the proxy refuses them.
    pub async fn rules(&self, rules: Value) {
        let answer = self.control("POST", "rules", &rules.to_string()).await;
        assert!(answer.is_array(), "microburst refused the rules: {answer}");
    }

    /// The faults so far, oldest first, as the proxy names them: `response:abort`, `reset`, …
    pub async fn fired(&self) -> Vec<String> {
        let events = self.control("GET", "fired?limit=10000", "").await;
        let events = events.as_array().cloned().unwrap_or_default();
        events.iter().filter_map(|e| e["action"].as_str().map(str::to_owned)).collect()
    }

    /// The requests that reached the provider so far. What a fault kept from it is not among them.
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.recorder.arrivals()
    }

    async fn control(&self, method: &str, path: &str, body: &str) -> Value {
        let path = format!("/_microburst/{path}");
        let (status, answer) =
            http::request(&authority(self.port), method, &path, body).await.expect("microburst answers");
        assert_eq!(status, 200, "microburst: {}", String::from_utf8_lossy(&answer));
        serde_json::from_slice(&answer).expect("microburst answers JSON")
    }
}

impl Drop for Microburst {
    fn drop(&mut self) {
        end(&mut self.child);
        if std::thread::panicking() {
            show(&self.log);
        }
    }
}

fn authority(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

fn spawn(executable: &Path, upstream: &str) -> (Child, u16, NamedTempFile) {
    let address = TcpListener::bind(("127.0.0.1", 0)).and_then(|l| l.local_addr()).expect("a loopback port");
    let log = NamedTempFile::new().expect("a file for the log");
    let output = || File::options().append(true).open(log.path()).expect("the log that was just made");
    let child = Command::new(executable)
        .args(["--upstream", upstream, "--host", "127.0.0.1", "--port", &address.port().to_string()])
        .arg("--no-resign")
        .stdin(Stdio::null())
        .stdout(output())
        .stderr(output())
        .spawn()
        .expect("microburst's executable runs");
    (child, address.port(), log)
}

/// Whether the proxy that answers at `port` is this one: it names its upstream, which no other has.
async fn is_ready(child: &mut Child, port: u16, upstream: &str) -> bool {
    let answered = wait::for_value(READY_WITHIN, async || {
        if !matches!(child.try_wait(), Ok(None)) {
            return Some(false);
        }
        let (_, answer) = http::request(&authority(port), "GET", "/_microburst/health", "").await.ok()?;
        let health = serde_json::from_slice(&answer).unwrap_or(json!(null));
        Some(health["upstream"] == upstream)
    });
    answered.await.unwrap_or(false)
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn show(log: &NamedTempFile) {
    eprintln!("--- microburst\n{}", std::fs::read_to_string(log.path()).unwrap_or_default());
}
