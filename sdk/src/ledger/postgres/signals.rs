//! Who waits for whom.
//!
//! A notification takes a lock of the whole server until its transaction is committed, so none is sent where nobody
//! waits. A waiter tells all ledgers which effect it waits for; the one that moves this effect on tells all ledgers so.
//! Either message may get lost: waiters look again all the same.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;
use uuid::Uuid;

/// How many effects are remembered as waited for. What is forgotten is found by looking again.
const AWAITED_MAX: usize = 10_000;

/// What the ledgers of a database tell each other, of effects by the heads of their digests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// Somebody waits for these effects.
    Awaited,
    /// These effects may no longer be in flight.
    Moved,
}

impl News {
    pub(super) const ALL: [Self; 2] = [Self::Awaited, Self::Moved];

    pub(super) fn channel(self) -> &'static str {
        match self {
            Self::Awaited => "effectual_awaited",
            Self::Moved => "effectual_moved",
        }
    }
}

/// What one ledger knows of waiters: its own, and those of others.
#[derive(Default)]
pub(super) struct Signals {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// Waiters here. Dropping the sender wakes them.
    waiting: HashMap<Uuid, watch::Sender<()>>,
    /// What is waited for anywhere.
    awaited: HashSet<Uuid>,
}

/// A waiter, until it is dropped.
pub(super) struct Waiting<'s> {
    signals: &'s Signals,
    head: Uuid,
    /// Whether nobody else here waits for the effect, so that others have yet to be told.
    pub(super) is_first: bool,
    moved: watch::Receiver<()>,
}

impl Signals {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wait_for(&self, head: Uuid) -> Waiting<'_> {
        let mut known = self.known();
        let is_first = !known.waiting.contains_key(&head);
        let sender = known.waiting.entry(head).or_insert_with(|| watch::channel(()).0);
        Waiting { signals: self, head, is_first, moved: sender.subscribe() }
    }

    /// Takes in what another ledger, or this one, told.
    pub(super) fn heard(&self, news: News, head: Uuid) {
        let mut known = self.known();
        match news {
            News::Awaited => {
                if known.awaited.len() >= AWAITED_MAX {
                    known.awaited.clear();
                }
                known.awaited.insert(head);
            }
            News::Moved => {
                known.awaited.remove(&head);
                known.waiting.remove(&head);
            }
        }
    }

    /// Wakes every waiter: messages may have been missed.
    pub(super) fn missed(&self) {
        self.known().waiting.clear();
    }

    /// Of these effects, which no longer are in flight, those that somebody waits for. They are forgotten: who still
    /// waits tells so again.
    pub(super) fn take_awaited(&self, heads: impl Iterator<Item = Uuid>) -> Vec<Uuid> {
        let mut known = self.known();
        if known.awaited.is_empty() {
            return Vec::new();
        }
        heads.filter(|head| known.awaited.remove(head)).collect()
    }
}

impl Waiting<'_> {
    /// Resolves when the effect may have moved on.
    pub(super) async fn moved(&mut self) {
        // The sender says nothing and is dropped at the end.
        while self.moved.changed().await.is_ok() {}
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut known = self.signals.known();
        // A closed channel is no longer in the map: what is there now is that of later waiters.
        let is_open = self.moved.has_changed().is_ok();
        if is_open && known.waiting.get(&self.head).is_some_and(|sender| sender.receiver_count() <= 1) {
            known.waiting.remove(&self.head);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    const HEAD: Uuid = Uuid::from_u128(7);

    async fn is_woken(waiting: &mut Waiting<'_>) -> bool {
        clock::within(std::time::Duration::ZERO, waiting.moved()).await.is_some()
    }

    #[tokio::test]
    async fn news_of_the_effect_wakes_its_waiters_and_no_others() {
        let signals = Signals::default();
        let (mut one, mut two) = (signals.wait_for(HEAD), signals.wait_for(HEAD));
        let mut other = signals.wait_for(Uuid::from_u128(8));
        assert!(one.is_first && !two.is_first && other.is_first);
        assert!(!is_woken(&mut one).await);
        signals.heard(News::Awaited, HEAD);
        assert!(!is_woken(&mut one).await);
        signals.heard(News::Moved, HEAD);
        assert!(is_woken(&mut one).await && is_woken(&mut two).await && !is_woken(&mut other).await);
        let mut later = signals.wait_for(HEAD);
        drop((one, two));
        assert!(!is_woken(&mut later).await);
        signals.missed();
        assert!(is_woken(&mut later).await && is_woken(&mut other).await);
    }

    #[test]
    fn what_nobody_waits_for_is_not_told_and_nothing_is_kept() {
        let signals = Signals::default();
        assert!(signals.take_awaited([HEAD].into_iter()).is_empty());
        signals.heard(News::Awaited, HEAD);
        assert_eq!(signals.take_awaited([Uuid::nil(), HEAD].into_iter()), [HEAD]);
        assert!(signals.take_awaited([HEAD].into_iter()).is_empty());
        drop((signals.wait_for(HEAD), signals.wait_for(HEAD)));
        assert!(signals.known().waiting.is_empty());
        for number in 0..=AWAITED_MAX {
            signals.heard(News::Awaited, Uuid::from_u128(number as u128));
        }
        assert!(signals.known().awaited.len() <= AWAITED_MAX);
    }
}
