//! Effectual beside code written by hand and beside its peers.
mod by_hand;
mod contender;
mod cpu;
mod effectual;
mod load;

use ::effectual::{PostgresLedger, SqliteLedger};
use contender::Contender;
use load::Keys;
use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let db = args.first().map_or("sqlite", String::as_str);
    let callers: Vec<usize> =
        args.get(1).map_or("1,64", String::as_str).split(',').map(|c| c.parse().unwrap()).collect();
    let length = Duration::from_millis(args.get(2).map_or(1000, |c| c.parse().unwrap()));
    let rounds: usize = args.get(3).map_or(3, |c| c.parse().unwrap());
    let only = args.get(4).cloned().unwrap_or_default();
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let url = std::env::var("EFFECTUAL_TEST_POSTGRES_URL").unwrap_or_default();
    let mut all: Vec<(&str, Arc<dyn Contender>)> = Vec::new();
    if db == "sqlite" {
        all.push(("group", Arc::new(by_hand::sqlite::group(&at("group.db")))));
        all.push((
            "effectual",
            Arc::new(effectual::Effectual::new(SqliteLedger::open(at("e.db")).await.unwrap())),
        ));
        all.push(("two", Arc::new(by_hand::sqlite::TwoStatements::open(&at("two.db")).await)));
    } else {
        all.push(("group", Arc::new(by_hand::postgres::group(&url).await)));
        all.push((
            "effectual",
            Arc::new(effectual::Effectual::new(PostgresLedger::connect(&url).await.unwrap())),
        ));
    }
    all.retain(|(name, _)| only.is_empty() || only.split(',').any(|o| o == *name));
    let server = std::env::var("EFFECTUAL_BENCH_SERVER_PID").ok().and_then(|p| p.parse().ok());
    for callers in callers {
        let keys: Vec<_> = all
            .iter()
            .map(|(n, _)| {
                Keys::Fresh(Arc::new(AtomicU64::new(
                    callers as u64 * 1_000_000_000 + n.len() as u64 * 1_000_000_000_000,
                )))
            })
            .collect();
        let mut per = vec![Vec::new(); all.len()];
        for round in 0..=rounds {
            for (i, (name, c)) in all.iter().enumerate() {
                let r = load::round(c, callers, &keys[i], length, server).await;
                if round > 0 {
                    println!(
                        "{db} {callers} {name}: {:.0}/s p50 {:?} p99 {:?} cpu {:?}",
                        r.per_second, r.p50, r.p99, r.cpu
                    );
                    per[i].push(r.per_second);
                }
            }
        }
        for (i, (name, _)) in all.iter().enumerate() {
            per[i].sort_by(f64::total_cmp);
            let m = per[i][per[i].len() / 2];
            let g = per[0][per[0].len() / 2];
            println!("== {db} {callers} {name} {m:.0} ratio {:.2}", m / g);
        }
    }
}
