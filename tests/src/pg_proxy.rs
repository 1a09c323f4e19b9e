//! A wire to PostgreSQL, or to a pooler before it, that fails at a chosen statement: between a ledger and a real server.

use std::{
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use tokio::{
    io::AsyncReadExt,
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::Notify,
};

mod wire;

use wire::{Prepared, Unit, read_typed, read_untyped};

/// What becomes of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The server carries it out and commits it; the connection breaks before the client is told.
    LoseReply,
    /// The connection breaks, and nothing of it has left.
    CutBefore,
    /// The connection breaks when half of its bytes have left.
    CutAmid,
    /// It waits on the wire until [`PgProxy::release`], and goes on.
    Stall,
}

/// The proxy. Its connections break when it is dropped.
pub struct PgProxy {
    address: String,
    shared: Arc<Shared>,
    accepting: tokio::task::JoinHandle<()>,
}

/// A fault that waits for its statement.
struct Armed {
    text: String,
    /// How many such statements pass before.
    passes: u32,
    fault: Fault,
}

#[derive(Default)]
struct Shared {
    upstream: String,
    armed: Mutex<Option<Armed>>,
    fired: AtomicU64,
    has_fired: Notify,
    released: Notify,
    /// What is released goes nowhere: its connection breaks.
    is_cut: AtomicBool,
    /// Of how many units one fails at random; 0 for none.
    one_in: AtomicU64,
    random: AtomicU64,
    is_refusing: AtomicBool,
}

impl PgProxy {
    /// Opens a port before the server of this URL.
    ///
    /// # Panics
    /// When the URL names no host and port, or there is no port.
    pub async fn in_front_of(url: &str) -> Self {
        let (_, server) = split(url);
        let shared = Arc::new(Shared { upstream: server.to_owned(), ..Shared::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port");
        let address = listener.local_addr().expect("its address").to_string();
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self { address, shared, accepting }
    }

    /// The URL through the proxy.
    #[must_use]
    pub fn url(&self, url: &str) -> String {
        url.replacen(split(url).1, &self.address, 1)
    }

    /// The next statement that contains the text fails: where it is part of a transaction, that transaction's `COMMIT`
    /// does.
    pub fn arm(&self, statement: &str, fault: Fault) {
        self.arm_after(0, statement, fault);
    }

    /// [`arm`](Self::arm) for the one after so many statements that contain the text.
    pub fn arm_after(&self, passes: u32, statement: &str, fault: Fault) {
        *self.shared.armed() = Some(Armed { text: statement.to_owned(), passes, fault });
    }

    /// Resolves when so many faults have come about.
    pub async fn wait_for_faults(&self, count: u64) {
        loop {
            let mut fired = std::pin::pin!(self.shared.has_fired.notified());
            // From here on no fault is missed.
            fired.as_mut().enable();
            if self.faults() >= count {
                return;
            }
            fired.await;
        }
    }

    /// Lets go on what [`Fault::Stall`] holds.
    pub fn release(&self) {
        self.shared.released.notify_one();
    }

    /// Breaks the connection of what [`Fault::Stall`] holds.
    pub fn cut_stalled(&self) {
        self.shared.is_cut.store(true, Ordering::SeqCst);
        self.shared.released.notify_one();
    }

    /// From now on breaks connections at random: one in so many messages that wait for an answer, 0 for none.
    pub fn at_random(&self, one_in: u64, seed: u64) {
        self.shared.random.store(seed, Ordering::SeqCst);
        self.shared.one_in.store(one_in, Ordering::SeqCst);
    }

    /// From now on accepts no connection, or does again.
    pub fn refuse(&self, is_refusing: bool) {
        self.shared.is_refusing.store(is_refusing, Ordering::SeqCst);
    }

    /// How many faults there were.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.shared.fired.load(Ordering::SeqCst)
    }
}

impl Drop for PgProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// What comes before host and port in a URL, and those.
fn split(url: &str) -> (&str, &str) {
    let (before, rest) = url.rsplit_once('@').expect("a URL with a user");
    let (server, _) = rest.split_once('/').expect("a URL with a database");
    (before, server)
}

impl Shared {
    fn armed(&self) -> MutexGuard<'_, Option<Armed>> {
        self.armed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fault of the statement, if it has one; each is used up by it.
    fn fault_of(&self, statements: &[String]) -> Option<Fault> {
        if let Some(fault) = self.armed_for(statements) {
            return Some(fault);
        }
        let one_in = self.one_in.load(Ordering::Relaxed);
        let drawn = if one_in == 0 { 1 } else { self.draw() % one_in };
        (drawn == 0).then(|| match self.draw() % 4 {
            0 | 1 => Fault::LoseReply,
            2 => Fault::CutBefore,
            _ => Fault::CutAmid,
        })
    }

