//! The vectors' values as Rust values, digested by the library.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use effectual::identity::{Arguments, KeyFields, RecipePlace, activity_recipe, business_identity};
use effectual::{EffectId, Fingerprint, Identity, InvocationId, NodeId, RunId, Tenant};
use serde::Serialize;
use uuid::Uuid;

pub(crate) type Answer = (&'static str, String);

pub(crate) fn answers() -> Vec<Answer> {
    let mut answers = Vec::new();
    absences(&mut answers);
    integers(&mut answers);
    texts(&mut answers);
    sequences(&mut answers);
    derived(&mut answers);
    operations(&mut answers);
    recipes(&mut answers);
    arguments(&mut answers);
    json_arguments(&mut answers);
    answers
}

fn tenant() -> Tenant {
    Tenant::parse("acme").expect("a valid tenant")
}

fn refund(key: KeyFields) -> String {
    business_identity(&tenant(), "refund-order", 1, &key).to_string()
}

fn one(value: impl Identity) -> String {
    refund(KeyFields::new().field("x", &value))
}

#[derive(Identity)]
struct NoField {}

fn absences(answers: &mut Vec<Answer>) {
    answers.extend([
        ("unit", one(())),
        ("none", one(None::<u64>)),
        ("text empty", one("")),
        ("text dash", one("-")),
        ("text null", one("null")),
        ("list empty", one(Vec::<String>::new())),
        ("list of one empty text", one([""])),
        ("bytes empty", one(Vec::<u8>::new())),
        ("some of empty text", one(Some(""))),
        ("some of none", one(Some(None::<String>))),
        ("map empty", one(BTreeMap::<u8, u8>::new())),
        ("set empty", one(BTreeSet::<u8>::new())),
        ("record empty", one(NoField {})),
        ("tuple empty", one(Nothing())),
    ]);
}

fn integers(answers: &mut Vec<Answer>) {
    answers.extend([
        ("true", one(true)),
        ("false", one(false)),
        ("char 1", one('1')),
        ("1 u8", one(1u8)),
        ("1 u16", one(1u16)),
        ("1 u32", one(1u32)),
        ("1 u64", one(1u64)),
        ("1 u128", one(1u128)),
        ("1 usize", one(1usize)),
        ("1 i8", one(1i8)),
        ("1 i16", one(1i16)),
        ("1 i32", one(1i32)),
        ("1 i64", one(1i64)),
        ("1 i128", one(1i128)),
        ("1 isize", one(1isize)),
        ("-1 i8", one(-1i8)),
        ("-1 i16", one(-1i16)),
        ("-1 i32", one(-1i32)),
        ("-1 i64", one(-1i64)),
        ("-1 i128", one(-1i128)),
        ("-1 isize", one(-1isize)),
        ("2^53", one(1u64 << 53)),
        ("2^53+1", one((1u64 << 53) + 1)),
        ("u64 max", one(u64::MAX)),
        ("u64 max - 1", one(u64::MAX - 1)),
        ("u128 max", one(u128::MAX)),
        ("i128 min", one(i128::MIN)),
        ("i64 min", one(i64::MIN)),
    ]);
}

fn texts(answers: &mut Vec<Answer>) {
    let uuid = Uuid::from_u128(0x67e5504410b1426f9247bb680e5fe0c8);
    answers.extend([
        ("text true", one("true")),
        ("text 1", one("1")),
        ("text a", one(Box::<str>::from("a"))),
        ("char emoji", one('\u{1f600}')),
        ("text emoji", one("\u{1f469}\u{200d}\u{1f680} paid \u{20ac}")),
        ("text composed", one("\u{e9}")),
        ("text decomposed", one("e\u{301}")),
        ("text upper case", one("ORDER".to_owned())),
        ("text lower case", one(Cow::from("order"))),
        ("text with space behind", one("order ")),
        ("text 10 KB", one("0123456789".repeat(1024))),
        ("text 10 KB and one", one("0123456789".repeat(1025))),
        ("text a NUL b", one("a\0b")),
        ("bytes", one([0u8, 255, 16])),
        ("uuid", one(uuid)),
        ("uuid as text", one(uuid.to_string())),
        ("uuid as bytes", one(uuid.into_bytes())),
        ("tenant as a key", one(Tenant::parse("anon:visitor").expect("a valid tenant"))),
    ]);
}

fn sequences(answers: &mut Vec<Answer>) {
    answers.extend([
        ("list of u16", one(vec![0u16, 255, 16])),
        ("tuple of u8", one((0u8, 255u8, 16u8))),
        ("tuple a:b c", one(("a:b", "c"))),
        ("tuple a b:c", one(("a", "b:c"))),
        ("tuple a b", one(("a", "b"))),
        ("tuple empty x", one(("", "x"))),
        ("tuple x empty", one(("x", ""))),
        ("tuple of one", one(("a",))),
        ("tuple of eight", one((0u8, 1u8, 2u8, 3u8, 4u8, 5u8, 6u8, 7u8))),
        ("list a b", one(["a", "b"])),
        ("nested lists", one(vec![vec!["a"], vec![], vec!["b", "c"]])),
        ("list of options", one([Some(1u32), None])),
        ("map", one(BTreeMap::from([("a", 1i64), ("", 0), ("bb", -1)]))),
        ("map with negative keys", one(BTreeMap::from([(-1i8, "m"), (1, "p")]))),
        ("set", one(BTreeSet::from(["a", "bb", "\u{e9}"]))),
    ]);
}

#[derive(Identity)]
struct Nothing();

#[derive(Identity)]
struct OrderId(u64);

#[derive(Identity)]
struct Line {
    reason: Reason,
    order: OrderId,
    #[key(name = "line")]
    number: Option<u32>,
}

#[derive(Identity)]
enum Reason {
    #[key(name = "damaged")]
    Damaged,
    Note(String),
    Range(u8, u8),
    Other {
        text: &'static str,
        code: u16,
    },
}

fn derived(answers: &mut Vec<Answer>) {
    answers.extend([
        ("newtype", one(OrderId(7))),
        ("record", one(Line { reason: Reason::Damaged, order: OrderId(7), number: Some(2) })),
        ("variant unit", one(Reason::Damaged)),
        ("variant newtype", one(Reason::Note("late".into()))),
        ("variant tuple", one(Reason::Range(1, 9))),
        ("variant record", one(Reason::Other { text: "late", code: 4 })),
    ]);
}

fn operations(answers: &mut Vec<Answer>) {
    let order = KeyFields::new().field("order", &OrderId(7));
    let placed = |generation: u32| {
        refund(KeyFields::new().field("order", &7u64).field("generation", &generation).field("Zone", "eu"))
    };
    let anonymous = Tenant::parse("anon:acme").expect("a valid tenant");
    let version = |version| business_identity(&tenant(), "refund-order", version, &order).to_string();
    answers.extend([
        ("no field", refund(KeyFields::new())),
        ("three fields", placed(2)),
        ("generation 3", placed(3)),
        ("field names with a shared start", refund(KeyFields::new().field("ab", "c").field("a", "bc"))),
        ("another operation", business_identity(&tenant(), "charge-order", 1, &order).to_string()),
        ("another tenant", business_identity(&anonymous, "refund-order", 1, &order).to_string()),
        ("version 1", version(1)),
        ("version 2", version(2)),
        ("version max", version(u32::MAX)),
    ]);
}

fn node(run: &str, node: &str) -> RecipePlace {
    RecipePlace::Node {
        run: RunId::parse(run).expect("a valid run id"),
        node: NodeId::parse(node).expect("a valid node id"),
    }
}

fn recipe() -> EffectId {
    activity_recipe(&tenant(), &node("acme/0123456789abcdef", "charge:1"), 0, None, "send-mail")
}

fn recipes(answers: &mut Vec<Answer>) {
    let here = node("acme/0123456789abcdef", "charge:1");
    let mail = |place: &RecipePlace, ordinal, provider, operation| {
        activity_recipe(&tenant(), place, ordinal, provider, operation).to_string()
    };
    let fork = node("acme/fedcba9876543210", "charge:1");
    let elsewhere = node("acme/0123456789abcdef", "charge:2");
    let parent = RecipePlace::Effect(recipe());
    answers.extend([
        ("recipe", recipe().to_string()),
        ("recipe ordinal 1", mail(&here, 1, None, "send-mail")),
        ("recipe ordinal max", mail(&here, u64::MAX, None, "send-mail")),
        ("recipe of a fork", mail(&fork, 0, None, "send-mail")),
        ("recipe of another node", mail(&elsewhere, 0, None, "send-mail")),
        ("recipe with provider", mail(&here, 0, Some("stripe"), "send-mail")),
        ("recipe with empty provider", mail(&here, 0, Some(""), "send-mail")),
        ("recipe with another operation", mail(&here, 0, None, "send-sms")),
        ("recipe with the provider's name as operation", mail(&here, 0, None, "stripe")),
        ("recipe inside an effect", mail(&parent, 0, None, "send-mail")),
        ("recipe inside an effect, ordinal 1", mail(&parent, 1, None, "send-mail")),
    ]);
}

fn digest(arguments: Arguments) -> String {
    let digests = arguments.finish().expect("the argument has a fingerprint");
    blake3::Hash::from_bytes(digests[0].digest).to_hex().to_string()
}

fn argument(value: impl Fingerprint) -> String {
    digest(Arguments::new().argument("x", &value))
}

#[derive(Fingerprint)]
struct Parcel {
    weight_kg: f64,
    fragile: bool,
}

fn arguments(answers: &mut Vec<Answer>) {
    answers.extend([
        ("argument u64", argument(500u64)),
        ("argument by another name", digest(Arguments::new().argument("amount", &500u64))),
        ("f64 0.1", argument(0.1f64)),
        ("f64 zero", argument(0.0f64)),
        ("f64 minus zero", argument(-0.0f64)),
        ("f64 NaN", argument(f64::from_bits(0xfff8_dead_beef_0001))),
        ("f64 infinite", argument(f64::INFINITY)),
        ("f32 0.1", argument(0.1f32)),
        ("f32 NaN", argument(f32::NAN)),
        ("f64 none", argument(None::<f64>)),
        ("f64 some", argument(Some(1.5f64))),
        ("duration", argument(Duration::from_millis(90_005))),
        ("run id", argument(RunId::parse("acme/0123456789abcdef").expect("a valid run id"))),
        ("node id", argument(NodeId::parse("charge:1").expect("a valid node id"))),
        ("invocation id", argument(InvocationId::parse("inv-1").expect("a valid invocation id"))),
        ("effect id", argument(recipe())),
        ("record with a float", argument(Parcel { weight_kg: 2.5, fragile: true })),
    ]);
}

#[derive(Serialize)]
struct Order {
    b: HashMap<&'static str, serde_json::Value>,
    a: (u8, Option<u8>, &'static str),
}

fn json_arguments(answers: &mut Vec<Answer>) {
    let order = Order { b: HashMap::from([("y", true.into()), ("x", 1.5.into())]), a: (1, None, "\u{e9}") };
    answers.extend([
        ("json", digest(Arguments::new().json_argument("x", &order))),
        ("json null", digest(Arguments::new().json_argument("x", &()))),
        ("json u128", digest(Arguments::new().json_argument("x", &u128::MAX))),
        ("the same as text", argument(r#"{"a":[1,null,"é"],"b":{"x":1.5,"y":true}}"#)),
    ]);
}
