//! Nanoseconds of an annotated call on the ledger in memory, beside the same function without the attribute.

#[path = "../src/annotated.rs"]
mod annotated;

use std::cell::Cell;

use annotated::{order, plain, runtime, scope};
use criterion::{Criterion, criterion_group, criterion_main};

fn calls(criterion: &mut Criterion) {
    let runtime = runtime();
    let (_executor, scope) = {
        let _entered = runtime.enter();
        scope()
    };
    let next = Cell::new(0_u64);
    let mut group = criterion.benchmark_group("call");
    group.bench_function("plain", |bench| {
        bench.iter(|| runtime.block_on(plain(1)));
    });
    group.bench_function("fresh", |bench| {
        bench.iter(|| {
            next.set(next.get() + 1);
            runtime.block_on(async { order(&scope, next.get()).await.expect("an outcome") })
        });
    });
    group.bench_function("hit", |bench| {
        bench.iter(|| runtime.block_on(async { order(&scope, 1).await.expect("an outcome") }));
    });
    group.finish();
}

criterion_group!(benches, calls);
criterion_main!(benches);
