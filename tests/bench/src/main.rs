//! Effectual beside code written by hand and beside its peers, in one run: only ratios of one run are compared.

mod by_hand;
mod caller;
mod compare;
mod contender;
mod cpu;
mod effectual;
mod field;
mod growth;
mod hours;
mod layer;
mod layer_client;
mod lines;
mod load;
mod machine;
mod options;
mod peers;
mod profile;
mod report;
mod store;
mod table;

use std::path::Path;

use compare::Ground;
use lines::Line;
use machine::Machine;
use options::Options;
use report::Report;
use store::{Database, Server, Store};
use table::Row;
use tempfile::TempDir;

#[tokio::main]
async fn main() {
    if std::env::args().any(|arg| arg == "--help") {
        println!("{}", options::USAGE);
        return;
    }
    let options = Options::parse(std::env::args().skip(1)).unwrap_or_else(|wrong| {
        eprintln!("{wrong}");
        std::process::exit(2);
    });
    let server = Server::find().await;
    let folder = beside(server.as_ref());
    let machine = Machine::describe(server.as_ref()).await;
    println!("{machine}");
    let mut report = Report { machine, rows: Vec::new(), lines: Vec::new(), further: Vec::new() };
    for database in [Database::Sqlite, Database::Postgres] {
        if options.wants(database.name()) && (database == Database::Sqlite || server.is_some()) {
            let ground = Ground { database, folder: folder.path(), server: server.as_ref() };
            databases(&ground, &options, &mut report).await;
        }
    }
    if options.wants("growth") {
        growing(&grounds(folder.path(), server.as_ref(), &options), &options, &mut report).await;
    }
    if options.wants("profile") {
        let ground = Ground { database: Database::Postgres, folder: folder.path(), server: server.as_ref() };
        report.further.push(("Profile of the server".to_owned(), profile::run(&ground, &options).await));
    }
    if options.wants("hours") {
        let mut text = String::new();
        for ground in grounds(folder.path(), server.as_ref(), &options) {
            text += &hours::run(&ground, options.minutes).await;
        }
        report.further.push(("Half of the capacity, for long".to_owned(), text));
    }
    if options.wants("layer") {
        report.lines.extend(layers(folder.path(), server.as_ref(), &options).await);
    }
    summary(&report.lines);
    if let Some(folder) = &options.report {
        report.write(folder).expect("the report is written");
        println!("written to {}", folder.display());
    }
}

/// On the disk that the server's files are on, so that both databases flush to the same one.
fn beside(server: Option<&Server>) -> TempDir {
    let by_server = server.and_then(|server| tempfile::tempdir_in(server.folder.parent()?).ok());
    by_server.unwrap_or_else(|| tempfile::tempdir_in(".").expect("a folder"))
}

async fn databases(ground: &Ground<'_>, options: &Options, report: &mut Report) {
    let all: &[&str] = match ground.database {
        Database::Sqlite => &field::SQLITE,
        Database::Postgres => &field::POSTGRES,
    };
    println!("\n{}", table::HEADER);
    for callers in options.callers() {
        let names: Vec<&'static str> = options.names(all, callers).into_iter().copied().collect();
        let hits = options.full || [1, 64].contains(&callers);
        let cells = compare::cells(ground, &names, callers, options.pace(), hits).await;
        for row in cells.iter().map(Row::of) {
            println!("{row}");
            report.rows.push(row);
        }
        let lines = lines::lines(&cells);
        lines.iter().for_each(|line| println!("{line}"));
        report.lines.extend(lines);
    }
}

/// Where to grow or to stay for long: on both, or on the one that is named.
fn grounds<'a>(folder: &'a Path, server: Option<&'a Server>, options: &Options) -> Vec<Ground<'a>> {
    let wanted = |database: Database| {
        options.only.as_ref().is_none_or(|only| only.iter().any(|name| name == database.name()))
    };
    [Database::Sqlite, Database::Postgres]
        .into_iter()
        .filter(|database| wanted(*database) && (*database == Database::Sqlite || server.is_some()))
        .map(|database| Ground { database, folder, server })
        .collect()
}

async fn growing(grounds: &[Ground<'_>], options: &Options, report: &mut Report) {
    let mut text = String::new();
    for ground in grounds {
        println!("\n{}", growth::HEADER);
        let points = growth::measure(ground, &options.rows, options.pace()).await;
        let lines = growth::lines(&points);
        lines.iter().for_each(|line| println!("{line}"));
        let (settled, tombstone) = growth::bytes(ground).await;
        let bytes = format!(
            "{}: a settled effect takes {settled:.0} bytes, a tombstone {tombstone:.0}",
            ground.database.name()
        );
        println!("{bytes}");
        text += &growth::markdown(&points);
        text += &format!("\n{bytes}.\n\n");
        report.lines.extend(lines);
    }
    report.further.push(("Growth".to_owned(), text));
}

async fn layers(folder: &Path, server: Option<&Server>, options: &Options) -> Vec<Line> {
    let sqlite = Store::sqlite(folder, "layer");
    let postgres = match server {
        Some(server) => Some(Store::postgres(server, "layer").await),
        None => None,
    };
    let served = layer::measure_all(&sqlite, postgres.as_ref(), options.pace().rounds).await;
    println!("\nlayer             requests/s       p50       p99  replays/s");
    for app in &served {
        let of = |what: fn(&layer_client::Measured) -> f64| lines::median(app.rounds.iter().map(what));
        println!(
            "{:17} {:>10.0} {:>9} {:>9} {:>10.0}",
            app.name,
            of(|round| round.per_second),
            table::time(of(|round| round.p50.as_secs_f64() * 1e6)),
            table::time(of(|round| round.p99.as_secs_f64() * 1e6)),
            of(|round| round.replays_per_second),
        );
    }
    let lines = layer::lines(&served);
    lines.iter().for_each(|line| println!("{line}"));
    sqlite.remove().await;
    if let Some(postgres) = postgres {
        postgres.remove().await;
    }
    lines
}

/// What has a target, once more and together.
fn summary(lines: &[Line]) {
    let judged: Vec<&Line> = lines.iter().filter(|line| line.target.is_some()).collect();
    if judged.is_empty() {
        return;
    }
    let met = judged.iter().filter(|line| line.target.is_some_and(|target| target.met(line.value))).count();
    println!("\ntargets: {met} of {} met", judged.len());
    judged.iter().for_each(|line| println!("{line}"));
}
