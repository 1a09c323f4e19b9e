//! Every life of one effect with two workers, in small: each step is a judgement of [`claim`] or [`change`], and every state
//! that can be reached is visited.
//!
//! The clock counts ticks. A request is under way from its permit for as long as an attempt may take, whatever becomes of its
//! sender, and may arrive at any moment until then.

mod asked;
mod life;

use stateright::{Checker, Model, Property};

use self::life::{Act, Life, Worker};
use crate::{
    descriptor::RecoveryClass,
    ledger::record::{OutcomeKind, State},
};

/// One class under the model.
struct Protocol {
    class: RecoveryClass,
    workers: usize,
    /// How many attempts there are at the most.
    attempts_max: u8,
    ticks_max: i64,
}

impl Model for Protocol {
    type State = Life;
    type Action = Act;

    fn init_states(&self) -> Vec<Life> {
        vec![Life::new(self.class, self.workers)]
    }

    fn actions(&self, life: &Life, actions: &mut Vec<Act>) {
        life.acts(self.attempts_max, self.ticks_max, actions);
    }

    fn next_state(&self, life: &Life, act: Act) -> Option<Life> {
        let mut next = life.clone();
        next.take(act);
        (next != *life).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("at most one worker may send", |_, life: &Life| {
                life.workers.iter().filter(|worker| life.may_send(worker)).count() <= 1
            }),
            Property::always("performed once, but for a rerun", |model: &Self, life: &Life| {
                life.performed <= 1 || model.class == RecoveryClass::Rerun
            }),
            Property::always("an outcome stays", |_, life: &Life| {
                life.outcome_by.is_none() || life.outcome_by == life.first_outcome_by
            }),
            Property::always("a first outcome is not taken back", |_, life: &Life| {
                life.first_outcome_by.is_none() || life.state() == Some(State::Completed)
            }),
            Property::always("what is released was not performed", |_, life: &Life| {
                life.state() != Some(State::Released) || (life.performed == 0 && !life.is_under_way())
            }),
            Property::always("an outcome says what happened", |_, life: &Life| match life.outcome() {
                Some(OutcomeKind::Success) => life.performed > 0,
                Some(OutcomeKind::Refusal) => life.performed == 0 && !life.is_under_way(),
                None => true,
            }),
            Property::always("a doubt stays until it is answered", |_, life: &Life| !life.doubt_lost),
            Property::sometimes("it is completed", |_, life: &Life| life.state() == Some(State::Completed)),
            Property::sometimes("it is released", |_, life: &Life| life.state() == Some(State::Released)),
            Property::sometimes("it is escaped", |_, life: &Life| life.state() == Some(State::Escaped)),
            Property::sometimes("a worker lost its claim", |_, life: &Life| {
                life.workers
                    .iter()
                    .any(|worker| matches!(worker, Worker::Holds { .. } if life.is_stale(worker)))
            }),
        ]
    }
}

fn visit(class: RecoveryClass, workers: usize, attempts_max: u8, ticks_max: i64) {
    let protocol = Protocol { class, workers, attempts_max, ticks_max };
    let checker = protocol.checker().threads(1).spawn_bfs().join();
    println!("{class:?}, {workers} workers: {} states", checker.unique_state_count());
    checker.assert_properties();
    assert!(checker.is_done(), "every state is visited");
}

#[test]
fn hold_keeps_every_rule() {
    visit(RecoveryClass::Hold, 2, 3, 6);
}

#[test]
fn reconcile_keeps_every_rule() {
    visit(RecoveryClass::Reconcile, 2, 3, 6);
}

#[test]
fn resend_keeps_every_rule() {
    visit(RecoveryClass::Resend, 2, 3, 5);
}

#[test]
fn rerun_keeps_every_rule() {
    visit(RecoveryClass::Rerun, 2, 3, 5);
}
