//! A provider that does what its script says, and counts what it performed: a ledger keyed on identity cannot show its own
//! double fire.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use effectual::{EffectContext, Failure, SendRefused};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

/// What the provider does with the next request; after the script's end it performs and answers.
#[derive(Debug, Clone)]
pub enum Act {
    /// Performs and answers.
    Perform,
    /// Performs, and the answer is lost.
    PerformAndLose,
    /// Does nothing, and the answer is lost: the client sees the same as with [`PerformAndLose`](Self::PerformAndLose).
    LoseOnly,
    /// Answers that it is too busy.
    TooBusy(Option<Duration>),
    /// Refuses the connection.
    NoConnection,
    /// Refuses the request, finally.
    Refuse,
    /// Refuses the credential.
    BadCredential,
    /// Performs and never answers.
    PerformAndHang,
    /// Performs, and the client panics.
    PerformAndPanic,
}

/// What went wrong, and what it means.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize, Failure)]
pub enum ScriptedError {
    /// Unknown.
    #[error("the answer was lost")]
    Lost,
    /// Not performed, worth another attempt.
    #[error("too busy")]
    #[failure(not_performed, retry, retry_after = delay)]
    TooBusy {
        /// What the provider asked for.
        delay: Option<Duration>,
    },
    /// Not performed, worth another attempt.
    #[error("no connection")]
    #[failure(not_performed, retry)]
    NoConnection,
    /// Final.
    #[error("declined: {code}")]
    #[failure(refused)]
    Declined {
        /// Why.
        code: String,
    },
    /// Not performed.
    #[error("bad credential")]
    #[failure(not_performed)]
    BadCredential,
    /// Nothing was sent.
    #[error("not sent: {0}")]
    #[failure(not_performed, retry)]
    NotSent(#[from] SendRefused),
}

/// What it gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Rises with every performance.
    pub number: u32,
    /// What was asked.
    pub what: String,
}

/// A scripted provider; clones share everything.
#[derive(Debug, Clone, Default)]
pub struct Scripted {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    deduplicates: bool,
    books: Mutex<Books>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Books {
    script: VecDeque<Act>,
    keys: Vec<String>,
    performed: u32,
    by_key: HashMap<String, Done>,
}

impl Scripted {
    /// A provider that performs every request that reaches it.
    #[must_use]
    pub fn forgetful(script: impl IntoIterator<Item = Act>) -> Self {
        Self::new(false, script)
    }

    /// A provider that performs one request a key.
    #[must_use]
    pub fn deduplicating(script: impl IntoIterator<Item = Act>) -> Self {
        Self::new(true, script)
    }

    fn new(deduplicates: bool, script: impl IntoIterator<Item = Act>) -> Self {
        let books = Books { script: script.into_iter().collect(), ..Books::default() };
        Self { shared: Arc::new(Shared { deduplicates, books: Mutex::new(books), arrived: Notify::new() }) }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.shared.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often it performed.
    #[must_use]
    pub fn performed(&self) -> u32 {
        self.books().performed
    }

    /// The keys of all requests that arrived, in their order.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        self.books().keys.clone()
    }

    /// What it performed under the key.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<Done> {
        self.books().by_key.get(key).cloned()
    }

    /// Resolves with the next request that arrives after the call.
    pub async fn next_arrival(&self) {
        self.shared.arrived.notified().await;
    }

    /// Sends a request as an adapter does: with the key, under a permit.
    ///
    /// # Errors
    /// As the script says.
    ///
    /// # Panics
    /// Where the script says so.
    pub async fn send(&self, cx: &EffectContext, what: &str) -> Result<Done, ScriptedError> {
        let key = cx.idempotency_key().to_owned();
        let permit = cx.send_permit()?;
        let (act, done) = self.arrive(&key, what);
        let _ = permit;
        self.shared.arrived.notify_one();
        match act {
            Act::Perform => done.ok_or(ScriptedError::Lost),
            Act::PerformAndLose | Act::LoseOnly => Err(ScriptedError::Lost),
            Act::TooBusy(delay) => Err(ScriptedError::TooBusy { delay }),
            Act::NoConnection => Err(ScriptedError::NoConnection),
            Act::Refuse => Err(ScriptedError::Declined { code: "insufficient_funds".to_owned() }),
            Act::BadCredential => Err(ScriptedError::BadCredential),
            Act::PerformAndHang => std::future::pending().await,
            Act::PerformAndPanic => panic!("{PANIC_CANARY}"),
        }
    }

    fn arrive(&self, key: &str, what: &str) -> (Act, Option<Done>) {
        let mut books = self.books();
        books.keys.push(key.to_owned());
        let act = books.script.pop_front().unwrap_or(Act::Perform);
        let performs =
            matches!(act, Act::Perform | Act::PerformAndLose | Act::PerformAndHang | Act::PerformAndPanic);
        if !performs {
            return (act, None);
        }
        if let Some(done) = books.by_key.get(key).filter(|_| self.shared.deduplicates) {
            return (act, Some(done.clone()));
        }
        books.performed += 1;
        let done = Done { number: books.performed, what: what.to_owned() };
        books.by_key.insert(key.to_owned(), done.clone());
        (act, Some(done))
    }
}

/// Text of a panic that must show up nowhere else.
pub const PANIC_CANARY: &str = "canary-in-a-panic-7d1f";
