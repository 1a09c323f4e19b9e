//! A host with nothing but the witness, on a port of its own.

use std::{
    collections::BTreeSet,
    error::Error,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use axum::http::{header, request::Parts};
use effectual::{
    Ledger, RunId, Tenant,
    witness::{self, Denied, PROJECTION_SCHEMA, WitnessHost},
};
use effectual_tests::wire::{Answer, Request};
use jsonschema::Validator;
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// The key of the tenant `acme`.
pub(crate) const ACME: &str = "key-of-acme";
/// The key of the tenant `globex`.
pub(crate) const GLOBEX: &str = "key-of-globex";
/// A key of `acme` that does not grant reading runs.
pub(crate) const NARROW: &str = "key-without-reading";

/// What the witness asks.
#[derive(Default)]
pub(crate) struct Known {
    runs: Mutex<BTreeSet<RunId>>,
    pub(crate) is_down: AtomicBool,
    /// How often it was asked whether a run exists.
    pub(crate) asked: AtomicUsize,
}

struct Host(Arc<Known>);

#[async_trait]
impl WitnessHost for Host {
    async fn authorize(&self, request: &Parts) -> Result<Tenant, Denied> {
        let line = request.headers.get(header::AUTHORIZATION).and_then(|line| line.to_str().ok());
        let tenant = match line.and_then(|line| line.strip_prefix("Bearer ")) {
            Some(ACME) => "acme",
            Some(GLOBEX) => "globex",
            Some(NARROW) => return Err(Denied::Forbidden),
            _ => return Err(Denied::Unauthenticated),
        };
        Ok(Tenant::parse(tenant).expect("a valid tenant"))
    }

    async fn has_run(&self, run: &RunId) -> Result<bool, Box<dyn Error + Send + Sync>> {
        self.0.asked.fetch_add(1, Ordering::SeqCst);
        if self.0.is_down.load(Ordering::SeqCst) {
            return Err("the canary of the host's database".into());
        }
        Ok(self.0.runs.lock().expect("not poisoned").contains(run))
    }
}

/// The running server; it ends with this.
pub(crate) struct Served {
    authority: String,
    pub(crate) known: Arc<Known>,
    serving: JoinHandle<()>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Served {
    pub(crate) async fn start(ledger: Arc<dyn Ledger>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let authority = listener.local_addr().expect("an address").to_string();
        let known = Arc::new(Known::default());
        let app = witness::router(ledger, Host(Arc::clone(&known)));
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.expect("it serves") });
        Self { authority, known, serving }
    }

    /// A new run of `acme` that the host knows.
    pub(crate) fn run(&self) -> RunId {
        let run = RunId::mint(&Tenant::parse("acme").expect("a valid tenant"));
        self.know(&run);
        run
    }

    pub(crate) fn know(&self, run: &RunId) {
        self.known.runs.lock().expect("not poisoned").insert(run.clone());
    }

    /// A connection to the server.
    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.authority).await.expect("a connection")
    }

    /// An answer as it came.
    pub(crate) async fn unchecked(&self, request: Request) -> Answer {
        request.send(&self.authority).await.expect("an answer")
    }

    /// An answer that keeps to its schema.
    pub(crate) async fn ask(&self, request: Request) -> Answer {
        let answer = self.unchecked(request).await;
        check(&answer);
        answer
    }

    /// The answer to `acme`.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(Request::get(path).bearer(ACME)).await
    }

    /// The effects of a run, as `acme` gets them.
    pub(crate) async fn effects(&self, run: &RunId) -> Vec<Value> {
        let answer = self.get(&format!("/runs/{run}/effects")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let shown = answer.json();
        assert_eq!(shown["runId"], run.as_str());
        shown["effects"].as_array().expect("a list").clone()
    }
}

/// Holds an answer against the schema of the projection, or of errors.
fn check(answer: &Answer) {
    static SCHEMAS: OnceLock<(Validator, Validator)> = OnceLock::new();
    let (projection, problem) = SCHEMAS.get_or_init(|| {
        let projection = serde_json::from_str(PROJECTION_SCHEMA).expect("the schema is JSON");
        let problem = json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["error", "message"],
            "properties": {
                "error": { "type": "string", "pattern": "^[a-z_]+$" },
                "message": { "type": "string", "minLength": 1 },
                "details": { "type": "object" },
            },
        });
        let with_formats = |schema| jsonschema::options().should_validate_formats(true).build(&schema);
        (with_formats(projection).expect("a schema"), with_formats(problem).expect("a schema"))
    });
    assert_eq!(answer.header("content-type"), Some("application/json"), "{answer:?}");
    assert!(answer.is_whole, "cut short");
    let schema = if answer.status == 200 { projection } else { problem };
    let body = answer.json();
    let errors: Vec<_> = schema.iter_errors(&body).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?} in {body}");
}
