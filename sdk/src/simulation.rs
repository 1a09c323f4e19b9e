//! The production executor and group commit in a simulated world: many nodes, one ledger, a provider that counts.
//!
//! A seed decides the schedule, the faults and the callers; the same seed is the same run.

/// Numbers of what happened, by name.
macro_rules! counted {
    ($(#[$doc:meta])* $name:ident { $($field:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Default, Clone, Copy)]
        pub(super) struct $name {
            $(pub(super) $field: u64),+
        }

        impl $name {
            pub(super) fn add(&mut self, other: &Self) {
                $(self.$field += other.$field;)+
            }

            pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($field), self.$field)),+].into_iter()
            }
        }
    };
}

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

use self::{
    store::Counts,
    watch::Seen,
    world::{Ran, run},
};

/// Runs a seed; a failure says how to repeat it.
fn must_hold(seed: u64) -> Ran {
    let what = match catch_unwind(AssertUnwindSafe(|| run(seed))) {
        Ok(Ok(ran)) => return ran,
        Ok(Err(what)) => what,
        Err(_) => "a check of the store failed, see above".to_owned(),
    };
    panic!("{what}\nrepeat with: EFFECTUAL_SEED={seed} cargo test -p effectual --lib simulation");
}

/// How many seeds the tests run together, and with fewer where the environment says so.
const SEEDS: u64 = 10_000;

/// What a part of the seeds came to, all together.
fn part(number: u64, of: u64) {
    let given = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    if let Some(seed) = given("EFFECTUAL_SEED") {
        println!("{:?}", must_hold(seed));
        return;
    }
    let seeds = given("EFFECTUAL_SEEDS").unwrap_or(SEEDS);
    let (mut steps, mut seen, mut counts) = (0_u64, Seen::default(), Counts::default());
    let mine = (0..seeds).filter(|seed| seed % of == number);
    for seed in mine {
        let ran = must_hold(seed);
        steps += u64::from(ran.steps);
        seen.add(&ran.seen);
        counts.add(&ran.counts);
    }
    println!("{} seeds, {steps} steps\n{seen:?}\n{counts:?}", seeds / of);
    // A world in which nothing goes wrong shows nothing.
    if seeds >= SEEDS {
        for (what, count) in seen.all().chain(counts.all()) {
            assert!(count > 0, "no {what} in all these seeds");
        }
    }
}

#[test]
fn one_half_of_the_seeds() {
    part(0, 2);
}

#[test]
fn the_other_half_of_the_seeds() {
    part(1, 2);
}

#[test]
fn one_seed_is_one_run() {
    for seed in 0..20 {
        assert_eq!(must_hold(seed).trace, must_hold(seed).trace, "seed {seed}");
    }
}
