//! Numbers that a seed decides, for faults at random places.

/// A well-mixed number for each input.
#[must_use]
pub fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A sequence of them.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The sequence of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(mixed(seed))
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mixed(self.0)
    }

    /// Whether something comes about that does so once in `many` times.
    pub fn one_in(&mut self, many: u64) -> bool {
        self.draw().is_multiple_of(many)
    }

    /// A number from `from` up to and without `to`.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.draw() % (to - from)
    }
}
