//! Keeps workers busy, and kills, stops and restarts them at random.

use std::{collections::HashMap, process::Stdio, sync::Arc, sync::atomic::Ordering, time::Duration};

use effectual_tests::random::Random;
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    net::{TcpListener, tcp::OwnedWriteHalf},
    process::{Child, Command},
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::{
    Failed, Options, Place,
    bank::Bank,
    board::Board,
    effects::{ATTEMPT_TIMEOUT, LEASE},
    wire::{Reader, say, split},
};

/// How many calls a worker has at once, and how many may be missing from them.
const CALLS: usize = 160;
const MISSING: usize = 40;

/// How long a start, an answer or the settling at the end may take.
const LIMIT: Duration = Duration::from_secs(180);

/// How often one of so many messages to PostgreSQL breaks its connection.
const PROXY_FAULT_ONE_IN: u64 = 150;

type Arrived = (Reader, OwnedWriteHalf);

/// One worker's keeper.
struct Keeper {
    number: u64,
    ledger: String,
    place: String,
    bank: Arc<Bank>,
    board: Arc<Board>,
    until: Instant,
    random: Random,
}

/// Runs until the time is over and everything is settled.
pub(crate) async fn run(
    options: &Options,
    place: &Place,
    bank: &Arc<Bank>,
    board: &Arc<Board>,
    workers: u64,
    until: Instant,
) -> Result<(), Failed> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let (mut senders, mut keepers) = (Vec::new(), JoinSet::new());
    for number in 0..workers {
        let (sender, arrivals) = mpsc::channel(1);
        senders.push(sender);
        let keeper = Keeper {
            number,
            ledger: options.ledger.clone(),
            place: place.of_workers.clone(),
            bank: Arc::clone(bank),
            board: Arc::clone(board),
            until,
            random: Random::new(options.seed.wrapping_add(number)),
        };
        keepers.spawn(keeper.keep(address.clone(), arrivals));
    }
    let introducing = tokio::spawn(introduce(listener, senders));
    if let Some(proxy) = &place.proxy {
        proxy.at_random(PROXY_FAULT_ONE_IN, options.seed);
    }
    let outages = outages(Random::new(options.seed.wrapping_mul(3)), bank, place, until);
    let all = async {
        while let Some(kept) = keepers.join_next().await {
            kept??;
        }
        Ok(())
    };
    let ended = tokio::select! {
        ended = timeout(until - Instant::now() + LIMIT, all) => {
            ended.unwrap_or_else(|_| Err("not everything was settled in time".into()))
        }
        never = outages => never,
    };
    introducing.abort();
    ended
}

/// Every few seconds the bank is gone for a moment, and sometimes the database too.
async fn outages(mut random: Random, bank: &Bank, place: &Place, until: Instant) -> Result<(), Failed> {
    while Instant::now() < until {
        sleep(Duration::from_millis(random.between(2_000, 8_000))).await;
        bank.fall_silent();
        if let Some(proxy) = place.proxy.as_ref().filter(|_| random.one_in(3)) {
            proxy.refuse(true);
            sleep(Duration::from_millis(random.between(50, 600))).await;
            proxy.refuse(false);
        }
    }
    if let Some(proxy) = &place.proxy {
        proxy.at_random(0, 0);
    }
    std::future::pending().await
}

/// Hands each worker's connection to its keeper.
async fn introduce(listener: TcpListener, keepers: Vec<mpsc::Sender<Arrived>>) -> Result<(), Failed> {
    loop {
        let (mut reads, writes) = split(listener.accept().await?.0)?;
        let hello = timeout(LIMIT, reads.next_line()).await??.unwrap_or_default();
        let number: usize = hello.strip_prefix("worker ").ok_or("not a worker")?.parse()?;
        drop(keepers.get(number).ok_or("an unknown worker")?.send((reads, writes)).await);
    }
}

/// How a worker ended.
enum Ended {
    Killed,
    Done,
}

/// What comes next in a worker's life.
enum Fate {
    Kill,
    /// Stopped for a moment, wherever it is.
    Pause,
    /// Stopped for longer than its leases, while no request is between its permit and the wire.
    Oversleep,
}

impl Keeper {
    async fn keep(mut self, board: String, mut arrivals: mpsc::Receiver<Arrived>) -> Result<(), Failed> {
        loop {
            let mut child = Command::new(std::env::current_exe()?)
                .args(["worker", &self.ledger, &self.place, &self.bank.address.to_string(), &board])
                .arg(self.number.to_string())
                .stdin(Stdio::null())
                .kill_on_drop(true)
                .spawn()?;
            let arrived = tokio::select! {
                arrived = arrivals.recv() => arrived.ok_or("nobody introduces workers")?,
                // It may have been cut off from its ledger while it opened it.
                _ = child.wait() => continue,
            };
            match self.tend(child, arrived).await? {
                Ended::Killed => {}
                Ended::Done => return Ok(()),
            }
        }
    }

