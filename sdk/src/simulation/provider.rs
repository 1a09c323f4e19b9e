//! The other side: performs what reaches it, and counts by the effect's identity, not by the key that it is shown.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::{
    chaos,
    scheduler::{PlannedPanic, WORLD},
    world::{ATTEMPT_TIMEOUT, World},
};
use crate::{EffectContext, EffectId, ErrorKind, Failure, Found, SendRefused, Verdict, clock};

/// For how long the deduplicating provider remembers a key.
pub(super) const WINDOW: Duration = Duration::from_secs(6);
/// How long work takes at the provider, at the most; a look-up may miss what is younger.
pub(super) const SETTLE_DELAY: Duration = Duration::from_millis(80);

/// What it gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Done {
    pub(super) amount: u64,
    pub(super) number: u32,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub(super) enum Trouble {
    #[error("the answer was lost")]
    Lost,
    #[error("an earlier request with this key is being worked on")]
    KeyInFlight,
    #[error("too busy")]
    TooBusy(Duration),
    #[error("no connection")]
    NoConnection,
    #[error("declined")]
    Declined,
    #[error("bad credential")]
    BadCredential,
    #[error("not sent: {0}")]
    NotSent(SendRefused),
}

impl Failure for Trouble {
    fn verdict(&self) -> Verdict {
        match self {
            Self::Lost | Self::KeyInFlight => Verdict::Unknown,
            Self::TooBusy(_) | Self::NoConnection => Verdict::NotPerformed { retry: true },
            Self::Declined => Verdict::Refused,
            Self::BadCredential => Verdict::NotPerformed { retry: false },
            Self::NotSent(refused) => refused.verdict(),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooBusy(delay) => Some(*delay),
            _ => None,
        }
    }
}

/// What the provider promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Promise {
    /// One performance a key within the window, also while the first is being worked on.
    Deduplicates,
    /// One performance a key within the window, once the first is done: two at once are two.
    DeduplicatesWhatIsDone,
    /// Nothing.
    Nothing,
    /// Nothing, and the body does not take the key.
    NothingWithoutKey,
}

impl Promise {
    fn deduplicates(self) -> bool {
        matches!(self, Self::Deduplicates | Self::DeduplicatesWhatIsDone)
    }
}

/// Made for one call; clones, one an attempt, share everything.
#[derive(Clone)]
pub(super) struct Provider {
    world: Arc<World>,
    promise: Promise,
    /// Whether this call's own attempt stored a handle.
    handle_stored: Arc<AtomicBool>,
}

/// Everything that the providers of a world did.
#[derive(Default)]
pub(super) struct Books {
    inner: Mutex<HashMap<EffectId, Account>>,
}

#[derive(Default)]
struct Account {
    key: Option<String>,
    performed: Vec<(Duration, Done)>,
    /// When the key was first seen, for as long as it is remembered.
    remembered: Option<(Duration, Option<Answer>)>,
    handle: bool,
}

type Answer = Result<Done, Trouble>;

impl Books {
    fn inner(&self) -> MutexGuard<'_, HashMap<EffectId, Account>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn performed(&self, id: &EffectId) -> usize {
        self.inner().get(id).map_or(0, |account| account.performed.len())
    }
}

/// What the plan has for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Perform,
    PerformAndLose,
    PerformAndHang,
    PerformAndPanic,
    Lose,
    Hang,
    TooBusy,
    NoConnection,
    Decline,
    BadCredential,
}

const FAULTS: [Act; 14] = [
    Act::PerformAndLose,
    Act::PerformAndLose,
    Act::PerformAndLose,
    Act::PerformAndHang,
    Act::PerformAndHang,
    Act::PerformAndPanic,
    Act::Lose,
    Act::Lose,
    Act::Hang,
    Act::TooBusy,
    Act::NoConnection,
    Act::NoConnection,
    Act::Decline,
    Act::BadCredential,
];

impl Provider {
    pub(super) fn new(world: &Arc<World>, promise: Promise) -> Self {
        Self { world: world.clone(), promise, handle_stored: Arc::default() }
    }

