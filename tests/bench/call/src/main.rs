//! Calls on the ledger in memory, for whoever counts: `call MODE CALLS` makes so many of one kind (`fresh`, `hit`, `plain`)
//! and nothing else, for callgrind; `call allocations` counts allocations of each kind.

mod annotated;

use annotated::{order, plain, runtime, scope};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.as_slice() {
        [mode] if mode == "allocations" => allocations(),
        [mode, calls] => {
            let calls = calls.parse().expect("a number of calls");
            runtime().block_on(make(mode, calls));
        }
        _ => panic!("call MODE CALLS, or call allocations"),
    }
}

async fn make(mode: &str, calls: u64) {
    let (_executor, scope) = scope();
    order(&scope, 0).await.expect("an outcome");
    for call in 1..=calls {
        let answer = match mode {
            "fresh" => order(&scope, call).await.expect("an outcome"),
            "hit" => order(&scope, 0).await.expect("an outcome"),
            "plain" => plain(call).await,
            other => panic!("{other} is no mode: fresh, hit or plain"),
        };
        std::hint::black_box(answer);
    }
}

/// The difference of many calls and few: what a start costs is in neither.
fn allocations() {
    const FEW: u64 = 2_000;
    const MANY: u64 = 12_000;
    for mode in ["fresh", "hit", "plain"] {
        let count = |calls| {
            let runtime = runtime();
            allocation_counter::measure(|| runtime.block_on(make(mode, calls)))
        };
        let (few, many) = (count(FEW), count(MANY));
        let a_call = |few: u64, many: u64| (many - few) as f64 / (MANY - FEW) as f64;
        println!(
            "allocations-per-call {mode} {:.1} ({:.0} bytes)",
            a_call(few.count_total, many.count_total),
            a_call(few.bytes_total, many.bytes_total)
        );
    }
}