    async fn tend(&mut self, mut child: Child, (mut reads, mut writes): Arrived) -> Result<Ended, Failed> {
        let mut out = HashMap::new();
        let mut fate_at = self.next_fate();
        loop {
            self.fill(&mut out, &mut writes).await;
            let is_late = Instant::now() >= self.until;
            if is_late && out.is_empty() && self.board.is_over() {
                say(&mut writes, "end\n").await?;
                timeout(LIMIT, child.wait()).await??;
                return Ok(Ended::Done);
            }
            tokio::select! {
                line = reads.next_line() => match line? {
                    Some(line) => self.hear(&line, &mut out),
                    None => return Err(format!("worker {} ended by itself", self.number).into()),
                },
                () = sleep_until(fate_at), if !is_late => {
                    match self.draw() {
                        Fate::Kill => {
                            self.kill(child, &mut reads, out).await?;
                            return Ok(Ended::Killed);
                        }
                        Fate::Pause => self.pause(&child, 50, 900).await?,
                        Fate::Oversleep => self.oversleep(&child, &mut reads, &mut writes, &mut out).await?,
                    }
                    fate_at = self.next_fate();
                }
                () = sleep(Duration::from_millis(20)) => {}
            }
        }
    }

    fn next_fate(&mut self) -> Instant {
        Instant::now() + Duration::from_millis(self.random.between(150, 1_500))
    }

    fn draw(&mut self) -> Fate {
        match self.random.between(0, 20) {
            0 => Fate::Oversleep,
            1..=4 => Fate::Pause,
            _ => Fate::Kill,
        }
    }

    async fn fill(&mut self, out: &mut HashMap<u32, u64>, writes: &mut OwnedWriteHalf) {
        if out.len() + MISSING > CALLS {
            return;
        }
        let mut lines = String::new();
        while out.len() < CALLS {
            let next = self.board.next(Instant::now() < self.until, &mut self.random);
            let Some((order, call)) = next else { break };
            if out.contains_key(&order) {
                self.board.put_back(order);
                break;
            }
            out.insert(order, call);
            lines.push_str(&format!("go {order}\n"));
        }
        // A worker that is gone is noticed when it is listened to.
        drop(say(writes, &lines).await);
    }

    fn hear(&mut self, line: &str, out: &mut HashMap<u32, u64>) {
        let Some((order, word)) = line.strip_prefix("end ").and_then(|rest| rest.split_once(' ')) else {
            return;
        };
        let order = order.parse().ok();
        if let Some((order, call)) = order.and_then(|order| out.remove_entry(&order)) {
            self.board.ended(order, call, word, &mut self.random);
        }
    }

    async fn kill(
        &mut self,
        mut child: Child,
        reads: &mut Reader,
        mut out: HashMap<u32, u64>,
    ) -> Result<(), Failed> {
        child.kill().await?;
        self.board.kills.fetch_add(1, Ordering::SeqCst);
        // What it had reported by then.
        while let Ok(Some(line)) = reads.next_line().await {
            self.hear(&line, &mut out);
        }
        self.board.died(out.into_keys());
        Ok(())
    }

    async fn pause(&mut self, child: &Child, from_ms: u64, to_ms: u64) -> Result<(), Failed> {
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).ok_or("it has ended")?;
        kill_process(pid, Signal::STOP)?;
        self.board.stops.fetch_add(1, Ordering::SeqCst);
        sleep(Duration::from_millis(self.random.between(from_ms, to_ms))).await;
        kill_process(pid, Signal::CONT)?;
        Ok(())
    }

    async fn oversleep(
        &mut self,
        child: &Child,
        reads: &mut Reader,
        writes: &mut OwnedWriteHalf,
        out: &mut HashMap<u32, u64>,
    ) -> Result<(), Failed> {
        say(writes, "hush\n").await?;
        loop {
            let line = timeout(LIMIT, reads.next_line()).await??.ok_or("it ended by itself")?;
            if line == "hushed" {
                break;
            }
            self.hear(&line, out);
        }
        let beyond = u64::try_from((LEASE + ATTEMPT_TIMEOUT).as_millis()).unwrap_or(u64::MAX);
        self.pause(child, beyond + 300, beyond + 1_500).await?;
        say(writes, "speak\n").await?;
        Ok(())
    }
}
