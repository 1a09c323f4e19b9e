//! What the derives encode, and for which types they compile.

#![allow(dead_code, reason = "the types are only there to be derived for")]

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::sync::Arc;

use effectual::identity::{Arguments, KeyFields, Tenant, business_identity};
use effectual::{EffectId, Fingerprint, Identity};

fn id(value: impl Identity) -> EffectId {
    let tenant = Tenant::parse("acme").expect("a valid tenant");
    business_identity(&tenant, "op", 1, &KeyFields::new().field("x", &value))
}

fn print(value: impl Fingerprint) -> [u8; 32] {
    Arguments::new().argument("x", &value).finish().expect("a fingerprint")[0].digest
}

mod before {
    #[derive(effectual::Identity)]
    pub(crate) struct Refund {
        pub(crate) order: u64,
        pub(crate) amount_cents: u32,
        pub(crate) kind: Kind,
    }

    #[derive(effectual::Identity)]
    pub(crate) enum Kind {
        Full,
        Part { lines: Vec<u16> },
    }
}

mod after {
    #[derive(effectual::Identity)]
    pub(crate) struct PayBack {
        #[key(name = "kind")]
        pub(crate) r#type: Sort,
        #[key(name = "amount_cents")]
        pub(crate) a_amount: u32,
        pub(crate) order: OrderId,
    }

    #[derive(effectual::Identity)]
    pub(crate) struct OrderId(pub(crate) u64);

    #[derive(effectual::Identity)]
    pub(crate) enum Sort {
        #[key(name = "Part")]
        Some { lines: Vec<u16> },
        #[key(name = "Full")]
        All,
    }
}

#[test]
fn f24_order_and_renames_do_not_change_an_identity_whose_names_are_pinned() {
    let old = |kind| id(before::Refund { order: 7, amount_cents: 500, kind });
    let new = |kind| id(after::PayBack { r#type: kind, a_amount: 500, order: after::OrderId(7) });
    assert_eq!(old(before::Kind::Full), new(after::Sort::All));
    assert_eq!(old(before::Kind::Part { lines: vec![1] }), new(after::Sort::Some { lines: vec![1] }));
    assert_ne!(old(before::Kind::Part { lines: vec![] }), old(before::Kind::Full));
}

#[test]
fn f51_nested_fields_take_part() {
    let refund =
        |lines| id(Some([before::Refund { order: 7, amount_cents: 5, kind: before::Kind::Part { lines } }]));
    assert_ne!(refund(vec![1]), refund(vec![2]));
    assert_eq!(refund(vec![1]), refund(vec![1]));
}

#[test]
fn wrappers_encode_as_their_content() {
    #[derive(Identity)]
    struct Newtype<'a>(&'a str);
    let text = id("x");
    assert_eq!(text, id("x".to_owned()));
    assert_eq!(text, id(Newtype("x")));
    assert_eq!(text, id(Box::new(Arc::<str>::from("x"))));
    assert_eq!(text, id(std::borrow::Cow::from("x")));
    assert_eq!(id(Vec::from(*b"xy")), id(&b"xy"[..]));
    assert_eq!(id(*b"xy"), id(Arc::<[u8]>::from(*b"xy")));
}

#[test]
fn a_raw_name_is_the_name() {
    #[derive(Identity)]
    struct Raw {
        r#type: u8,
    }
    #[derive(Identity)]
    struct Pinned {
        #[key(name = "type")]
        kind: u8,
    }
    assert_eq!(id(Raw { r#type: 1 }), id(Pinned { kind: 1 }));
}

#[test]
fn both_traits_of_one_type_agree() {
    let refund = || before::Refund { order: 7, amount_cents: 500, kind: before::Kind::Full };
    #[derive(Fingerprint)]
    struct Same {
        order: u64,
        amount_cents: u32,
        kind: before::Kind,
    }
    assert_eq!(print(refund()), print(Same { order: 7, amount_cents: 500, kind: before::Kind::Full }));
}

trait Entity {
    type Id;
}

struct Order;

impl Entity for Order {
    type Id = u64;
}

#[derive(Identity)]
struct Of<T: Entity> {
    id: T::Id,
    same: <T as Entity>::Id,
    marker: PhantomData<T>,
}

#[derive(Identity)]
enum Tree<T, const N: usize> {
    Leaf([T; N]),
    Node(Box<Tree<T, N>>, Vec<Self>),
}

#[derive(Fingerprint)]
struct Measured<T> {
    value: Option<T>,
    at: BTreeMap<String, T>,
}

#[derive(Identity)]
enum Never {}

#[test]
fn generic_and_recursive_types() {
    // `Order` itself has no identity: only its id is held.
    assert_ne!(
        id(Of::<Order> { id: 1, same: 1, marker: PhantomData }),
        id(Of::<Order> { id: 1, same: 2, marker: PhantomData })
    );
    let leaf = || Tree::Leaf(["a", "b"]);
    assert_ne!(id(leaf()), id(Tree::Node(Box::new(leaf()), vec![])));
    assert_eq!(
        id(Tree::Node(Box::new(leaf()), vec![leaf()])),
        id(Tree::Node(Box::new(leaf()), vec![leaf()]))
    );
    let measured =
        |value| print(Measured { value: Some(value), at: BTreeMap::from([("x".to_owned(), 1.0)]) });
    assert_ne!(measured(1.0f64), measured(1.5));
}

mod renamed {
    pub(crate) use effectual as sdk;

    #[derive(sdk::Identity)]
    #[effectual(crate = crate::renamed::sdk)]
    pub(crate) struct Key(pub(crate) u8);
}

#[test]
fn a_renamed_crate_is_found() {
    assert_eq!(id(renamed::Key(1)), id(1u8));
}

macro_rules! declare {
    ($name:ident, $field:ident: $ty:ty) => {
        #[derive(Identity)]
        struct $name {
            $field: $ty,
            fixed: Option<u8>,
        }
    };
}

declare!(Declared, field: BTreeSet<char>);

#[test]
fn types_that_a_macro_declares() {
    let declared = |chars: [char; 2]| id(Declared { field: chars.into(), fixed: None });
    assert_eq!(declared(['a', 'b']), declared(['b', 'a']));
}

#[test]
fn two_fields_of_one_name_are_still_unambiguous() {
    let tenant = Tenant::parse("acme").expect("a valid tenant");
    let twice = |one: &str, two: &str| {
        business_identity(&tenant, "op", 1, &KeyFields::new().field("x", one).field("x", two))
    };
    let ids = BTreeSet::from([
        twice("a", "b"),
        twice("b", "a"),
        twice("ab", ""),
        twice("", "ab"),
        id("a"),
        id(("a", "b")),
    ]);
    assert_eq!(ids.len(), 6);
}

#[test]
fn values_do_not_show_in_debug() {
    let key = KeyFields::new().field("card", "canary");
    assert_eq!(format!("{key:?}"), "{\"card\"}");
}
