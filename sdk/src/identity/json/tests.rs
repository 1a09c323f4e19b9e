use std::collections::{BTreeMap, HashMap};

use serde::{Serialize, Serializer};

use super::{NOT_FINITE, Refused, canonical};

fn text(value: &impl Serialize) -> String {
    String::from_utf8(canonical(value).expect("it serialises")).expect("JSON is UTF-8")
}

#[derive(Serialize)]
struct Order {
    zebra: u8,
    apple: Option<u8>,
    kind: Kind,
    unit: Unit,
}

#[derive(Serialize)]
struct Unit;

#[derive(Serialize)]
enum Kind {
    Plain,
    One(u8),
    Two(u8, u8),
    Named { b: u8, a: u8 },
}

#[test]
fn names_are_sorted_at_every_depth() {
    let order = Order { zebra: 1, apple: None, kind: Kind::Named { b: 1, a: 2 }, unit: Unit };
    assert_eq!(text(&order), r#"{"apple":null,"kind":{"Named":{"a":2,"b":1}},"unit":null,"zebra":1}"#);
    assert_eq!(text(&[Kind::Plain, Kind::One(1)]), r#"["Plain",{"One":1}]"#);
    assert_eq!(text(&Kind::Two(1, 2)), r#"{"Two":[1,2]}"#);
    assert_eq!(text(&HashMap::from([(10, "b"), (9, "a"), (100, "c")])), r#"{"10":"b","100":"c","9":"a"}"#);
}

#[test]
fn it_is_the_json_that_everybody_reads() {
    let values = (
        ("a \"quoted\" \u{1f600} \n\u{0}", 'c', true, ()),
        [0.1, -0.0, 1e300, 5e-324, 1.0],
        (u64::MAX, i64::MIN, Some(1.5f32), [0u8; 0]),
        BTreeMap::from([("", BTreeMap::<String, u8>::new())]),
    );
    assert_eq!(text(&values), serde_json::to_string(&values).expect("text"));
}

#[test]
fn f48_wide_integers_keep_every_digit() {
    assert_eq!(text(&(u128::MAX, i128::MIN)), format!("[{},{}]", u128::MAX, i128::MIN));
}

#[test]
fn refusals_say_why() {
    struct Fails;
    impl Serialize for Fails {
        fn serialize<S: Serializer>(&self, _serializer: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("canary"))
        }
    }
    assert_eq!(canonical(&Some(f32::NAN)), Err(NOT_FINITE));
    assert_eq!(canonical(&BTreeMap::from([("x", f64::NEG_INFINITY)])), Err(NOT_FINITE));
    assert_eq!(canonical(&[Fails]), Err(Refused("its `Serialize` failed")));
    assert!(canonical(&BTreeMap::from([(None::<u8>, 1)])).is_err(), "`null` names nothing");
}