    fn armed_for(&self, statements: &[String]) -> Option<Fault> {
        let mut armed = self.armed();
        let next = armed.as_mut()?;
        if !statements.iter().any(|statement| statement.contains(&next.text)) {
            return None;
        }
        if next.passes > 0 {
            next.passes -= 1;
            return None;
        }
        armed.take().map(|armed| armed.fault)
    }

    fn draw(&self) -> u64 {
        crate::random::mixed(self.random.fetch_add(1, Ordering::Relaxed))
    }

    fn fire(&self) {
        self.fired.fetch_add(1, Ordering::SeqCst);
        self.has_fired.notify_waiters();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((client, _)) = listener.accept().await else { return };
        while connections.try_join_next().is_some() {}
        if !shared.is_refusing.load(Ordering::SeqCst) {
            let shared = Arc::clone(&shared);
            // A connection that breaks is what this is for.
            connections.spawn(async move { drop(relay(client, &shared).await) });
        }
    }
}

async fn relay(mut client: TcpStream, shared: &Shared) -> io::Result<()> {
    let mut server = TcpStream::connect(&shared.upstream).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    loop {
        let Some(message) = read_untyped(&mut client).await? else { return Ok(()) };
        message.send(&mut server).await?;
        if !message.is_tls_request() {
            break;
        }
        let answer = server.read_u8().await?;
        tokio::io::AsyncWriteExt::write_u8(&mut client, answer).await?;
    }
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let state = State::default();
    tokio::select! {
        ended = forward(&mut from_client, &mut to_server, shared, &state) => ended,
        ended = answer(&mut from_server, &mut to_client, shared, &state) => ended,
    }
}

/// What both directions of a connection know.
#[derive(Default)]
struct State {
    in_transaction: AtomicBool,
    /// The client does not get what the server says any more.
    is_mute: AtomicBool,
}

async fn forward(
    client: &mut OwnedReadHalf,
    server: &mut OwnedWriteHalf,
    shared: &Shared,
    state: &State,
) -> io::Result<()> {
    let (mut prepared, mut unit) = (Prepared::default(), Unit::default());
    // The statements of the transaction so far.
    let mut before: Vec<String> = Vec::new();
    while let Some(message) = read_typed(client).await? {
        if !prepared.add(&mut unit, &message) {
            continue;
        }
        let Unit { bytes, mut statements } = std::mem::take(&mut unit);
        match statements.first().map(String::as_str) {
            Some("COMMIT") => statements.append(&mut before),
            Some("ROLLBACK") => before.clear(),
            _ if state.in_transaction.load(Ordering::SeqCst) => before.append(&mut statements),
            _ => {}
        }
        send(&bytes, shared.fault_of(&statements), server, shared, state).await?;
    }
    Ok(())
}

async fn send(
    bytes: &[u8],
    fault: Option<Fault>,
    server: &mut OwnedWriteHalf,
    shared: &Shared,
    state: &State,
) -> io::Result<()> {
    use tokio::io::AsyncWriteExt;
    let cut = || Err(io::ErrorKind::ConnectionAborted.into());
    match fault {
        None => server.write_all(bytes).await,
        Some(Fault::LoseReply) => {
            state.is_mute.store(true, Ordering::SeqCst);
            server.write_all(bytes).await
        }
        Some(Fault::CutBefore) => {
            shared.fire();
            cut()
        }
        Some(Fault::CutAmid) => {
            server.write_all(&bytes[..bytes.len() / 2]).await?;
            shared.fire();
            cut()
        }
        Some(Fault::Stall) => {
            shared.fire();
            shared.released.notified().await;
            if shared.is_cut.swap(false, Ordering::SeqCst) { cut() } else { server.write_all(bytes).await }
        }
    }
}

async fn answer(
    server: &mut OwnedReadHalf,
    client: &mut OwnedWriteHalf,
    shared: &Shared,
    state: &State,
) -> io::Result<()> {
    while let Some(message) = read_typed(server).await? {
        let is_ready = message.kind == b'Z';
        if is_ready {
            state.in_transaction.store(message.bytes.get(5) != Some(&b'I'), Ordering::SeqCst);
        }
        if !state.is_mute.load(Ordering::SeqCst) {
            message.send(client).await?;
        } else if is_ready {
            // It has done what it was asked for, and the client will never know.
            shared.fire();
            return Ok(());
        }
    }
    Ok(())
}
