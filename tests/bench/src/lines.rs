//! The lines that are compared between runs, and what they must be.

use crate::{
    compare::Cell,
    field::{CACHED, EFFECTUAL, LIMIT, ON_LEDGER},
    load::Round,
};

/// One figure.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) figure: &'static str,
    pub(crate) of: Option<&'static str>,
    pub(crate) database: &'static str,
    pub(crate) callers: usize,
    pub(crate) value: f64,
    pub(crate) target: Option<Target>,
}

/// What a figure must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Target {
    pub(crate) fn met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, "≥ {least}"),
            Self::AtMost(most) => write!(f, "≤ {most}"),
        }
    }
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ", self.figure)?;
        if let Some(of) = self.of {
            write!(f, "{of} ")?;
        }
        let value = if self.value >= 1000.0 {
            format!("{:.0}", self.value)
        } else if self.value >= 10.0 {
            format!("{:.1}", self.value)
        } else {
            format!("{:.2}", self.value)
        };
        write!(f, "{} {} {value}", self.database, self.callers)?;
        if let Some(target) = self.target {
            let word = if target.met(self.value) { "met" } else { "missed" };
            write!(f, "   ({target}: {word})")?;
        }
        Ok(())
    }
}

/// The figures that have a target: what, of whom, where, with how many callers (0: any).
const TARGETS: [(&str, Option<&str>, &str, usize, Target); 23] = [
    ("ratio-to-limit", None, "sqlite", 1, Target::AtLeast(0.8)),
    ("ratio-to-limit", None, "sqlite", 64, Target::AtLeast(0.8)),
    ("ratio-to-limit", None, "sqlite", 256, Target::AtLeast(0.8)),
    ("ratio-to-limit", None, "sqlite", 1024, Target::AtLeast(0.8)),
    ("ratio-to-limit", None, "postgres", 1, Target::AtLeast(0.8)),
    ("ratio-to-limit", None, "postgres", 64, Target::AtLeast(0.8)),
    ("ratio-to-limit", None, "postgres", 256, Target::AtLeast(0.8)),
    ("ratio-to-limit", None, "postgres", 1024, Target::AtLeast(0.8)),
    ("ratio-to-peer", Some("agent-effects"), "sqlite", 64, Target::AtLeast(20.0)),
    ("ratio-to-peer", Some("agent-effects"), "postgres", 64, Target::AtLeast(25.0)),
    ("ratio-to-peer", Some("durare-step"), "sqlite", 64, Target::AtLeast(3.0)),
    ("ratio-to-peer", Some("durare-step"), "postgres", 64, Target::AtLeast(5.0)),
    ("ratio-to-peer", Some("durare-step"), "sqlite", 1, Target::AtLeast(1.0)),
    ("ratio-to-peer", Some("durare-step"), "postgres", 1, Target::AtLeast(1.5)),
    ("ratio-to-peer-hits", Some("durare"), "sqlite", 64, Target::AtLeast(2.0)),
    ("ratio-to-peer-hits", Some("durare"), "postgres", 64, Target::AtLeast(5.0)),
    ("p99-over-p50", None, "sqlite", 64, Target::AtMost(4.0)),
    ("p99-over-p50", None, "postgres", 64, Target::AtMost(3.0)),
    ("growth-ratio-to-limit", None, "sqlite", 10_000_000, Target::AtLeast(0.8)),
    ("growth-ratio-to-limit", None, "postgres", 10_000_000, Target::AtLeast(0.8)),
    ("growth-ratio-to-empty", None, "sqlite", 10_000_000, Target::AtLeast(0.8)),
    ("growth-ratio-to-empty", None, "postgres", 10_000_000, Target::AtLeast(0.8)),
    ("hits-per-second", Some("effectual-cached"), "", 64, Target::AtLeast(100_000.0)),
];

impl Line {
    pub(crate) fn new(
        figure: &'static str,
        of: Option<&'static str>,
        database: &'static str,
        callers: usize,
        value: f64,
    ) -> Self {
        let target = TARGETS.iter().find(|(name, whom, place, count, _)| {
            *name == figure && *whom == of && (place.is_empty() || *place == database) && *count == callers
        });
        Self { figure, of, database, callers, value, target: target.map(|(.., target)| *target) }
    }
}

/// All figures of the cells of one database and one number of callers.
pub(crate) fn lines(cells: &[Cell]) -> Vec<Line> {
    let Some(own) = cells.iter().find(|cell| cell.name == EFFECTUAL) else { return Vec::new() };
    let line = |figure, of, value| Line::new(figure, of, own.database.name(), own.callers, value);
    let mut lines = Vec::new();
    for other in cells.iter().filter(|cell| ![EFFECTUAL, CACHED].contains(&cell.name)) {
        let ratio = ratio(&own.rounds, &other.rounds);
        match other.name {
            LIMIT => lines.push(line("ratio-to-limit", None, ratio)),
            ON_LEDGER => lines.push(line("ratio-to-limit-on-ledger", None, ratio)),
            name => lines.push(line("ratio-to-peer", Some(name), ratio)),
        }
    }
    let spread = own.rounds.iter().map(|round| round.p99.as_secs_f64() / round.p50.as_secs_f64());
    lines.push(line("p99-over-p50", None, median(spread)));
    for other in cells.iter().filter(|cell| !cell.hits.is_empty()) {
        lines.push(line(
            "hits-per-second",
            Some(other.name),
            median(other.hits.iter().map(|hit| hit.per_second)),
        ));
        match other.name {
            EFFECTUAL | CACHED | ON_LEDGER => {}
            LIMIT => lines.push(line("ratio-to-limit-hits", None, self::ratio(&own.hits, &other.hits))),
            name => {
                // A call that is found again by its key; a step is found by its place in a workflow that runs again.
                let name = name.strip_suffix("-workflow").unwrap_or(name);
                lines.push(line("ratio-to-peer-hits", Some(name), self::ratio(&own.hits, &other.hits)));
            }
        }
    }
    lines
}

/// The median of the ratios of the rounds that followed each other.
fn ratio(own: &[Round], other: &[Round]) -> f64 {
    median(own.iter().zip(other).map(|(own, other)| own.per_second / other.per_second))
}

/// Of an odd number of values, the middle one.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
