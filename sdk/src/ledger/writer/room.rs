//! Room for claims: how many may wait, and what becomes of one that finds no room.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::lanes::Lanes;
use crate::{
    identity::Tenant,
    ledger::{LedgerError, LedgerErrorKind},
};

/// How many claims wait at the most, unless set otherwise.
const WAITING_MAX: usize = 4096;

/// What becomes of a claim while as many wait as are allowed to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenFull {
    /// It waits for room, and tenants take turns.
    #[default]
    Wait,
    /// It fails at once with [`Overloaded`](LedgerErrorKind::Overloaded): nothing was started.
    Refuse,
}

/// How many claims may wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) waiting_max: usize,
    pub(crate) when_full: WhenFull,
}

impl Default for Limits {
    fn default() -> Self {
        Self { waiting_max: WAITING_MAX, when_full: WhenFull::Wait }
    }
}

/// Where claims come in.
pub(super) struct Door {
    limits: Limits,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    /// How many have room.
    count: usize,
    /// Who waits for it.
    outside: Lanes<oneshot::Sender<Room>>,
}

/// One claim's room, until a writer takes the claim. Given back, it goes to who waits for it.
pub(super) struct Room(Option<Arc<Door>>);

impl Door {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        let limits = Limits { waiting_max: limits.waiting_max.max(1), ..limits };
        Arc::new(Self { limits, inside: Mutex::default() })
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room for a claim of `tenant`. Dropped while it waits, it leaves none taken.
    pub(super) async fn enter(self: &Arc<Self>, tenant: &Tenant) -> Result<Room, LedgerError> {
        let waiting = {
            let mut inside = self.inside();
            if inside.count < self.limits.waiting_max {
                inside.count += 1;
                return Ok(Room(Some(Arc::clone(self))));
            }
            if self.limits.when_full == WhenFull::Refuse {
                return Err(self.overloaded());
            }
            let (room, waiting) = oneshot::channel();
            inside.outside.push(tenant, room);
            waiting
        };
        waiting.await.map_err(|_| super::closed())
    }

    fn overloaded(&self) -> LedgerError {
        LedgerError::new(
            LedgerErrorKind::Overloaded,
            format!(
                "{} claims wait to be stored, as many as `waiting_max` allows; nothing was started, the provider was not \
                 called, and it is safe to call again once there is less to do: make fewer calls at a time, or set a \
                 greater `waiting_max` or `when_full(WhenFull::Wait)`",
                self.limits.waiting_max
            ),
        )
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let Some(door) = self.0.take() else { return };
        loop {
            let next = {
                let mut inside = door.inside();
                let next = inside.outside.pop();
                inside.count -= usize::from(next.is_none());
                next
            };
            let Some(next) = next else { return };
            match next.send(Self(Some(Arc::clone(&door)))) {
                Ok(()) => return,
                // Who waited went away.
                Err(mut room) => drop(room.0.take()),
            }
        }
    }
}
