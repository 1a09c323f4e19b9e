//! The host's process, and what a caller sends it.

use std::time::Duration;

use effectual_tests::{
    database::{PostgresDatabase, SqliteFile},
    program::{Program, Running},
    servers,
    wait::until,
    wire::{Answer, Request},
};
use serde_json::{Value, json};

/// The key of the tenant `acme`.
pub(crate) const ACME: &str = "a-long-random-key-of-acme";
/// A second key of the same tenant.
pub(crate) const ACME_ROTATED: &str = "another-random-key-of-acme";
/// The key of the tenant `globex`.
pub(crate) const GLOBEX: &str = "a-long-random-key-of-globex";

/// Where a test's ledger is.
pub(crate) enum Place {
    Sqlite(SqliteFile),
    Postgres(PostgresDatabase),
}

impl Place {
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(SqliteFile::new())
    }

    /// `None` where there is no server.
    pub(crate) async fn postgres(part: &str) -> Option<Self> {
        let server = servers::postgres(part)?;
        Some(Self::Postgres(PostgresDatabase::create(&server).await))
    }

    pub(crate) fn ledger(&self) -> String {
        match self {
            Self::Sqlite(file) => file.path().display().to_string(),
            Self::Postgres(database) => database.url(),
        }
    }
}

/// A running host.
pub(crate) struct Host {
    running: Running,
    pub(crate) authority: String,
}

impl Host {
    /// With the test seams.
    pub(crate) async fn start(place: &Place) -> Self {
        Self::start_with(place, &[("HOST_TEST_SEAMS", "1")]).await
    }

    pub(crate) async fn start_with(place: &Place, more: &[(&'static str, &'static str)]) -> Self {
        let ledger = place.ledger();
        let more: Vec<_> = more.to_vec();
        // Starting waits for the process's first line, which would block the test's runtime.
        let running = tokio::task::spawn_blocking(move || {
            let keys = format!("acme={ACME},globex={GLOBEX},acme={ACME_ROTATED}");
            let mut environment = vec![
                ("HOST_ADDR", "127.0.0.1:0"),
                ("HOST_LEDGER", ledger.as_str()),
                ("HOST_API_KEYS", &keys),
            ];
            environment.extend(more.iter().copied());
            Program::of("host").start(&environment)
        });
        let running = running.await.expect("the host starts");
        let authority =
            running.said().strip_prefix("listening on http://").expect("where it listens").to_owned();
        Self { running, authority }
    }

    pub(crate) fn kill(self) {
        self.running.kill();
    }

    /// Asks it to end and waits until it has.
    pub(crate) async fn stop(self) {
        let status = tokio::task::spawn_blocking(move || self.running.stop()).await.expect("it ends");
        assert!(status.success(), "{status}");
    }

    /// Sends a request as it is; what is refused is refused in one shape, and every answer names the version.
    pub(crate) async fn send(&self, request: Request) -> Answer {
        let answer = request.send(&self.authority).await.expect("an answer");
        assert_eq!(answer.header("openwop-version"), Some("2.0"), "{answer:?}");
        if answer.status >= 400 {
            let body = answer.json();
            let fields: Vec<_> = body.as_object().expect("an object").keys().map(String::as_str).collect();
            assert!(
                fields.iter().all(|field| ["error", "message", "details"].contains(field)),
                "{}: {body}",
                answer.status
            );
            assert!(
                body["error"].is_string() && body["message"].as_str().is_some_and(|text| !text.is_empty())
            );
        }
        answer
    }

    /// `acme` reads.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).bearer(ACME)).await
    }

    /// `acme` sends this.
    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Request::post(path, body.to_string()).bearer(ACME)).await
    }

    /// `acme` starts a run under a key.
    pub(crate) async fn create(&self, key: &str, body: &Value) -> Answer {
        self.send(Request::post("/runs", body.to_string()).bearer(ACME).header("Idempotency-Key", key)).await
    }

    /// A new run of `acme`, without a key.
    pub(crate) async fn started(&self, body: Value) -> String {
        let answer = self.post("/runs", body).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        run_of(&answer)
    }

    pub(crate) async fn status(&self, run: &str) -> String {
        let answer = self.get(&format!("/runs/{run}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["status"].as_str().expect("a status").to_owned()
    }

    pub(crate) async fn until_over(&self, run: &str) -> String {
        let over = async || self.status(run).await != "running";
        until("the run to be over", Duration::from_secs(60), over).await;
        self.status(run).await
    }

    pub(crate) async fn effects(&self, run: &str) -> Vec<Value> {
        let answer = self.get(&format!("/runs/{run}/effects")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["effects"].as_array().expect("a list").clone()
    }
}

pub(crate) fn run_of(answer: &Answer) -> String {
    answer.json()["runId"].as_str().expect("a run id").to_owned()
}

pub(crate) fn noop() -> Value {
    json!({ "workflowId": "conformance-noop" })
}

/// An idempotency key of its own.
pub(crate) fn key() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// Makes a test of an `async fn(Place)` on each database.
#[macro_export]
macro_rules! on_each_database {
    ($($test:ident),+ $(,)?) => {
        $(mod $test {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                super::$test($crate::serve::Place::sqlite()).await;
            }
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                let part = concat!(module_path!(), " on PostgreSQL");
                if let Some(place) = $crate::serve::Place::postgres(part).await {
                    super::$test(place).await;
                }
            }
        })+
    };
}
