//! Random values of random shapes: two that differ never have one identity. The seed is fixed, so a failure is
//! the same in every run.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use effectual::Identity;
use effectual::identity::{Encoder, KeyFields, Tenant, business_identity};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Shape {
    Text(String),
    Bytes(Vec<u8>),
    Number(u64),
    Signed(i32),
    Flag(bool),
    Maybe(Option<Box<Shape>>),
    List(Vec<Shape>),
    Pair(Box<(Shape, Shape)>),
    Map(BTreeMap<Shape, Shape>),
}

impl Identity for Shape {
    fn encode(&self, out: &mut Encoder) {
        match self {
            Self::Text(value) => value.encode(out),
            Self::Bytes(value) => value.encode(out),
            Self::Number(value) => value.encode(out),
            Self::Signed(value) => value.encode(out),
            Self::Flag(value) => value.encode(out),
            Self::Maybe(value) => value.encode(out),
            Self::List(value) => value.encode(out),
            Self::Pair(value) => value.encode(out),
            Self::Map(value) => value.encode(out),
        }
    }
}

/// SplitMix64: a few lines, and enough for shapes.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    /// Few and similar characters, separators among them, so that near misses are frequent.
    fn text(&mut self) -> String {
        const ALPHABET: [char; 6] = ['a', 'b', ':', '\0', '\u{5}', 'é'];
        (0..self.below(4)).map(|_| ALPHABET[self.below(6) as usize]).collect()
    }

    fn shapes(&mut self, depth: u64) -> Vec<Shape> {
        (0..self.below(3)).map(|_| self.shape(depth)).collect()
    }

    fn shape(&mut self, depth: u64) -> Shape {
        match self.below(if depth == 0 { 5 } else { 9 }) {
            0 => Shape::Text(self.text()),
            1 => Shape::Bytes(self.text().into_bytes()),
            2 => Shape::Number(self.below(3)),
            3 => Shape::Signed(self.below(3) as i32 - 1),
            4 => Shape::Flag(self.below(2) == 0),
            5 => Shape::Maybe((self.below(3) > 0).then(|| Box::new(self.shape(depth - 1)))),
            6 => Shape::List(self.shapes(depth - 1)),
            7 => Shape::Pair(Box::new((self.shape(depth - 1), self.shape(depth - 1)))),
            _ => {
                let keys = self.shapes(depth - 1);
                Shape::Map(keys.into_iter().map(|key| (key, self.shape(depth - 1))).collect())
            }
        }
    }
}

#[test]
fn f44_different_keys_are_different_effects() {
    let tenant = Tenant::parse("acme").expect("a valid tenant");
    let mut random = Random(0x5eed);
    let mut seen: HashMap<_, Vec<(String, Shape)>> = HashMap::new();
    for _ in 0..40_000 {
        let mut fields: Vec<_> =
            (0..=random.below(2)).map(|n| (["a", "ab"][n as usize], random.shape(3))).collect();
        if random.below(2) == 0 {
            fields.reverse();
        }
        let key = fields.iter().fold(KeyFields::new(), |key, (name, value)| key.field(name, value));
        let id = business_identity(&tenant, "op", 1, &key);
        let mut fields: Vec<_> = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        fields.sort();
        let earlier = seen.entry(id).or_insert_with(|| fields.clone());
        assert_eq!(earlier, &fields, "two keys with one identity");
    }
    assert!((10_000..30_000).contains(&seen.len()), "both kinds are met, and often: {}", seen.len());
}

/// Sorts the other way round than `Shape`.
#[derive(PartialEq, Eq, Identity)]
struct Backwards(Shape);

impl PartialOrd for Backwards {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Backwards {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.cmp(&self.0)
    }
}

#[test]
fn f49_the_order_of_the_keys_type_means_nothing() {
    let tenant = Tenant::parse("acme").expect("a valid tenant");
    let id = |map: &dyn Identity| business_identity(&tenant, "op", 1, &KeyFields::new().field("map", map));
    let mut random = Random(7);
    for _ in 0..500 {
        let shapes: Vec<_> = (0..4).map(|_| random.shape(2)).collect();
        let keys = || shapes.iter().cloned();
        let map: BTreeMap<_, _> = keys().zip(0u32..).collect();
        let backwards: BTreeMap<_, _> = keys().map(Backwards).zip(0u32..).collect();
        assert_eq!(id(&map), id(&backwards));
        let set: BTreeSet<_> = keys().collect();
        assert_eq!(id(&set), id(&keys().map(Backwards).collect::<BTreeSet<_>>()));
    }
}
