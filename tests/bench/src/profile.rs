//! Instructions that the PostgreSQL server spends on an effect, and on what. They do not depend on how busy the machine is.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::Ordering,
    time::Duration,
};

use crate::{
    caller::Keys,
    compare::{Ground, check},
    cpu::children,
    field::{EFFECTUAL, Entrant, LIMIT, ON_LEDGER, POSTGRES},
    load,
    options::Options,
};

/// Where valgrind, which the server runs under, leaves a profile of each connection.
const PROFILES: &str = "EFFECTUAL_BENCH_PROFILES";

/// What is told apart, each with what it calls: functions of the server, and what they do.
const PARTS: [(&str, &str); 7] = [
    ("standard_ExecutorStart", "set-up"),
    ("array_recv", "arrays"),
    ("ExecConstraints", "rules"),
    ("ExecInsertIndexTuples", "indexes"),
    ("heap_insert", "insert"),
    ("heap_update", "update"),
    ("CommitTransactionCommand", "commit"),
];

/// The instructions of the server's connections, in all and by [`PARTS`], and how many effects they were spent on.
#[derive(Debug, Default)]
struct Spent {
    effects: u64,
    instructions: u64,
    parts: HashMap<&'static str, u64>,
}

/// Measures by hand, by hand on the ledger's table, and this library, unless others are asked for; returns
/// what it printed, as Markdown.
pub(crate) async fn run(ground: &Ground<'_>, options: &Options) -> String {
    let folder =
        PathBuf::from(std::env::var(PROFILES).expect("a server under valgrind: ./tests/bench/run profile"));
    let names: String = PARTS.iter().map(|(_, what)| format!("{what:>9}")).collect();
    let mut text = format!(
        "contender               callers  effects    total{names}   (thousands of instructions an effect)\n"
    );
    print!("\n{text}");
    let all: &[&str] = if options.only.is_some() { &POSTGRES } else { &[LIMIT, ON_LEDGER, EFFECTUAL] };
    for callers in options.callers.clone().unwrap_or_else(|| vec![1, 64]) {
        for name in options.names(all, callers) {
            // What a connection costs before its first effect and after its last is in both, and in neither's difference.
            let few = measure(ground, &folder, name, callers, Duration::from_secs(3)).await;
            let many = measure(ground, &folder, name, callers, Duration::from_secs(15)).await;
            let row = row(name, callers, &few, &many);
            print!("{row}");
            text += &row;
        }
    }
    format!("```text\n{text}```\n")
}

fn row(name: &str, callers: usize, few: &Spent, many: &Spent) -> String {
    let effects = many.effects - few.effects;
    let each = |few: u64, many: u64| (many - few) as f64 / effects as f64 / 1000.0;
    let of = |part: &str, spent: &Spent| spent.parts.get(part).copied().unwrap_or(0);
    let parts: String =
        PARTS.iter().map(|(part, _)| format!("{:>9.1}", each(of(part, few), of(part, many)))).collect();
    let total = each(few.instructions, many.instructions);
    format!("{name:24} {callers:>6} {effects:>8} {total:>8.1}{parts}\n")
}

async fn measure(
    ground: &Ground<'_>,
    folder: &Path,
    name: &'static str,
    callers: usize,
    length: Duration,
) -> Spent {
    let server = ground.server.and_then(|server| server.pid).expect("the server's first process");
    for file in std::fs::read_dir(folder).expect("a folder") {
        std::fs::remove_file(file.expect("a file").path()).expect("a file to remove");
    }
    let before = children(server).len();
    let entrant = Entrant::enter(name, ground.store(name).await).await;
    let keys = Keys::Fresh(entrant.keys.clone());
    load::perform(name, &entrant.contender, &keys, ground.load(callers, length)).await;
    check(&entrant).await;
    let effects = entrant.keys.load(Ordering::Relaxed);
    entrant.leave().await;
    // The profile of a connection is written when its process ends.
    let mut look = tokio::time::interval(Duration::from_millis(20));
    while children(server).len() > before {
        look.tick().await;
    }
    Spent { effects, ..spent(folder) }
}

/// The sum of the profiles in the folder.
fn spent(folder: &Path) -> Spent {
    let mut sum = Spent::default();
    for file in std::fs::read_dir(folder).expect("a folder") {
        let annotate = Command::new("callgrind_annotate")
            .args(["--inclusive=yes", "--threshold=100", "--auto=no"])
            .arg(file.expect("a file").path())
            .output()
            .expect("callgrind_annotate, which comes with valgrind");
        assert!(annotate.status.success(), "{}", String::from_utf8_lossy(&annotate.stderr));
        for line in String::from_utf8_lossy(&annotate.stdout).lines() {
            let mut words = line.split_whitespace();
            let count = words.next().and_then(|count| count.replace(',', "").parse::<u64>().ok());
            let Some(count) = count else { continue };
            if line.ends_with("PROGRAM TOTALS") {
                sum.instructions += count;
            }
            for (part, _) in PARTS {
                if line.contains(&format!(":{part} ")) {
                    *sum.parts.entry(part).or_default() += count;
                }
            }
        }
    }
    sum
}
