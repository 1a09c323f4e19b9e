//! Random lives of one effect, judged step by step: what must hold of every row, whatever came before it.
//!
//! Several callers claim, act, fall silent and come back; the clock makes small and large steps. A hidden truth says
//! which attempts performed the effect, and callers report no more than they can know of it.

pub(crate) mod checks;
pub(crate) mod world;

use self::world::World;

const LIVES: u64 = 20_000;
const STEPS: u32 = 30;

/// Steps of SplitMix64: the same lives for the same seed, on every machine.
#[derive(Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to below `end`.
    pub(crate) fn below(&mut self, end: i64) -> i64 {
        i64::try_from(self.next() % end.unsigned_abs()).unwrap_or(0)
    }

    pub(crate) fn one_in(&mut self, count: i64) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let at = self.below(i64::try_from(from.len()).unwrap_or(1));
        from[usize::try_from(at).unwrap_or(0)]
    }
}

/// The seed of this run; `EFFECTUAL_SEED` repeats another's.
fn seed() -> u64 {
    let given = std::env::var("EFFECTUAL_SEED").ok().and_then(|text| text.parse().ok());
    given.unwrap_or_else(|| {
        u64::from_le_bytes(uuid::Uuid::new_v4().into_bytes()[..8].try_into().unwrap_or([1; 8]))
    })
}

#[test]
fn no_life_of_an_effect_breaks_a_rule() {
    let seed = seed();
    println!("EFFECTUAL_SEED={seed}");
    let (mut completed, mut looked_up, mut second_attempts, mut resolved) = (0, 0, 0, 0);
    for life in 0..LIVES {
        let mut world = World::new(Random(seed.wrapping_add(life)));
        for _ in 0..STEPS {
            world.step();
        }
        completed += u64::from(world.is_completed());
        looked_up += u64::from(world.looked_up);
        resolved += u64::from(world.resolved);
        second_attempts += u64::from(world.attempts() > 1);
    }
    // A model whose effects never get anywhere checks nothing.
    let counts = [
        ("completed", completed),
        ("looked up", looked_up),
        ("retried", second_attempts),
        ("resolved", resolved),
    ];
    for (what, count) in counts {
        assert!(count > LIVES / 20, "only {count} of {LIVES} lives were {what}");
    }
}
