//! Whether the next claims are likely for effects that nobody has claimed yet.

use super::{judging::Trust, writing::Judged};
use crate::ledger::writer::Command;

/// What the last batch says of the next: a crowd of new effects needs no look before its claims, and hits need no lock.
/// A wrong guess costs a statement, and nothing else: a claim that finds a row is read and judged.
#[derive(Debug, Default)]
pub(super) struct Guess {
    absent: bool,
}

impl Guess {
    pub(super) fn is_absent(&self) -> bool {
        self.absent
    }

    /// Learns from a round; `again` are the positions of what it could not store.
    pub(super) fn learn(&mut self, commands: &[&Command], judged: &[Judged], again: &[usize], trust: Trust) {
        let mut claims =
            (0..commands.len()).filter(|at| matches!(commands[*at], Command::Claim(_))).peekable();
        if claims.peek().is_some() {
            self.absent = claims.all(|at| match trust.absence {
                true => !again.contains(&at),
                false => judged[at].is_new(),
            });
        }
    }
}
