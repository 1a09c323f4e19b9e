//! What becomes of everything as a ledger grows, beside the group commit by hand with as many rows.

mod fill;
mod look;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use effectual::{Ledger, PostgresLedger, SqliteLedger};

use self::fill::{BY_HAND, LEDGER, Table};
use crate::{
    by_hand,
    caller::Keys,
    compare::{Ground, Pace},
    contender::{Contender, Provider},
    effectual::Effectual,
    lines::{Line, median},
    load::{self, Load},
    store::{Database, Store},
};

/// One of the two that grow.
struct Grown {
    name: &'static str,
    table: &'static Table,
    store: Store,
    contender: Arc<dyn Contender>,
    keys: Arc<AtomicU64>,
    bytes_empty: u64,
    rows: u64,
}

/// What was measured with so many rows there already. Rates a second, times in microseconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Point {
    pub(crate) database: &'static str,
    pub(crate) rows: u64,
    pub(crate) effects: f64,
    pub(crate) effects_by_hand: f64,
    pub(crate) ratio: f64,
    pub(crate) hits_1: f64,
    pub(crate) hits_64: f64,
    pub(crate) witness_us: f64,
    pub(crate) recovery_us: f64,
    pub(crate) sweep_us: f64,
    pub(crate) bytes: f64,
    pub(crate) bytes_by_hand: f64,
}

pub(crate) const HEADER: &str = "\
database       rows  effects/s   by hand ratio   hits/s 1  hits/s 64 run of 100 recovery sweep/effect bytes by hand";

impl std::fmt::Display for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:8} {:>10} {:>10.0} {:>9.0} {:>5.2} {:>10.0} {:>10.0} {:>7.0} µs {:>5.0} µs {:>9.1} µs {:>5.0} {:>7.0}",
            self.database,
            self.rows,
            self.effects,
            self.effects_by_hand,
            self.ratio,
            self.hits_1,
            self.hits_64,
            self.witness_us,
            self.recovery_us,
            self.sweep_us,
            self.bytes,
            self.bytes_by_hand
        )
    }
}

/// Grows both to each number of rows and measures at each.
pub(crate) async fn measure(ground: &Ground<'_>, rows: &[u64], pace: Pace) -> Vec<Point> {
    let provider = Provider::new();
    let store = ground.store("growth").await;
    let ledger = open(&store).await;
    let own = Effectual::new(Arc::clone(&ledger), &provider);
    let executor = own.executor().clone();
    let mut own = Grown::new("effectual", &LEDGER, store, Arc::new(own)).await;
    let store = ground.store("growth-by-hand").await;
    let group: Arc<dyn Contender> = match ground.database {
        Database::Sqlite => {
            Arc::new(by_hand::sqlite::group(store.path(), by_hand::tables::Table::Own, &provider).await)
        }
        Database::Postgres => {
            Arc::new(by_hand::postgres::group(&store.url(), by_hand::tables::Table::Own, &provider).await)
        }
    };
    let mut other = Grown::new("group-commit", &BY_HAND, store, group).await;
    let mut points = Vec::new();
    for size in std::iter::once(0).chain(rows.iter().copied()) {
        for grown in [&mut own, &mut other] {
            grown.grow(ground, size).await;
        }
        let mut point = Point { database: ground.database.name(), rows: size, ..Point::default() };
        sizes(&mut point, &own, &other).await;
        rates(&mut point, ground, &own, &other, pace).await;
        let (witness, recovery) = look::reads(&*ledger, &executor, &provider).await;
        (point.witness_us, point.recovery_us) = (witness, recovery);
        if size == 0 {
            LEDGER.fill(&own.store, look::SWEPT).await;
        }
        point.sweep_us = look::sweep(&own.store, &*ledger).await;
        println!("{point}");
        points.push(point);
    }
    for grown in [own, other] {
        grown.contender.close().await;
        drop(grown.contender);
        grown.store.remove().await;
    }
    points
}

async fn open(store: &Store) -> Arc<dyn Ledger> {
    match store {
        Store::Sqlite(path) => Arc::new(SqliteLedger::open(path).await.expect("a ledger")),
        Store::Postgres { .. } => Arc::new(PostgresLedger::connect(&store.url()).await.expect("a ledger")),
    }
}

impl Grown {
    async fn new(
        name: &'static str,
        table: &'static Table,
        store: Store,
        contender: Arc<dyn Contender>,
    ) -> Self {
        let bytes_empty = store.bytes().await;
        Self { name, table, store, contender, keys: Arc::default(), bytes_empty, rows: 0 }
    }

    /// A hundredth of the rows are real effects, spread over the time of growing, so that hits find rows everywhere.
    async fn grow(&mut self, ground: &Ground<'_>, size: u64) {
        const STEPS: u64 = 20;
        let (missing, began) = (size.saturating_sub(self.rows), Instant::now());
        for _ in 0..STEPS {
            let real = (missing / STEPS / 100).max(50);
            let until = self.keys.load(Ordering::Relaxed) + real;
            while self.keys.load(Ordering::Relaxed) < until {
                let load = ground.load(64, Duration::from_millis(20));
                load::perform(self.name, &self.contender, &Keys::Fresh(Arc::clone(&self.keys)), load).await;
            }
            self.table.fill(&self.store, (missing / STEPS).saturating_sub(real)).await;
        }
        self.rows = self.rows.max(size);
        self.store.settle_down().await;
        if size > 0 {
            println!("{} has {size} rows after {:.0} s", self.name, began.elapsed().as_secs_f64());
        }
    }
}

