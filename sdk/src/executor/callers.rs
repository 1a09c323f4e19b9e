//! The callers of one effect in this process: one of them asks the ledger, and those that ask for the same wait for what it
//! learns. So a crowd of them costs the ledger little more than one.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    core::Core,
    held::Held,
    news::{Board, Listener, News},
};
use crate::identity::{ArgumentDigest, ByDigest, EffectId};

/// Who speaks for which effects.
#[derive(Default)]
pub(crate) struct Callers(Mutex<Entries>);

type Entries = HashMap<EffectId, Entry, ByDigest>;

struct Entry {
    asked: Arc<[ArgumentDigest]>,
    news: Arc<Board>,
}

/// What a caller that comes finds.
pub(crate) enum Found {
    /// Nobody: it is the one that asks.
    Nobody(Speaker),
    /// Another that asks for the same.
    Others(Listener),
    /// Another that asks for something else, so that its answer says nothing here.
    Another,
}

/// The caller that speaks for all of an effect, until it is dropped.
pub(crate) struct Speaker {
    core: Arc<Core>,
    id: EffectId,
    news: Arc<Board>,
}

impl Callers {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when this process no longer works on the effect; `None` if it does not.
    pub(crate) fn here(&self, id: &EffectId) -> Option<Listener> {
        let entries = self.entries();
        let entry = entries.get(id)?;
        entry.news.is_here().then(|| Listener::new(&entry.news))
    }
}

impl Core {
    /// Who else of this process asks for the effect.
    pub(crate) fn others(self: &Arc<Self>, id: &EffectId, asked: &Arc<[ArgumentDigest]>) -> Found {
        let mut entries = self.callers.entries();
        match entries.get(id).filter(|entry| !entry.news.is_over()) {
            Some(entry) if entry.asked == *asked => Found::Others(Listener::new(&entry.news)),
            Some(_) => Found::Another,
            None => {
                let speaker = Speaker { core: self.clone(), id: id.clone(), news: Board::new(News::Asked) };
                speaker.put(&mut entries, asked);
                Found::Nobody(speaker)
            }
        }
    }

    /// Speaks for a claim that was won, whoever asked for it: `asking`, if that asked for the same effect.
    pub(crate) fn speak_for(
        self: &Arc<Self>,
        held: &Arc<Held>,
        asked: &Arc<[ArgumentDigest]>,
        asking: Option<Speaker>,
    ) -> Speaker {
        let here = News::Here(held.clone());
        let speaker = match asking.filter(|asking| asking.id == *held.id()) {
            Some(asking) => {
                asking.tell(here);
                asking
            }
            None => Speaker { core: self.clone(), id: held.id().clone(), news: Board::new(here) },
        };
        speaker.put(&mut self.callers.entries(), asked);
        speaker
    }
}

impl Speaker {
    /// From now on it is this one that is listened to.
    fn put(&self, entries: &mut Entries, asked: &Arc<[ArgumentDigest]>) {
        entries.insert(self.id.clone(), Entry { asked: asked.clone(), news: self.news.clone() });
    }

    /// Tells the others, now.
    pub(crate) fn tell(&self, news: News) {
        self.news.tell(news);
    }

    /// Leaves word for who asks later, and wakes nobody.
    pub(crate) fn note(&self, news: News) {
        self.news.note(news);
    }

    /// Whether anybody listens, at this moment.
    pub(crate) fn is_heard(&self) -> bool {
        // Besides this one the entry has it.
        Arc::strong_count(&self.news) > 2
    }
}

impl Drop for Speaker {
    fn drop(&mut self) {
        let mut entries = self.core.callers.entries();
        if entries.get(&self.id).is_some_and(|current| Arc::ptr_eq(&current.news, &self.news)) {
            entries.remove(&self.id);
        }
        drop(entries);
        self.news.close();
    }
}
