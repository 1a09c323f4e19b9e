//! A statement for every size of batch, and for each place in a transaction.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use sqlx::AssertSqlSafe;

/// How many rows a statement takes. What a batch leaves unbound is null, and a null digest is nobody's.
const SIZES: [usize; 16] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];

/// The most rows of one statement.
pub(super) const ROWS_MAX: usize = SIZES[SIZES.len() - 1];

/// Where in its transaction a statement stands. One that is the whole of it is named by nobody: SQLite begins and ends a
/// transaction with it by itself, and the connection's thread has one result to hand over instead of three, for each of
/// which it would wake the ledger's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Part {
    /// All of a transaction, or amid one that others begin and end.
    #[default]
    Plain,
    /// Begins one that others go on with.
    First,
    /// Ends one that others began.
    Last,
}

impl Part {
    const COUNT: usize = 3;

    fn around(self, statement: String) -> String {
        match self {
            Self::Plain => statement,
            Self::First => format!("BEGIN IMMEDIATE; {statement}"),
            Self::Last => format!("{statement}; COMMIT"),
        }
    }
}

/// A statement in all sizes, each written once so that the connection finds it prepared.
pub(super) struct Sized {
    row: String,
    text: Box<dyn Fn(&str) -> String + Send + Sync>,
    texts: [[OnceLock<Arc<str>>; Part::COUNT]; SIZES.len()],
}

impl Sized {
    /// `text` puts in the rows of so many columns.
    pub(super) fn new(columns: usize, text: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        let row = format!("({})", vec!["?"; columns].join(", "));
        Self { row, text: Box::new(text), texts: Default::default() }
    }

    /// The smallest statement that takes `rows`, from 1 to [`ROWS_MAX`].
    pub(super) fn of(&self, rows: usize, part: Part) -> AssertSqlSafe<Arc<str>> {
        let at = SIZES.iter().position(|size| *size >= rows).unwrap_or(SIZES.len() - 1);
        let text = self.texts[at][part as usize].get_or_init(|| {
            let rows = vec![self.row.as_str(); SIZES[at]].join(", ");
            part.around((self.text)(&rows)).into()
        });
        AssertSqlSafe(Arc::clone(text))
    }
}

impl fmt::Debug for Sized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sized").field("row", &self.row).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_takes_what_it_is_asked_for_and_little_more() {
        let sized = Sized::new(1, str::to_owned);
        let places = |rows| sized.of(rows, Part::default()).0.matches('?').count();
        assert_eq!([1, 2, 3, 5, 64, 65, ROWS_MAX].map(places), [1, 2, 3, 6, 64, 96, ROWS_MAX]);
        assert!((1..=ROWS_MAX).all(|rows| (rows..=2 * rows).contains(&places(rows))));
    }

    #[test]
    fn a_statement_begins_its_transaction_or_ends_it() {
        let sized = Sized::new(1, |rows| format!("VALUES {rows}"));
        let text = |part| sized.of(1, part).0.to_string();
        assert_eq!(text(Part::Plain), "VALUES (?)");
        assert_eq!(text(Part::First), "BEGIN IMMEDIATE; VALUES (?)");
        assert_eq!(text(Part::Last), "VALUES (?); COMMIT");
    }
}