async fn sizes(point: &mut Point, own: &Grown, other: &Grown) {
    if point.rows == 0 {
        return;
    }
    for (grown, bytes) in [(own, &mut point.bytes), (other, &mut point.bytes_by_hand)] {
        let rows = grown.store.number(&format!("SELECT count(*) FROM {}", grown.table.name)).await;
        *bytes = (grown.store.bytes().await - grown.bytes_empty) as f64 / rows as f64;
    }
}

async fn rates(point: &mut Point, ground: &Ground<'_>, own: &Grown, other: &Grown, pace: Pace) {
    let (mut rates, mut hits) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for round in 0..=pace.rounds {
        let length = if round == 0 { pace.warm_up } else { pace.length };
        for (grown, rates) in [own, other].into_iter().zip(&mut rates) {
            let keys = Keys::Fresh(Arc::clone(&grown.keys));
            let measured = load::perform(grown.name, &grown.contender, &keys, ground.load(64, length)).await;
            if round > 0 {
                rates.push(measured.per_second);
            }
        }
        for (callers, hits) in [1, 64].into_iter().zip(&mut hits) {
            let load = Load { callers, ..ground.load(callers, length) };
            let keys = Keys::Known(own.keys.load(Ordering::Relaxed));
            let measured = load::replay(own.name, &own.contender, &keys, load).await;
            if round > 0 {
                hits.push(measured.per_second);
            }
        }
    }
    let middle = |values: &[f64]| median(values.iter().copied());
    point.ratio = median(rates[0].iter().zip(&rates[1]).map(|(own, other)| own / other));
    (point.effects, point.effects_by_hand) = (middle(&rates[0]), middle(&rates[1]));
    (point.hits_1, point.hits_64) = (middle(&hits[0]), middle(&hits[1]));
}

/// To the reference with as many rows, and to itself when empty.
pub(crate) fn lines(points: &[Point]) -> Vec<Line> {
    let mut lines = Vec::new();
    for point in points {
        let rows = usize::try_from(point.rows).expect("it fits");
        let empty = points.iter().find(|other| other.rows == 0 && other.database == point.database);
        lines.push(Line::new("growth-ratio-to-limit", None, point.database, rows, point.ratio));
        if let Some(empty) = empty.filter(|_| point.rows > 0) {
            let ratio = point.effects / empty.effects;
            lines.push(Line::new("growth-ratio-to-empty", None, point.database, rows, ratio));
            let ratio = point.effects_by_hand / empty.effects_by_hand;
            lines.push(Line::new("growth-ratio-to-empty", Some("group-commit"), point.database, rows, ratio));
        }
    }
    lines
}

/// The same as a table of a page.
pub(crate) fn markdown(points: &[Point]) -> String {
    let mut text = "| database | rows | effects/s | by hand | ratio | hits/s, 1 caller | 64 | run of 100 | recovery | sweep, an effect | bytes a row | by hand |\n".to_owned();
    text += "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
    for point in points {
        text += &format!(
            "| {} | {} | {:.0} | {:.0} | {:.2} | {:.0} | {:.0} | {:.0} µs | {:.0} µs | {:.1} µs | {:.0} | {:.0} |\n",
            point.database,
            point.rows,
            point.effects,
            point.effects_by_hand,
            point.ratio,
            point.hits_1,
            point.hits_64,
            point.witness_us,
            point.recovery_us,
            point.sweep_us,
            point.bytes,
            point.bytes_by_hand,
        );
    }
    text
}

/// How many bytes an effect takes when it is settled, and when only its tombstone is left; both without free space.
pub(crate) async fn bytes(ground: &Ground<'_>) -> (f64, f64) {
    const ROWS: u64 = 100_000;
    let provider = Provider::new();
    let store = ground.store("bytes").await;
    let ledger = open(&store).await;
    let mut own =
        Grown::new("effectual", &LEDGER, store, Arc::new(Effectual::new(Arc::clone(&ledger), &provider)))
            .await;
    own.grow(ground, ROWS).await;
    let rows = own.store.number("SELECT count(*) FROM effectual_effects").await as f64;
    own.store.compact().await;
    let settled = (own.store.bytes().await - own.bytes_empty) as f64 / rows;
    look::forget_all(&own.store, &*ledger).await;
    let left =
        "SELECT count(*) FROM effectual_effects WHERE provider_key LIKE 'filled-%' AND absent_reason IS NULL";
    assert_eq!(own.store.number(left).await, 0, "but for the few real ones, all are tombstones");
    own.store.compact().await;
    let tombstone = (own.store.bytes().await - own.bytes_empty) as f64 / rows;
    own.contender.close().await;
    drop(own.contender);
    own.store.remove().await;
    (settled, tombstone)
}
