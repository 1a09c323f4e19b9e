//! Effects a second against callers, both on a logarithmic axis, one panel a database. On a card of its own colour, so that
//! it reads the same on a light page and on a dark one.

use std::fmt::Write as _;

use super::thousands;
use crate::{
    field::{EFFECTUAL, LIMIT, ON_LEDGER},
    machine::Machine,
    table::Row,
};

const PANEL_WIDTH: f64 = 330.0;
const PANEL_HEIGHT: f64 = 330.0;
/// For names beside the ends of the lines.
const NAMES_WIDTH: f64 = 130.0;
const LEFT: f64 = 62.0;
const TOP: f64 = 74.0;

/// Told apart also by who does not see red or green; the reference is black and dashed.
const COLOURS: [(&str, &str); 10] = [
    (LIMIT, "#1a1a1a"),
    (ON_LEDGER, "#1a1a1a"),
    (EFFECTUAL, "#0b5fd0"),
    ("two-statements", "#7a7a7a"),
    ("agent-effects", "#c8500a"),
    ("durare-step", "#0a8a6a"),
    ("durare-step-full", "#5aa890"),
    ("durare-workflow", "#7a5a00"),
    ("dbos-step", "#a0327d"),
    ("dbos-workflow", "#6a3fa0"),
];

/// What the axes show.
struct Axes {
    callers: (f64, f64),
    rates: (f64, f64),
}

impl Axes {
    fn of(rows: &[Row]) -> Self {
        let (mut callers, mut rates) = ((f64::MAX, 2.0_f64), (f64::MAX, 0.0_f64));
        for row in rows {
            callers = (callers.0.min(row.callers as f64), callers.1.max(row.callers as f64));
            rates = (rates.0.min(row.per_second), rates.1.max(row.per_second));
        }
        let decade = 10_f64.powf(rates.0.log10().floor());
        let least = [5.0, 2.0, 1.0].map(|factor| factor * decade).into_iter().find(|least| *least <= rates.0);
        Self { callers, rates: (least.unwrap_or(decade), rates.1 * 1.25) }
    }

    fn x(&self, callers: f64) -> f64 {
        (callers / self.callers.0).ln() / (self.callers.1 / self.callers.0).ln() * PANEL_WIDTH
    }

    fn y(&self, rate: f64) -> f64 {
        PANEL_HEIGHT * (1.0 - (rate / self.rates.0).ln() / (self.rates.1 / self.rates.0).ln())
    }
}

pub(super) fn draw(rows: &[Row], machine: &Machine) -> String {
    let databases: Vec<&str> = ["sqlite", "postgres"]
        .into_iter()
        .filter(|name| rows.iter().any(|row| row.database == *name))
        .collect();
    let step = LEFT + PANEL_WIDTH + NAMES_WIDTH;
    let (width, height) = (step * databases.len() as f64 + 8.0, TOP + PANEL_HEIGHT + 84.0);
    let axes = Axes::of(rows);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" font-family=\"system-ui, sans-serif\" font-size=\"12\" role=\"img\" \
         aria-label=\"Effects a second by number of callers\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#fbfbf9\"/>\n\
         <text x=\"{LEFT}\" y=\"26\" font-size=\"16\" font-weight=\"600\" fill=\"#1a1a1a\">Effects a second by number of \
         callers</text>\n\
         <text x=\"{LEFT}\" y=\"44\" fill=\"#555\">claim and outcome both durable; steps of durare and dbos write once and \
         claim nothing</text>\n"
    );
    for (at, database) in databases.iter().enumerate() {
        let of: Vec<&Row> = rows.iter().filter(|row| row.database == *database).collect();
        writeln!(svg, "<g transform=\"translate({:.0} {TOP})\">", LEFT + step * at as f64).expect("text");
        panel(&mut svg, database, &of, &axes);
        svg += "</g>\n";
    }
    let about = format!(
        "{}, {} cores of {}, SQLite {}, PostgreSQL {}, commit {}",
        machine.date,
        machine.cores,
        machine.processor,
        machine.sqlite,
        machine.postgres.as_deref().unwrap_or("not there"),
        machine.commit
    );
    writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{:.0}\" fill=\"#555\">{}</text>\n</svg>",
        height - 14.0,
        escaped(&about)
    )
    .expect("text");
    svg
}

