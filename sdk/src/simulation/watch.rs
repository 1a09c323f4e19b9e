//! What must hold whatever the schedule, as seen from outside the library.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::{
    effects::Kind,
    provider::{Done, Trouble, WINDOW},
    world::{ATTEMPT_TIMEOUT, World},
};
use crate::{
    EffectContext, EffectId, ErrorKind, RecoveryClass, SendRefused,
    ledger::record::{EffectRecord, OutcomeBody, OutcomeKind, State},
};

/// What a call came to, for a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Answer {
    Done(Done),
    Refused(Trouble),
}

counted! {
    /// How often a caller or a body met this.
    Seen { done, refused, escaped, mismatched, accepted, other, permits, lease_too_short, window_over }
}

/// How a call ended; without a kind, with a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    pub(super) kind: Option<ErrorKind>,
    pub(super) retry_after: Option<Duration>,
}

#[derive(Default)]
pub(super) struct Watch {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    violation: Option<String>,
    permits: Vec<Permit>,
    next: u64,
    first: HashMap<EffectId, Answer>,
    seen: Seen,
}

/// A body past its permit.
struct Permit {
    number: u64,
    id: EffectId,
    fence: i64,
    at: Duration,
}

/// A body that is past its permit, until it is gone.
pub(super) struct Performing {
    world: Arc<World>,
    number: u64,
}

impl Drop for Performing {
    fn drop(&mut self) {
        self.world.watch.inner().permits.retain(|permit| permit.number != self.number);
    }
}

impl Watch {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn violated(&self, what: impl Into<String>) {
        self.inner().violation.get_or_insert(what.into());
    }

    pub(super) fn violation(&self) -> Option<String> {
        self.inner().violation.clone()
    }

    pub(super) fn seen(&self) -> Seen {
        self.inner().seen
    }

    pub(super) fn refused(&self, refused: SendRefused) {
        let seen = &mut self.inner().seen;
        match refused {
            SendRefused::LeaseTooShort => seen.lease_too_short += 1,
            SendRefused::WindowOver => seen.window_over += 1,
            _ => {}
        }
    }

    /// A body got its permit: nobody under another fence may be authorised at this moment. A body whose process is stopped has
    /// handed over its request, and its authority ends with the attempt's time.
    pub(super) fn permitted(&self, world: &Arc<World>, cx: &EffectContext) -> Performing {
        let now = world.scheduler.now();
        let mut inner = self.inner();
        inner.seen.permits += 1;
        let (id, fence) = (cx.effect_id(), cx.fence());
        let other = inner
            .permits
            .iter()
            .find(|permit| permit.id == *id && permit.fence != fence && now < permit.at + ATTEMPT_TIMEOUT);
        if let Some(other) = other {
            let text = format!(
                "two performers: under fence {} since {:?}, under {fence} at {now:?}",
                other.fence, other.at
            );
            inner.violation.get_or_insert(text);
        }
        let number = inner.next;
        inner.next += 1;
        inner.permits.push(Permit { number, id: id.clone(), fence, at: now });
        Performing { world: world.clone(), number }
    }

    /// A caller got its answer: an outcome is in the store already, and is the one that every caller gets.
    pub(super) fn returned(
        &self,
        world: &World,
        id: &EffectId,
        amount: u64,
        result: crate::Result<Done, Trouble>,
    ) -> Ended {
        let answer = match result {
            Ok(done) => {
                self.inner().seen.done += 1;
                if done.amount != amount {
                    self.violated(format!("asked for {amount} and got {done:?}"));
                }
                Answer::Done(done)
            }
            Err(error) => {
                let ended = Ended { kind: Some(error.kind()), retry_after: error.retry_after() };
                self.count(error.kind());
                match error.into_error() {
                    Some(error) if ended.kind == Some(ErrorKind::Refused) => Answer::Refused(error),
                    _ => return ended,
                }
            }
        };
        self.stored(world, id, &answer);
        let ended = Ended {
            kind: matches!(answer, Answer::Refused(_)).then_some(ErrorKind::Refused),
            retry_after: None,
        };
        let first = self.inner().first.entry(id.clone()).or_insert(answer.clone()).clone();
        if first != answer {
            self.violated(format!("first {first:?} and then {answer:?}"));
        }
        ended
    }

