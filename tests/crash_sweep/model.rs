//! What must be: a call as a list of boundaries, and what is on disk and at the provider at each of them. Written from the
//! promise of each class and not from the library's code.

use crate::boundary::{Boundary, Boundary::*, Stop};

/// The recovery classes that a worker's effects have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    Resend,
    Reconcile,
    Hold,
    Rerun,
}

pub(crate) const CLASSES: [Class; 4] = [Class::Resend, Class::Reconcile, Class::Hold, Class::Rerun];

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Open,
    NotPerformed,
    Unknown,
    Performed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Absent,
    Claimed,
    Completed,
    Escaped,
}

/// What a call gives: the number of the performance, or that nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gives {
    Number(u32),
    Escaped,
}

/// The process died.
pub(crate) struct Died;

/// One effect: its row, and the provider's count.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    class: Class,
    pub(crate) state: State,
    pub(crate) attempts: Vec<End>,
    in_doubt: bool,
    stored: u32,
    /// Whether the provider refuses the next request for being busy.
    is_busy: bool,
    pub(crate) performed: u32,
    pub(crate) requests: usize,
    pub(crate) questions: u32,
    stop: Option<Stop>,
    path: Vec<Boundary>,
}

impl Model {
    pub(crate) fn new(class: Class, is_busy: bool) -> Self {
        Self {
            class,
            state: State::Absent,
            attempts: Vec::new(),
            in_doubt: false,
            stored: 0,
            is_busy,
            performed: 0,
            requests: 0,
            questions: 0,
            stop: None,
            path: Vec::new(),
        }
    }

    /// The boundaries that the next call passes if its process lives, as stops.
    pub(crate) fn path(&self) -> Vec<Stop> {
        let mut alive = self.clone();
        alive.path.clear();
        alive.stop = None;
        drop(alive.call());
        let nth = |at: usize| alive.path[..=at].iter().filter(|passed| **passed == alive.path[at]).count();
        (0..alive.path.len()).map(|at| (alive.path[at], nth(at))).collect()
    }

    /// A call whose process is killed at the stop, long after the one before.
    pub(crate) fn die_at(&mut self, stop: Stop) {
        self.path.clear();
        self.stop = Some(stop);
        assert!(self.call().is_err(), "the call does not come to {stop:?}");
        self.stop = None;
    }

    fn pass(&mut self, boundary: Boundary) -> Result<(), Died> {
        self.path.push(boundary);
        let nth = self.path.iter().filter(|passed| **passed == boundary).count();
        if self.stop == Some((boundary, nth)) { Err(Died) } else { Ok(()) }
    }

    /// A call, after the lease of any earlier one.
    pub(crate) fn call(&mut self) -> Result<Gives, Died> {
        self.pass(BeforeClaim)?;
        let is_open = self.attempts.last() == Some(&End::Open);
        self.in_doubt |= is_open;
        match (self.state, self.class) {
            (State::Completed, _) => {
                self.pass(AfterClaim)?;
                Ok(Gives::Number(self.stored))
            }
            (State::Absent, _) => self.open_and_attempt(AfterClaim),
            (_, Class::Hold) if self.in_doubt => {
                self.state = State::Escaped;
                self.pass(AfterClaim)?;
                Ok(Gives::Escaped)
            }
            (_, Class::Reconcile) if self.in_doubt => {
                self.end_open_attempt(End::Unknown);
                self.pass(AfterClaim)?;
                self.ask()
            }
            _ => {
                self.end_open_attempt(End::Unknown);
                self.open_and_attempt(AfterClaim)
            }
        }
    }

    fn end_open_attempt(&mut self, end: End) {
        if let Some(last) = self.attempts.last_mut().filter(|last| **last == End::Open) {
            *last = end;
        }
    }

    fn open_and_attempt(&mut self, stored: Boundary) -> Result<Gives, Died> {
        self.state = State::Claimed;
        self.attempts.push(End::Open);
        self.pass(stored)?;
        self.pass(BeforeSend)?;
        self.requests += 1;
        if std::mem::take(&mut self.is_busy) {
            self.pass(BeforeEnd)?;
            self.end_open_attempt(End::NotPerformed);
            self.pass(AfterEnd)?;
            self.pass(BeforeOpen)?;
            return self.open_and_attempt(AfterOpen);
        }
        // A provider that knows keys performs a key once.
        if self.class != Class::Resend || self.performed == 0 {
            self.performed += 1;
        }
        self.pass(Acted)?;
        self.settle()
    }

    fn ask(&mut self) -> Result<Gives, Died> {
        self.questions += 1;
        self.pass(Asked)?;
        if self.performed > 0 {
            return self.settle();
        }
        self.pass(BeforeOpen)?;
        self.in_doubt = false;
        self.open_and_attempt(AfterOpen)
    }

    fn settle(&mut self) -> Result<Gives, Died> {
        self.pass(BeforeSettle)?;
        if let Some(last) = self.attempts.last_mut() {
            *last = End::Performed;
        }
        (self.state, self.stored) = (State::Completed, self.performed);
        self.pass(AfterSettle)?;
        Ok(Gives::Number(self.stored))
    }
}
