//! What a call tells beside its value.

use std::sync::{Arc, Mutex, PoisonError};

use crate::identity::EffectId;

/// Filled by a call in a scope that has it: which effect the call was of, and whether its answer was a replay.
///
/// Clones share their content. Of several calls the one that ended last counts.
#[derive(Debug, Clone, Default)]
pub struct Receipt(Arc<Mutex<Option<Content>>>);

#[derive(Debug, Clone)]
struct Content {
    effect_id: EffectId,
    replayed: bool,
}

impl Receipt {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn fill(&self, effect_id: EffectId, replayed: bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Content { effect_id, replayed });
    }

    fn read<R>(&self, read: impl FnOnce(&Content) -> R) -> Option<R> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(read)
    }

    /// Which effect the call was of; `None` before a call has ended.
    #[must_use]
    pub fn effect_id(&self) -> Option<EffectId> {
        self.read(|content| content.effect_id.clone())
    }

    /// Whether the answer was stored before the call, so that this call performed nothing.
    #[must_use]
    pub fn replayed(&self) -> bool {
        self.read(|content| content.replayed).unwrap_or(false)
    }
}
