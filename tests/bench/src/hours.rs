//! Load at half of what was just measured, for long: what a database does by itself meanwhile.
//!
//! Calls begin by the clock, whether or not earlier ones have ended, and are timed from when they should have begun: a pause
//! of the database is in the latencies of all calls that it held up.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    caller::Keys,
    compare::Ground,
    contender::Contender,
    field::{EFFECTUAL, Entrant},
    load,
    store::{Database, Store},
    table,
};

/// Calls begin in groups, this far apart.
const TICK: Duration = Duration::from_millis(2);
/// So many calls under way mean that the database does not keep up.
const UNDER_WAY_MAX: usize = 20_000;

pub(crate) async fn run(ground: &Ground<'_>, minutes: u64) -> String {
    let entrant = Entrant::enter(EFFECTUAL, ground.store("hours").await).await;
    let keys = Keys::Fresh(Arc::clone(&entrant.keys));
    let mut capacity = 0.0;
    for seconds in [2, 6] {
        let load = ground.load(64, Duration::from_secs(seconds));
        capacity = load::perform(EFFECTUAL, &entrant.contender, &keys, load).await.per_second;
    }
    let rate = capacity / 2.0;
    let head = format!("{}: {rate:.0} effects/s, half of {capacity:.0}", ground.database.name());
    println!("\n{head}");
    let mut text = format!("{head}\n\n```text\n");
    for minute in 1..=minutes {
        let seen = minute_of(&entrant, rate).await;
        let line = format!("{minute:>3} min {seen} {}", database(&entrant.store).await);
        println!("{line}");
        text += &line;
        text.push('\n');
        if free_gib(ground) < 8 {
            println!("ended early: less than 8 GiB are free");
            break;
        }
    }
    text += "```\n\n";
    let (asked, performed) = (entrant.keys.load(Ordering::Relaxed), entrant.provider.performed());
    assert_eq!(asked, performed, "each was performed once");
    assert_eq!(entrant.store.number(entrant.contender.count()).await, performed, "and each is stored");
    entrant.leave().await;
    text
}

/// Calls by the clock for a minute.
async fn minute_of(entrant: &Entrant, rate: f64) -> String {
    const LENGTH: Duration = Duration::from_secs(60);
    let latencies = Arc::new(Mutex::new(Vec::new()));
    let under_way = Arc::new(AtomicUsize::new(0));
    let (mut begun, mut refused, began) = (0_u64, 0_u64, Instant::now());
    let mut ticks = tokio::time::interval(TICK);
    while began.elapsed() < LENGTH {
        ticks.tick().await;
        let until = (began.elapsed().as_secs_f64() * rate) as u64;
        while begun + refused < until {
            if under_way.load(Ordering::Relaxed) >= UNDER_WAY_MAX {
                refused += 1;
                continue;
            }
            let due = began + Duration::from_secs_f64((begun + refused) as f64 / rate);
            begun += 1;
            tokio::spawn(one(entrant, due, &under_way, &latencies));
        }
    }
    while under_way.load(Ordering::Relaxed) > 0 {
        ticks.tick().await;
    }
    let mut seen = std::mem::take(&mut *latencies.lock().expect("nobody panicked"));
    seen.sort_unstable();
    let at = |share: f64| {
        let latency: Duration = seen.get((seen.len() as f64 * share) as usize).copied().unwrap_or_default();
        table::time(latency.as_secs_f64() * 1e6)
    };
    let rate = seen.len() as f64 / began.elapsed().as_secs_f64();
    let refused = if refused > 0 { format!(" not begun {refused}") } else { String::new() };
    format!("{rate:>7.0}/s p50 {:>8} p99 {:>8} p99.9 {:>8}{refused}", at(0.5), at(0.99), at(0.999))
}

fn one(
    entrant: &Entrant,
    due: Instant,
    under_way: &Arc<AtomicUsize>,
    latencies: &Arc<Mutex<Vec<Duration>>>,
) -> impl Future<Output = ()> + use<> {
    let (contender, keys): (Arc<dyn Contender>, Arc<AtomicU64>) =
        (Arc::clone(&entrant.contender), Arc::clone(&entrant.keys));
    let (under_way, latencies) = (Arc::clone(under_way), Arc::clone(latencies));
    under_way.fetch_add(1, Ordering::Relaxed);
    async move {
        contender.perform(keys.fetch_add(1, Ordering::Relaxed)).await;
        latencies.lock().expect("nobody panicked").push(due.elapsed());
        under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What the database says of itself.
async fn database(store: &Store) -> String {
    match store {
        Store::Sqlite(path) => {
            let mut log = path.clone().into_os_string();
            log.push("-wal");
            let mib = |path: &std::path::Path| std::fs::metadata(path).map_or(0, |file| file.len() >> 20);
            format!("file {} MiB, log {} MiB", mib(path), mib(log.as_ref()))
        }
        Store::Postgres { .. } => {
            let ask = async |what: &str| {
                let sql = format!(
                    "SELECT ({what})::bigint FROM pg_stat_user_tables WHERE relname = 'effectual_effects'"
                );
                store.number(&sql).await
            };
            format!(
                "dead {} of {} rows, vacuumed {} times (last {} s ago), updates within their page {} %, table {} MiB, \
                 indexes {} MiB, checkpoints {}",
                ask("n_dead_tup").await,
                ask("n_live_tup").await,
                ask("autovacuum_count").await,
                ask("coalesce(extract(epoch FROM now() - last_autovacuum), 0)").await,
                ask("100 * n_tup_hot_upd / greatest(n_tup_upd, 1)").await,
                ask("pg_table_size(relid) >> 20").await,
                ask("pg_indexes_size(relid) >> 20").await,
                checkpoints(store).await,
            )
        }
    }
}

/// Where the server counts them depends on its version.
async fn checkpoints(store: &Store) -> u64 {
    let version = store.number("SELECT current_setting('server_version_num')::bigint").await;
    let sql = if version >= 170_000 {
        "SELECT (num_timed + num_requested)::bigint FROM pg_stat_checkpointer"
    } else {
        "SELECT (checkpoints_timed + checkpoints_req)::bigint FROM pg_stat_bgwriter"
    };
    store.number(sql).await
}

fn free_gib(ground: &Ground<'_>) -> u64 {
    let folder = match (ground.database, ground.server) {
        (Database::Postgres, Some(server)) => &server.folder,
        _ => ground.folder,
    };
    let said = std::process::Command::new("df").args(["--output=avail", "-BG"]).arg(folder).output();
    let said = said.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    said.split_whitespace()
        .last()
        .and_then(|text| text.trim_end_matches('G').parse().ok())
        .unwrap_or(u64::MAX)
}
