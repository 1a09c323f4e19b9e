//! The provider: counts what it performs for each order, and loses answers.

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hasher},
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use effectual_tests::random::Random;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::{
    effects::Class,
    wire::{say, split},
};

/// How long nobody gets through, in an outage.
const OUTAGE: Duration = Duration::from_millis(150);

/// What the bank did for one order.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Account {
    pub(crate) performed: u32,
    /// The number of the first performance.
    pub(crate) first: u32,
    /// A digest of the first key; 0 while there is none.
    key: u64,
    /// Whether another key came later.
    pub(crate) has_two_keys: bool,
}

/// What happened, by kind.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) requests: u64,
    pub(crate) lost: u64,
    pub(crate) refused: u64,
    pub(crate) cut: u64,
}

pub(crate) struct Books {
    pub(crate) counts: Counts,
    /// By order.
    pub(crate) accounts: Vec<Account>,
    /// The numbers of further performances of an order.
    pub(crate) repeats: HashMap<u32, Vec<u32>>,
    performed: u32,
    random: Random,
    digests: std::hash::BuildHasherDefault<std::hash::DefaultHasher>,
}

pub(crate) struct Bank {
    pub(crate) address: SocketAddr,
    books: Mutex<Books>,
    outages: watch::Sender<u64>,
}

/// What a client hears.
enum Answer {
    Says(String),
    Nothing,
    Cut,
}

pub(crate) async fn open(seed: u64) -> io::Result<Arc<Bank>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let books = Books {
        counts: Counts::default(),
        accounts: Vec::new(),
        repeats: HashMap::new(),
        performed: 0,
        random: Random::new(seed),
        digests: Default::default(),
    };
    let address = listener.local_addr()?;
    let bank = Arc::new(Bank { address, books: Mutex::new(books), outages: watch::Sender::new(0) });
    tokio::spawn(accept(Arc::clone(&bank), listener));
    Ok(bank)
}

async fn accept(bank: Arc<Bank>, mut listener: TcpListener) {
    let mut outages = bank.outages.subscribe();
    loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                // A client that is killed is an error here, and no trouble.
                tokio::spawn(serve(Arc::clone(&bank), stream));
            },
            _ = outages.changed() => {
                drop(listener);
                tokio::time::sleep(OUTAGE).await;
                listener = loop {
                    match TcpListener::bind(bank.address).await {
                        Ok(listener) => break listener,
                        Err(_) => tokio::time::sleep(OUTAGE).await,
                    }
                };
            }
        }
    }
}

async fn serve(bank: Arc<Bank>, stream: TcpStream) -> io::Result<()> {
    let (mut reads, mut writes) = split(stream)?;
    let mut outages = bank.outages.subscribe();
    loop {
        let line = tokio::select! {
            line = reads.next_line() => line?,
            _ = outages.changed() => None,
        };
        let Some(line) = line else { return Ok(()) };
        let answer = bank.books().answer(&line);
        match answer {
            Answer::Says(text) => say(&mut writes, &text).await?,
            Answer::Nothing => {}
            Answer::Cut => return Ok(()),
        }
    }
}

impl Bank {
    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cuts all connections, and refuses new ones for a while.
    pub(crate) fn fall_silent(&self) {
        self.books().counts.cut += 1;
        self.outages.send_modify(|outages| *outages += 1);
    }
}

impl Books {
    fn answer(&mut self, line: &str) -> Answer {
        let mut words = line.split(' ');
        let (Some(what), Some(number), Some(order), Some(key)) =
            (words.next(), words.next(), words.next().and_then(|order| order.parse().ok()), words.next())
        else {
            return Answer::Cut;
        };
        self.counts.requests += 1;
        if what == "q" {
            return self.tell(number, order);
        }
        if self.random.one_in(300) {
            self.counts.refused += 1;
            return Answer::Says(format!("b {number} -\n"));
        }
        if self.random.one_in(400) {
            self.counts.lost += 1;
            return Answer::Nothing;
        }
        let performed = self.perform(order, key);
        if self.random.one_in(400) {
            self.counts.lost += 1;
            return Answer::Nothing;
        }
        if self.random.one_in(20_000) {
            self.counts.cut += 1;
            return Answer::Cut;
        }
        Answer::Says(format!("a {number} {performed}\n"))
    }

    fn tell(&mut self, number: &str, order: u32) -> Answer {
        if self.random.one_in(200) {
            self.counts.lost += 1;
            return Answer::Nothing;
        }
        let account = self.account(order);
        let (performed, first) = (account.performed, account.first);
        Answer::Says(match performed {
            0 => format!("n {number} -\n"),
            _ => format!("a {number} {first}\n"),
        })
    }

    fn account(&mut self, order: u32) -> &mut Account {
        let at = order as usize;
        if self.accounts.len() <= at {
            self.accounts.resize(at + 1, Account::default());
        }
        &mut self.accounts[at]
    }

    /// The number of the performance: an earlier one's, where the bank deduplicates.
    fn perform(&mut self, order: u32, key: &str) -> u32 {
        let mut digest = self.digests.build_hasher();
        digest.write(key.as_bytes());
        let key = digest.finish().max(1);
        let next = self.performed + 1;
        let account = self.account(order);
        if account.key == 0 {
            account.key = key;
        }
        account.has_two_keys |= account.key != key;
        if Class::of(order) == Class::Resend && account.performed > 0 && account.key == key {
            return account.first;
        }
        account.performed += 1;
        if account.performed == 1 {
            account.first = next;
        } else {
            self.repeats.entry(order).or_default().push(next);
        }
        self.performed = next;
        next
    }
}
