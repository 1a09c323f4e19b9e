//! The production executor and group commit in a simulated world: many nodes, one ledger, a provider that counts.
//!
//! A seed decides the schedule, the faults and the callers; the same seed is the same run.

mod chaos;
mod effects;
mod ledger;
mod plan;
mod provider;
mod scheduler;
mod store;
mod watch;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use self::world::{Ran, run};

/// Runs a seed; a failure says how to repeat it.
fn must_hold(seed: u64) -> Ran {
    let what = match catch_unwind(AssertUnwindSafe(|| run(seed))) {
        Ok(Ok(ran)) => return ran,
        Ok(Err(what)) => what,
        Err(_) => "a check of the store failed, see above".to_owned(),
    };
    panic!("{what}\nrepeat with: EFFECTUAL_SEED={seed} cargo test -p effectual --lib simulation");
}

fn some(seeds: std::ops::Range<u64>) {
    if let Some(seed) = std::env::var("EFFECTUAL_SEED").ok().and_then(|text| text.parse().ok()) {
        println!("{:?}", must_hold(seed));
        return;
    }
    let mut steps = 0_u64;
    let mut total = [0_u64; 12];
    for seed in seeds.clone() {
        let ran = must_hold(seed);
        steps += u64::from(ran.steps);
        let (seen, counts) = (ran.seen, ran.counts);
        let of = [
            seen.done,
            seen.refused,
            seen.escaped,
            seen.mismatched,
            seen.accepted,
            seen.other,
            seen.permits,
            seen.permits_refused,
            counts.missed,
            counts.taken_over,
            counts.evidence,
            counts.looked_up,
        ];
        total.iter_mut().zip(of).for_each(|(total, of)| *total += u64::from(of));
    }
    println!("{} seeds, {steps} steps: {total:?}", seeds.end - seeds.start);
}

#[test]
fn first_half_of_the_seeds() {
    some(0..20_000);
}

#[test]
fn one_seed_is_one_run() {
    for seed in 0..20 {
        assert_eq!(must_hold(seed).trace, must_hold(seed).trace, "seed {seed}");
    }
}
