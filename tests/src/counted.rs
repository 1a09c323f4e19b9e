//! An HTTP provider in this process for workers in others: it outlives them, and counts what it performed.
//!
//! `POST /charges` performs the order that its JSON body names, under the `Idempotency-Key` of the request; `POST
//! /keyed/charges` performs once a key. `GET /charges?order=…` tells the number of the order's latest performance, or
//! `null`.

use std::{
    collections::{HashMap, HashSet},
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::recorder::{Arrival, Requests};

/// What the provider did for one order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// How often it performed it.
    pub performed: u32,
    /// The keys of all requests, in their order.
    pub keys: Vec<String>,
    /// How often it was asked what it had done.
    pub questions: u32,
    by_key: HashMap<String, u32>,
}

#[derive(Default)]
struct Books {
    accounts: HashMap<String, Account>,
    /// Orders whose next answers are held back.
    holding: HashSet<String>,
    /// Orders of which an answer is being held back.
    held: HashSet<String>,
    /// How many requests of an order are still answered with 429.
    busy: HashMap<String, u32>,
}

#[derive(Default)]
struct Shared {
    books: Mutex<Books>,
    moved: Condvar,
}

/// The provider. Its threads end with the process.
pub struct Counted {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Counted {
    /// Opens it on a loopback port of the kernel's choice.
    ///
    /// # Panics
    /// When there is no port.
    #[must_use]
    pub fn open() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a loopback port");
        let address = listener.local_addr().expect("its address");
        let shared = Arc::new(Shared::default());
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&accepting);
                // A client that is killed is an error here, and no trouble.
                thread::spawn(move || drop(serve(stream, &shared)));
            }
        });
        Self { address, shared }
    }

    /// `http://127.0.0.1:port`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it did for the order.
    #[must_use]
    pub fn account(&self, order: &str) -> Account {
        self.shared.books().accounts.get(order).cloned().unwrap_or_default()
    }

    /// Holds back every answer to the order, whether to a request or to a question, from now on.
    pub fn hold(&self, order: &str) {
        self.shared.books().holding.insert(order.to_owned());
    }

    /// Waits until an answer to the order is held back: what was asked for is done by then.
    ///
    /// # Panics
    /// When nothing arrives within `limit`.
    pub fn wait_until_held(&self, order: &str, limit: Duration) {
        let books = self.shared.books();
        let waited = self.shared.moved.wait_timeout_while(books, limit, |books| !books.held.contains(order));
        let (_books, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!timeout.timed_out(), "nothing arrived for {order}");
    }

    /// Gives what was held back, and holds back nothing more.
    pub fn release(&self, order: &str) {
        let mut books = self.shared.books();
        books.holding.remove(order);
        books.held.remove(order);
        self.shared.moved.notify_all();
    }

    /// Answers the next requests of the order with 429, without performing them.
    pub fn be_busy(&self, order: &str, times: u32) {
        self.shared.books().busy.insert(order.to_owned(), times);
    }
}

impl Shared {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while the answer to the order is held back.
    fn hold_back(&self, order: &str) {
        let mut books = self.books();
        if !books.holding.contains(order) {
            return;
        }
        books.held.insert(order.to_owned());
        self.moved.notify_all();
        let waited = self.moved.wait_while(books, |books| books.holding.contains(order));
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut requests, mut chunk) = (Requests::default(), [0; 4096]);
    loop {
        let read = stream.read(&mut chunk)?;
        if read == 0 {
            return Ok(());
        }
        for request in requests.feed(&chunk[..read])? {
            let (status, answer) = handle(&request, shared);
            let answer = answer.to_string();
            let head =
                format!("HTTP/1.1 {status} -\r\nRetry-After: 0\r\nContent-Length: {}\r\n\r\n", answer.len());
            stream.write_all(format!("{head}{answer}").as_bytes())?;
        }
    }
}

fn handle(request: &Arrival, shared: &Shared) -> (u16, Value) {
    if let Some((_, order)) = request.path.split_once("?order=") {
        let number = {
            let mut books = shared.books();
            let account = books.accounts.entry(order.to_owned()).or_default();
            account.questions += 1;
            (account.performed > 0).then_some(account.performed)
        };
        shared.hold_back(order);
        return (200, json!({ "number": number }));
    }
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let (Some(order), Some(key)) = (body["order"].as_str(), request.idempotency_key.as_deref()) else {
        return (400, json!({ "error": "no order, or no key" }));
    };
    let number = perform(&mut shared.books(), order, key, request.path.starts_with("/keyed/"));
    let Some(number) = number else { return (429, json!({ "error": "busy" })) };
    shared.hold_back(order);
    (200, json!({ "number": number }))
}

/// The number of the performance; `None` while it is busy.
fn perform(books: &mut Books, order: &str, key: &str, is_keyed: bool) -> Option<u32> {
    let busy = books.busy.get_mut(order).filter(|left| **left > 0);
    let is_busy = busy.map(|left| *left -= 1).is_some();
    let account = books.accounts.entry(order.to_owned()).or_default();
    account.keys.push(key.to_owned());
    if is_busy {
        return None;
    }
    if let Some(number) = account.by_key.get(key).copied().filter(|_| is_keyed) {
        return Some(number);
    }
    account.performed += 1;
    let number = account.performed;
    account.by_key.insert(key.to_owned(), number);
    Some(number)
}