    /// Sends a request as an adapter does: with the key, under a permit.
    pub(super) async fn send(&self, cx: &EffectContext, amount: u64) -> Answer {
        let key = match self.promise {
            Promise::NothingWithoutKey => String::new(),
            _ => cx.idempotency_key().to_owned(),
        };
        let act = self.act();
        if !self.goes_without_permit() {
            self.hesitate().await;
            let digest = [u8::try_from(amount % 251).unwrap_or(0); 32];
            let _permit = cx.begin_send(digest).map_err(|refused| {
                self.world.watch.refused(refused);
                Trouble::NotSent(refused)
            })?;
        }
        let _performing = self.world.watch.permitted(&self.world, cx);
        if act == Act::NoConnection {
            clock::sleep(self.world.network_latency()).await;
            return Err(Trouble::NoConnection);
        }
        let answer = self.hand_over(cx.effect_id().clone(), key, amount, act);
        chaos::strike_here(&self.world);
        let answer = answer.await.ok();
        match (act, answer) {
            (Act::PerformAndPanic, _) => std::panic::resume_unwind(Box::new(PlannedPanic)),
            (_, None) => Err(Trouble::Lost),
            (_, Some((answer, replay))) => {
                if replay {
                    cx.mark_provider_replay();
                }
                answer
            }
        }
    }

    fn goes_without_permit(&self) -> bool {
        self.world.plan.calm && self.promise == Promise::Deduplicates
    }

    fn act(&self) -> Act {
        if !self.world.fault(self.world.plan.provider_faults) {
            return Act::Perform;
        }
        self.world.scheduler.random(|random| random.pick(&FAULTS))
    }

    /// The bytes leave: what becomes of them does not depend on who sent them.
    fn hand_over(
        &self,
        id: EffectId,
        key: String,
        amount: u64,
        act: Act,
    ) -> oneshot::Receiver<(Answer, bool)> {
        let world = self.world.clone();
        let promise = self.promise;
        let (told, answer) = oneshot::channel();
        // A request that is under way when its attempt's time is over may still arrive.
        let late = world.fault(world.plan.provider_faults) && !self.goes_without_permit();
        let way = if late { ATTEMPT_TIMEOUT } else { Duration::from_millis(10) };
        let way = world.up_to(way);
        world.clone().scheduler.spawn_on(WORLD, async move {
            clock::sleep(way).await;
            let answer = world.books.arrive(&world, &id, &key, amount, act, promise).await;
            clock::sleep(world.network_latency()).await;
            match act {
                Act::PerformAndLose | Act::Lose => drop(told),
                Act::PerformAndHang | Act::Hang => {
                    clock::sleep(ATTEMPT_TIMEOUT * 20).await;
                    drop(told);
                }
                _ => drop(told.send(answer)),
            }
        });
        answer
    }

    /// A body that does something else first, or is kept from going on.
    async fn hesitate(&self) {
        if self.world.fault(self.world.plan.provider_faults / 2) {
            chaos::strike_here(&self.world);
            clock::sleep(self.world.up_to(ATTEMPT_TIMEOUT)).await;
        }
    }

    /// What a look-up that begins now finds: everything but what is younger than this.
    pub(super) fn find(&self, id: &EffectId, delay: Duration) -> Option<Done> {
        let now = self.world.scheduler.now();
        let inner = self.world.books.inner();
        let found = inner.get(id)?.performed.iter().find(|(at, _)| *at + delay <= now)?;
        Some(found.1.clone())
    }

    /// Submits a job and stores its handle.
    pub(super) async fn submit(&self, cx: &EffectContext, amount: u64) -> Answer {
        let act = self.act();
        self.hesitate().await;
        let _permit = cx.send_permit().map_err(Trouble::NotSent)?;
        let _performing = self.world.watch.permitted(&self.world, cx);
        if self.world.books.has_handle(cx.effect_id()) {
            self.world.watch.violated("submitted again after its handle was stored");
        }
        if act == Act::NoConnection {
            return Err(Trouble::NoConnection);
        }
        let (told, taken) = oneshot::channel();
        let (world, id) = (self.world.clone(), cx.effect_id().clone());
        world.clone().scheduler.spawn_on(WORLD, async move {
            clock::sleep(world.network_latency()).await;
            world.books.take_job(&id, amount, world.scheduler.now());
            clock::sleep(world.network_latency()).await;
            let _ = told.send(());
        });
        let taken = taken.await;
        if act != Act::Perform || taken.is_err() {
            return Err(Trouble::Lost);
        }
        if cx.accepted("job", Duration::from_millis(50)).await.is_ok() {
            self.world.books.inner().entry(cx.effect_id().clone()).or_default().handle = true;
            self.handle_stored.store(true, Ordering::Relaxed);
            if self.world.fault(300) {
                // Whatever a body says, the provider works on it.
                return Err(Trouble::BadCredential);
            }
        }
        Err(Trouble::Lost)
    }