    fn count(&self, kind: ErrorKind) {
        let seen = &mut self.inner().seen;
        match kind {
            ErrorKind::Escaped => seen.escaped += 1,
            ErrorKind::Refused => seen.refused += 1,
            ErrorKind::Mismatch => seen.mismatched += 1,
            ErrorKind::Accepted => seen.accepted += 1,
            ErrorKind::Config | ErrorKind::Unreadable | ErrorKind::Expired | ErrorKind::SchemaAmbiguous => {
                self.violated(format!("an end that nothing here leads to: {kind:?}"));
            }
            _ => seen.other += 1,
        }
    }

    fn stored(&self, world: &World, id: &EffectId, answer: &Answer) {
        let row = world.store.read(id).map(|history| history.effect);
        let outcome = row.as_ref().and_then(|row| row.outcome.as_ref());
        let stored = match outcome.map(|outcome| (outcome.kind, &outcome.body)) {
            Some((OutcomeKind::Success, OutcomeBody::Payload(payload))) => {
                serde_json::from_slice(&payload.bytes).ok().map(Answer::Done)
            }
            Some((OutcomeKind::Refusal, OutcomeBody::Payload(payload))) => {
                serde_json::from_slice(&payload.bytes).ok().map(Answer::Refused)
            }
            _ => None,
        };
        if stored.as_ref() != Some(answer) {
            self.violated(format!("returned {answer:?} and stored {row:?}"));
        }
    }
}

/// What is wrong with an effect once everything has come to rest and a last caller got this.
pub(super) fn at_the_end(world: &World, kind: Kind, id: &EffectId, last: Ended) -> Result<(), String> {
    let Some(history) = world.store.read(id) else { return Err(format!("{kind:?}: not recorded")) };
    let (row, performed) = (&history.effect, world.books.performed(id));
    let wrong =
        |what: &str| Err(format!("{kind:?}: {what}; performed {performed} times, last {last:?}: {row:?}"));
    if performed > 1 && !kind.may_repeat(&world.plan) {
        return wrong("performed more than once");
    }
    match (row.state, &row.outcome) {
        (State::Claimed, _) => wrong("still claimed after its lease and a last caller"),
        (State::Released, _) if performed > 0 && row.accepted.is_none() => {
            wrong("released, and it was performed")
        }
        (State::Completed, Some(outcome)) => match outcome.kind {
            OutcomeKind::Success if performed == 0 => wrong("a success that nobody performed"),
            OutcomeKind::Refusal if performed > 0 => wrong("refused, and it was performed"),
            _ if matches!(last.kind, None | Some(ErrorKind::Refused)) => Ok(()),
            _ => wrong("completed, and a last caller did not get the answer"),
        },
        _ => ends(world, kind, row, last).or_else(|what| wrong(&what)),
    }
}

/// Whether an effect without an outcome may be left so.
fn ends(world: &World, kind: Kind, row: &EffectRecord, last: Ended) -> Result<(), String> {
    let doubted = |class| row.doubt.as_ref().is_some_and(|doubt| doubt.class >= class);
    let window_over = row.doubt.as_ref().is_some_and(|doubt| {
        let since = world.scheduler.true_ms() - doubt.since;
        u128::try_from(since).is_ok_and(|since| since + 500 > WINDOW.as_millis())
    });
    let may_escape = match kind {
        Kind::Hold | Kind::Attached => doubted(RecoveryClass::Hold),
        Kind::Resend | Kind::Quiet | Kind::Keyless => doubted(RecoveryClass::Hold) || window_over,
        Kind::Reconcile | Kind::Asked | Kind::Rerun => doubted(RecoveryClass::Hold),
        Kind::Accepted => false,
    };
    match last.kind {
        Some(ErrorKind::Escaped) if may_escape && row.state == State::Escaped => Ok(()),
        Some(ErrorKind::Accepted) if kind == Kind::Accepted && row.accepted.is_some() => Ok(()),
        _ => Err("a last caller got no further".to_owned()),
    }
}