fn panel(svg: &mut String, database: &str, rows: &[&Row], axes: &Axes) {
    let title = if database == "sqlite" { "SQLite" } else { "PostgreSQL" };
    grid(svg, title, rows, axes);
    let mut ends: Vec<(f64, &str, &str)> = Vec::new();
    for (name, colour) in COLOURS {
        let points: Vec<(f64, f64)> = rows
            .iter()
            .filter(|row| row.name == name)
            .map(|row| (axes.x(row.callers as f64), axes.y(row.per_second)))
            .collect();
        let Some(last) = points.last() else { continue };
        let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let (weight, dashes) = match name {
            EFFECTUAL => (3.0, ""),
            LIMIT => (1.8, " stroke-dasharray=\"5 3\""),
            ON_LEDGER => (1.3, " stroke-dasharray=\"2 4\""),
            _ => (1.6, ""),
        };
        writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{weight}\"{dashes}/>",
            path.join(" ")
        )
        .expect("text");
        for (x, y) in &points {
            writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.1}\" fill=\"{colour}\"/>",
                weight + 0.6
            )
            .expect("text");
        }
        ends.push((last.1, name, colour));
    }
    names(svg, ends);
}

/// The grid with the numbers beside it.
fn grid(svg: &mut String, title: &str, rows: &[&Row], axes: &Axes) {
    writeln!(svg, "<text y=\"-10\" font-weight=\"600\" fill=\"#1a1a1a\">{title}</text>").expect("text");
    let mut decade = 10_f64.powf(axes.rates.0.log10().floor());
    while decade <= axes.rates.1 {
        for (factor, strong) in [(1.0, true), (2.0, false), (5.0, false)] {
            let rate = decade * factor;
            if !(axes.rates.0..=axes.rates.1).contains(&rate) {
                continue;
            }
            let (y, colour) = (axes.y(rate), if strong { "#c4c4be" } else { "#e6e6e0" });
            writeln!(
                svg,
                "<path d=\"M0 {y:.1}H{PANEL_WIDTH}\" stroke=\"{colour}\"/>\
                 <text x=\"-7\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#444\">{}</text>",
                y + 4.0,
                thousands(rate)
            )
            .expect("text");
        }
        decade *= 10.0;
    }
    let mut callers: Vec<usize> = rows.iter().map(|row| row.callers).collect();
    callers.sort_unstable();
    callers.dedup();
    for callers in callers {
        let x = axes.x(callers as f64);
        writeln!(
            svg,
            "<path d=\"M{x:.1} 0V{PANEL_HEIGHT}\" stroke=\"#e6e6e0\"/>\
             <text x=\"{x:.1}\" y=\"{:.0}\" text-anchor=\"middle\" fill=\"#444\">{}</text>",
            PANEL_HEIGHT + 17.0,
            thousands(callers as f64)
        )
        .expect("text");
    }
    writeln!(
        svg,
        "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\" fill=\"#444\">callers</text>",
        PANEL_WIDTH / 2.0,
        PANEL_HEIGHT + 36.0
    )
    .expect("text");
}

/// Beside the ends of their lines, far enough from each other to be read.
fn names(svg: &mut String, mut ends: Vec<(f64, &str, &str)>) {
    const APART: f64 = 14.0;
    ends.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    let mut above = f64::MIN;
    for end in &mut ends {
        end.0 = end.0.max(above + APART);
        above = end.0;
    }
    let mut below = PANEL_HEIGHT + 4.0;
    for end in ends.iter_mut().rev() {
        end.0 = end.0.min(below);
        below = end.0 - APART;
    }
    for (y, name, colour) in ends {
        // The whole name is longer than the margin.
        let label = if name == ON_LEDGER { "…-on-ledger" } else { name };
        let weight = if name == EFFECTUAL { " font-weight=\"700\"" } else { "" };
        writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{:.1}\" fill=\"{colour}\"{weight}>{label}</text>",
            PANEL_WIDTH + 9.0,
            y + 4.0
        )
        .expect("text");
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
