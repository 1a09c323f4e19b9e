//! What the callers of an effect are told, and how: the last word counts, and most of the time nobody listens.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

use super::{held::Held, known::Known};
use crate::{clock::Until, ledger::EffectRecord};

/// What the callers of an effect are told.
#[derive(Clone)]
pub(crate) enum News {
    /// The ledger is being asked.
    Asked,
    /// This process works on it.
    Here(Arc<Held>),
    /// Another process does: for so long its lease runs, and so soon its claim is looked at again.
    Elsewhere(Until, Duration),
    /// Its outcome is stored.
    Settled(Arc<Known>),
    /// Who worked on it gave it back and did not perform it.
    Released(Arc<EffectRecord>),
    /// Nothing that holds for others: each asks for itself.
    Nothing,
}

/// Where one speaker's news are read.
pub(crate) struct Board {
    last: Mutex<Last>,
    told: Notify,
}

struct Last {
    news: News,
    /// How often the listeners were told.
    times: u64,
    /// Nothing will be told any more.
    closed: bool,
}

/// One that reads a board, and remembers what it has read.
pub(crate) struct Listener {
    board: Arc<Board>,
    read: u64,
}

/// The speaker has gone, and said nothing since.
pub(crate) struct Closed;

impl News {
    fn is_last(&self) -> bool {
        matches!(self, Self::Settled(_) | Self::Released(_) | Self::Nothing)
    }
}

impl Board {
    pub(super) fn new(news: News) -> Arc<Self> {
        Arc::new(Self { last: Mutex::new(Last { news, times: 0, closed: false }), told: Notify::new() })
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_here(&self) -> bool {
        matches!(self.last().news, News::Here(_))
    }

    /// Whether a caller that comes now has nothing to wait for here.
    pub(super) fn is_over(&self) -> bool {
        let last = self.last();
        last.closed || last.news.is_last()
    }

    /// Tells the listeners.
    pub(super) fn tell(&self, news: News) {
        let mut last = self.last();
        last.times += 1;
        // What was said before may hold a claim: it is dropped behind the lock.
        let _before = std::mem::replace(&mut last.news, news);
        drop(last);
        self.told.notify_waiters();
    }

    /// For who reads it later; wakes nobody.
    pub(super) fn note(&self, news: News) {
        let mut last = self.last();
        let _before = std::mem::replace(&mut last.news, news);
        drop(last);
    }

    pub(super) fn close(&self) {
        self.last().closed = true;
        self.told.notify_waiters();
    }
}

impl Listener {
    /// Has read nothing that is told from now on.
    pub(super) fn new(board: &Arc<Board>) -> Self {
        let read = board.last().times;
        Self { board: board.clone(), read }
    }

    /// The last word, which counts as read.
    pub(crate) fn read(&mut self) -> News {
        let last = self.board.last();
        self.read = last.times;
        last.news.clone()
    }

    /// Resolves when there is something unread, and counts it as read.
    ///
    /// # Cancel safety
    /// What was told while nobody waited is unread.
    pub(crate) async fn told(&mut self) -> Result<(), Closed> {
        loop {
            let mut told = std::pin::pin!(self.board.told.notified());
            // Before it is looked at: nothing that is told from now on is missed.
            told.as_mut().enable();
            {
                let last = self.board.last();
                if last.times != self.read {
                    self.read = last.times;
                    return Ok(());
                }
                if last.closed {
                    return Err(Closed);
                }
            }
            told.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Poll, Waker},
    };

    use super::*;

    fn poll_told(listener: &mut Listener) -> Poll<Result<(), Closed>> {
        pin!(listener.told()).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn what_is_told_while_nobody_waits_is_unread_and_what_is_noted_is_not_told() {
        let board = Board::new(News::Asked);
        let (mut one, mut two) = (Listener::new(&board), Listener::new(&board));
        assert!(poll_told(&mut one).is_pending());
        board.note(News::Nothing);
        assert!(poll_told(&mut one).is_pending() && matches!(one.read(), News::Nothing));
        board.tell(News::Asked);
        assert!(matches!(one.read(), News::Asked) && poll_told(&mut one).is_pending(), "it is read");
        assert!(matches!(poll_told(&mut two), Poll::Ready(Ok(()))) && poll_told(&mut two).is_pending());
        board.tell(News::Nothing);
        board.close();
        assert!(matches!(poll_told(&mut one), Poll::Ready(Ok(()))), "the last word comes before the end");
        assert!(matches!(poll_told(&mut one), Poll::Ready(Err(Closed))));
        assert!(board.is_over());
    }

    #[tokio::test]
    async fn who_waits_is_woken_by_a_word_and_by_the_end() {
        let board = Board::new(News::Asked);
        for ends in [false, true] {
            let mut listener = Listener::new(&board);
            let (told, ()) = tokio::join!(listener.told(), async {
                if ends { board.close() } else { board.tell(News::Nothing) }
            });
            assert_eq!(told.is_err(), ends);
        }
    }
}
