//! What was measured, as files.

mod picture;

use std::{fmt::Write as _, fs, path::Path};

use serde_json::{Value, json};

use crate::{
    lines::Line,
    machine::Machine,
    table::{self, Row},
};

/// Everything of one run.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) rows: Vec<Row>,
    pub(crate) lines: Vec<Line>,
    /// Parts that have tables of their own: a name and Markdown.
    pub(crate) further: Vec<(String, String)>,
}

impl Report {
    /// Writes `results.json`, `results.md` and a picture for each database.
    pub(crate) fn write(&self, folder: &Path) -> std::io::Result<()> {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("results.json"), format!("{:#}\n", self.json()))?;
        fs::write(folder.join("results.md"), self.markdown())?;
        if !self.rows.is_empty() {
            fs::write(folder.join("effects.svg"), picture::draw(&self.rows, &self.machine))?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let machine = &self.machine;
        json!({
            "date": machine.date, "processor": machine.processor, "cores": machine.cores,
            "memory_gib": machine.memory_gib, "kernel": machine.kernel, "rust": machine.rust,
            "sqlite": machine.sqlite, "postgres": machine.postgres, "commit": machine.commit,
            "cells": self.rows.iter().map(|row| json!({
                "database": row.database, "callers": row.callers, "contender": row.name,
                "effects_per_second": row.per_second, "p50_us": row.p50_us, "p99_us": row.p99_us,
                "cpu_us_per_effect": row.cpu_us, "bytes_per_effect": row.bytes,
                "log_bytes_per_effect": row.log_bytes, "hits_per_second": row.hits_per_second,
            })).collect::<Vec<_>>(),
            "figures": self.lines.iter().map(|line| json!({
                "figure": line.figure, "of": line.of, "database": line.database, "callers": line.callers,
                "value": line.value, "target": line.target.map(|target| target.to_string()),
                "met": line.target.map(|target| target.met(line.value)),
            })).collect::<Vec<_>>(),
        })
    }

    fn markdown(&self) -> String {
        let mut text = format!("Measured {}.\n\n", self.machine);
        for database in ["sqlite", "postgres"] {
            let rows: Vec<&Row> = self.rows.iter().filter(|row| row.database == database).collect();
            if rows.is_empty() {
                continue;
            }
            text += "| contender | callers | effects/s | p50 | p99 | CPU an effect | bytes an effect | log bytes | hits/s |\n";
            text += "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
            for row in rows {
                let optional = |value: Option<f64>| value.map_or("–".to_owned(), thousands);
                writeln!(
                    text,
                    "| {} ({database}) | {} | {} | {} | {} | {:.0} µs | {} | {} | {} |",
                    row.name,
                    row.callers,
                    thousands(row.per_second),
                    table::time(row.p50_us),
                    table::time(row.p99_us),
                    row.cpu_us,
                    thousands(row.bytes),
                    optional(row.log_bytes),
                    optional(row.hits_per_second),
                )
                .expect("text takes what is written");
            }
            text.push('\n');
        }
        if !self.lines.is_empty() {
            text += "```text\n";
            for line in &self.lines {
                text += &format!("{line}\n");
            }
            text += "```\n";
        }
        for (name, part) in &self.further {
            text += &format!("\n## {name}\n\n{part}");
        }
        text
    }
}

/// A number as people write it: 12,345.
fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