    /// An accepted effect is never said not to have been performed.
    pub(super) fn check_end(&self, kind: ErrorKind) {
        let denied = matches!(kind, ErrorKind::Failed | ErrorKind::RetryLater);
        if denied && self.handle_stored.load(Ordering::Relaxed) {
            self.world.watch.violated("accepted, and said not to have been performed");
        }
    }
}

impl Books {
    /// A request arrives, is worked on and answered; whether the answer is a replay.
    async fn arrive(
        &self,
        world: &World,
        id: &EffectId,
        key: &str,
        amount: u64,
        act: Act,
        promise: Promise,
    ) -> (Answer, bool) {
        match act {
            Act::TooBusy => {
                let delay = world.up_to(Duration::from_millis(300));
                return (Err(Trouble::TooBusy(delay)), false);
            }
            Act::BadCredential => return (Err(Trouble::BadCredential), false),
            Act::Lose | Act::Hang => return (Err(Trouble::Lost), false),
            _ => {}
        }
        if let Some(known) = self.known(world, id, key, promise) {
            return known;
        }
        if promise.deduplicates() {
            clock::sleep(world.up_to(SETTLE_DELAY)).await;
        }
        let mut inner = self.inner();
        let account = inner.entry(id.clone()).or_default();
        let now = world.scheduler.now();
        let answer = if act == Act::Decline {
            Err(Trouble::Declined)
        } else {
            let number = u32::try_from(account.performed.len() + 1).unwrap_or(u32::MAX);
            let done = Done { amount, number };
            account.performed.push((now, done.clone()));
            Ok(done)
        };
        if promise.deduplicates() {
            let since = account.remembered.as_ref().map_or(now, |(since, _)| *since);
            account.remembered = Some((since, Some(answer.clone())));
        }
        (answer, false)
    }

    /// What the provider says of a key that it remembers.
    fn known(&self, world: &World, id: &EffectId, key: &str, promise: Promise) -> Option<(Answer, bool)> {
        let mut inner = self.inner();
        let account = inner.entry(id.clone()).or_default();
        let known_key = account.key.get_or_insert_with(|| key.to_owned());
        if known_key != key {
            world.watch.violated("an effect has two provider keys");
        }
        if !promise.deduplicates() {
            return None;
        }
        let now = world.scheduler.now();
        match &account.remembered {
            Some((since, _)) if *since + WINDOW <= now => {}
            Some((_, Some(answer))) => return Some((answer.clone(), true)),
            Some((_, None)) if promise == Promise::Deduplicates => {
                return Some((Err(Trouble::KeyInFlight), false));
            }
            _ => {}
        }
        let since =
            account.remembered.as_ref().map(|(since, _)| *since).filter(|since| *since + WINDOW > now);
        account.remembered = Some((since.unwrap_or(now), None));
        None
    }

    /// The provider takes a job and works on it: that counts as the performance.
    fn take_job(&self, id: &EffectId, amount: u64, now: Duration) {
        self.inner().entry(id.clone()).or_default().performed.push((now, Done { amount, number: 1 }));
    }

    fn has_handle(&self, id: &EffectId) -> bool {
        self.inner().get(id).is_some_and(|account| account.handle)
    }
}

impl World {
    /// A duration from zero to this one.
    pub(super) fn up_to(&self, longest: Duration) -> Duration {
        let micros = i64::try_from(longest.as_micros()).unwrap_or(i64::MAX);
        Duration::from_micros(self.scheduler.random(|random| random.below(micros)).unsigned_abs())
    }
}

pub(super) fn found(done: Option<Done>) -> Found<Done, Trouble> {
    done.map_or(Found::Absent, Found::Done)
}
