//! Medians, for people.

use std::time::Duration;

use crate::{compare::Cell, lines::median, load::Round};

/// The medians of one cell.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) database: &'static str,
    pub(crate) callers: usize,
    pub(crate) name: &'static str,
    pub(crate) per_second: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) cpu_us: f64,
    pub(crate) bytes: f64,
    pub(crate) log_bytes: Option<f64>,
    pub(crate) hits_per_second: Option<f64>,
}

impl Row {
    pub(crate) fn of(cell: &Cell) -> Self {
        let rounds = &cell.rounds;
        let time =
            |of: fn(&Round) -> Duration| median(rounds.iter().map(|round| of(round).as_secs_f64() * 1e6));
        Self {
            database: cell.database.name(),
            callers: cell.callers,
            name: cell.name,
            per_second: median(rounds.iter().map(|round| round.per_second)),
            p50_us: time(|round| round.p50),
            p99_us: time(|round| round.p99),
            cpu_us: time(|round| round.cpu),
            bytes: cell.bytes,
            log_bytes: cell.log_bytes,
            hits_per_second: (!cell.hits.is_empty())
                .then(|| median(cell.hits.iter().map(|hit| hit.per_second))),
        }
    }
}

pub(crate) const HEADER: &str = "database callers contender         effects/s       p50       p99  CPU/effect bytes/effect log bytes    hits/s";

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let optional = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.0}"));
        write!(
            f,
            "{:8} {:>7} {:17} {:>9.0} {:>9} {:>9} {:>9} µs {:>12.0} {:>9} {:>9}",
            self.database,
            self.callers,
            self.name,
            self.per_second,
            time(self.p50_us),
            time(self.p99_us),
            format!("{:.0}", self.cpu_us),
            self.bytes,
            optional(self.log_bytes),
            optional(self.hits_per_second),
        )
    }
}

/// A time with a unit that suits it.
pub(crate) fn time(micros: f64) -> String {
    if micros < 1000.0 { format!("{micros:.0} µs") } else { format!("{:.1} ms", micros / 1000.0) }
}
