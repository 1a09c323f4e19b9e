//! The callers of one effect in this process: one of them asks the ledger, and those that ask for the same wait for what it
//! learns. So a crowd of them costs the ledger little more than one.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::watch;

use super::{core::Core, held::Held, known::Known};
use crate::{
    clock::Until,
    identity::{ArgumentDigest, EffectId},
    ledger::EffectRecord,
};

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

/// Who speaks for which effects.
#[derive(Default)]
pub(crate) struct Callers(Mutex<HashMap<EffectId, Entry>>);

struct Entry {
    asked: Arc<[ArgumentDigest]>,
    news: watch::Receiver<News>,
}

/// What a caller that comes finds.
pub(crate) enum Found {
    /// Nobody: it is the one that asks.
    Nobody(Speaker),
    /// Another that asks for the same.
    Others(watch::Receiver<News>),
    /// Another that asks for something else, so that its answer says nothing here.
    Another,
}

/// The caller that speaks for all of an effect, until it is dropped.
pub(crate) struct Speaker {
    core: Arc<Core>,
    id: EffectId,
    news: watch::Sender<News>,
    /// What the others look at, and not those of a later speaker.
    heard: watch::Receiver<News>,
}

impl News {
    fn is_last(&self) -> bool {
        matches!(self, Self::Settled(_) | Self::Released(_) | Self::Nothing)
    }
}

impl Entry {
    fn is_over(&self) -> bool {
        self.news.has_changed().is_err() || self.news.borrow().is_last()
    }
}

impl Callers {
    fn entries(&self) -> MutexGuard<'_, HashMap<EffectId, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when this process no longer works on the effect; `None` if it does not.
    pub(crate) fn here(&self, id: &EffectId) -> Option<watch::Receiver<News>> {
        let entries = self.entries();
        let entry = entries.get(id)?;
        let is_here = matches!(*entry.news.borrow(), News::Here(_));
        is_here.then(|| entry.news.clone())
    }
}

impl Core {
    /// Who else of this process asks for the effect.
    pub(crate) fn others(self: &Arc<Self>, id: &EffectId, asked: &Arc<[ArgumentDigest]>) -> Found {
        let mut entries = self.callers.entries();
        match entries.get(id).filter(|entry| !entry.is_over()) {
            Some(entry) if entry.asked == *asked => Found::Others(entry.news.clone()),
            Some(_) => Found::Another,
            None => Found::Nobody(self.put_speaker(&mut entries, id, asked, News::Asked)),
        }
    }

    /// Speaks for a claim that was won, whoever asked for it.
    pub(crate) fn speak_for(self: &Arc<Self>, held: &Arc<Held>, asked: &Arc<[ArgumentDigest]>) -> Speaker {
        let mut entries = self.callers.entries();
        self.put_speaker(&mut entries, held.id(), asked, News::Here(held.clone()))
    }

    fn put_speaker(
        self: &Arc<Self>,
        entries: &mut HashMap<EffectId, Entry>,
        id: &EffectId,
        asked: &Arc<[ArgumentDigest]>,
        news: News,
    ) -> Speaker {
        let (news, heard) = watch::channel(news);
        entries.insert(id.clone(), Entry { asked: asked.clone(), news: heard.clone() });
        Speaker { core: self.clone(), id: id.clone(), news, heard }
    }
}

impl Speaker {
    /// Tells the others, now.
    pub(crate) fn tell(&self, news: News) {
        self.news.send_replace(news);
    }

    /// Leaves word for who asks later, and wakes nobody.
    pub(crate) fn note(&self, news: News) {
        self.news.send_if_modified(|current| {
            *current = news;
            false
        });
    }
}

impl Drop for Speaker {
    fn drop(&mut self) {
        let mut entries = self.core.callers.entries();
        if entries.get(&self.id).is_some_and(|current| current.news.same_channel(&self.heard)) {
            entries.remove(&self.id);
        }
    }
}
