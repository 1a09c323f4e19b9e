//! What is asked for on the command line.

use std::{path::PathBuf, time::Duration};

use crate::{compare::Pace, field::CACHED};

pub(crate) const USAGE: &str = "\
    [--quick | --full] [PART…]   parts: sqlite postgres layer (all three by default), growth, hours, profile\n\
    --callers 1,64               numbers of callers\n\
    --only effectual,durare-step only these contenders\n\
    --rounds 3 --length-ms 400   counted rounds, and how long each is\n\
    --report DIR                 also as JSON, Markdown and pictures\n\
    --rows 100000,1000000        for growth: how many effects are there already\n\
    --minutes 60                 for hours: how long";

/// Everything that can be asked for.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) full: bool,
    pub(crate) parts: Vec<String>,
    pub(crate) callers: Option<Vec<usize>>,
    pub(crate) only: Option<Vec<String>>,
    pub(crate) rounds: Option<usize>,
    pub(crate) length: Option<Duration>,
    pub(crate) report: Option<PathBuf>,
    pub(crate) rows: Vec<u64>,
    pub(crate) minutes: u64,
}

const PARTS: [&str; 6] = ["sqlite", "postgres", "layer", "growth", "hours", "profile"];

impl Options {
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            full: false,
            parts: Vec::new(),
            callers: None,
            only: None,
            rounds: None,
            length: None,
            report: None,
            rows: vec![100_000, 1_000_000, 10_000_000],
            minutes: 60,
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} needs a value"));
            match arg.as_str() {
                "--quick" => options.full = false,
                "--full" => options.full = true,
                "--callers" => options.callers = Some(list(&value()?)?),
                "--only" => options.only = Some(list(&value()?)?),
                "--rounds" => options.rounds = Some(number(&value()?)?),
                "--length-ms" => options.length = Some(Duration::from_millis(number(&value()?)?)),
                "--report" => options.report = Some(PathBuf::from(value()?)),
                "--rows" => options.rows = list(&value()?)?,
                "--minutes" => options.minutes = number(&value()?)?,
                part if PARTS.contains(&part) => options.parts.push(part.to_owned()),
                other => return Err(format!("{other} is not known\n{USAGE}")),
            }
        }
        if options.parts.is_empty() {
            options.parts = PARTS[..3].iter().map(ToString::to_string).collect();
        }
        Ok(options)
    }

    pub(crate) fn wants(&self, part: &str) -> bool {
        self.parts.iter().any(|wanted| wanted == part)
    }

    pub(crate) fn callers(&self) -> Vec<usize> {
        self.callers.clone().unwrap_or_else(|| vec![1, 8, 64, 256, 1024])
    }

    pub(crate) fn pace(&self) -> Pace {
        let (rounds, length) = if self.full { (5, 1500) } else { (3, 240) };
        let length = self.length.unwrap_or(Duration::from_millis(length));
        Pace { rounds: self.rounds.unwrap_or(rounds) | 1, length, warm_up: length / 2 }
    }

    /// In a quick run the slower of a peer's ways, and the obvious one by hand, are measured where they are compared.
    pub(crate) fn names<'a>(&self, all: &'a [&'static str], callers: usize) -> Vec<&'a &'static str> {
        let spare = |name: &str| {
            !self.full
                && ![1, 64].contains(&callers)
                && (name == "two-statements"
                    || name == CACHED
                    || name.ends_with("-workflow")
                    || name.ends_with("-full"))
        };
        all.iter()
            .filter(|name| match &self.only {
                Some(only) => only.iter().any(|wanted| wanted == *name),
                None => !spare(name),
            })
            .collect()
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.replace('_', "").parse().map_err(|_| format!("{text} is no number"))
}

fn list<T: std::str::FromStr>(text: &str) -> Result<Vec<T>, String> {
    text.split(',').map(|one| one.parse().map_err(|_| format!("{one} is not understood"))).collect()
}
