//! The encoding, from its specification, over the vectors' own description of values. It shares no code with
//! the library, so that a mistake would have to be made twice.

use serde_json::Value;

pub(crate) fn encode(vector: &Value) -> Vec<u8> {
    if let Some(business) = vector.get("business") {
        let head = vec![
            ("key".to_owned(), record(pairs(&business["key"]))),
            ("operation".to_owned(), text(&business["operation"])),
            ("tenant".to_owned(), text(&business["tenant"])),
            ("version".to_owned(), integer("u32", &business["version"].to_string())),
        ];
        return [b"effectual/business-identity\0\x01".to_vec(), record(head)].concat();
    }
    if let Some(recipe) = vector.get("recipe") {
        let provider = match &recipe["provider"] {
            Value::Null => value(0x00, vec![]),
            name => value(0x01, text(name)),
        };
        let mut head = vec![
            ("provider".to_owned(), provider),
            ("ordinal".to_owned(), integer("u64", &recipe["ordinal"].to_string())),
        ];
        for name in ["tenant", "operation", "run", "node", "effect"] {
            if let Some(field) = recipe.get(name) {
                head.push((name.to_owned(), text(field)));
            }
        }
        return [b"effectual/activity-recipe\0\x01".to_vec(), record(head)].concat();
    }
    let argument = &vector["argument"];
    [b"effectual/argument\0\x01".to_vec(), name(string(&argument["name"])), described(&argument["value"])]
        .concat()
}

fn described(description: &Value) -> Vec<u8> {
    let (kind, inner) =
        description.as_object().and_then(|o| o.iter().next()).expect("one kind and its value");
    let items = || inner.as_array().expect("an array").iter().map(described);
    match kind.as_str() {
        "none" => value(0x00, vec![]),
        "some" => value(0x01, described(inner)),
        "unit" => value(0x02, vec![]),
        "bool" => value(0x03, vec![u8::from(inner.as_bool().expect("a bool"))]),
        "char" => {
            let scalar = string(inner).chars().next().expect("one character");
            value(0x04, number(u32::from(scalar).into(), 4))
        }
        "text" => text(inner),
        "bytes" => value(0x06, unhex(inner)),
        "uuid" => value(0x07, unhex(inner)),
        "list" => value(0x08, items().collect::<Vec<_>>().concat()),
        "tuple" => value(0x09, items().collect::<Vec<_>>().concat()),
        "map" => {
            let entry = |e: &Value| [described(&e[0]), described(&e[1])].concat();
            value(0x0a, sorted(inner.as_array().expect("an array").iter().map(entry).collect()))
        }
        "set" => value(0x0b, sorted(items().collect())),
        "record" => record(pairs(inner)),
        "variant" => value(0x0d, [name(string(&inner[0])), described(&inner[1])].concat()),
        "f32" => value(0x20, unhex(inner)),
        "f64" => value(0x21, unhex(inner)),
        "duration" => {
            let part = |n: usize| u128::from(inner[n].as_u64().expect("an integer"));
            value(0x22, [number(part(0), 8), number(part(1), 4)].concat())
        }
        "json" => value(0x23, string(inner).as_bytes().to_vec()),
        integer_kind => integer(integer_kind, string(inner)),
    }
}

fn integer(kind: &str, digits: &str) -> Vec<u8> {
    const KINDS: [(&str, u8, usize); 12] = [
        ("u8", 0x10, 1),
        ("u16", 0x11, 2),
        ("u32", 0x12, 4),
        ("u64", 0x13, 8),
        ("u128", 0x14, 16),
        ("usize", 0x15, 8),
        ("i8", 0x18, 1),
        ("i16", 0x19, 2),
        ("i32", 0x1a, 4),
        ("i64", 0x1b, 8),
        ("i128", 0x1c, 16),
        ("isize", 0x1d, 8),
    ];
    let (_, tag, width) = KINDS.into_iter().find(|(name, ..)| *name == kind).expect("a kind of integer");
    let two_complement = match digits.strip_prefix('-') {
        Some(positive) => positive.parse::<u128>().expect("digits").wrapping_neg(),
        None => digits.parse().expect("digits"),
    };
    value(tag, number(two_complement, width))
}

fn record(mut fields: Vec<(String, Vec<u8>)>) -> Vec<u8> {
    fields.sort_by(|(one, _), (two, _)| one.as_bytes().cmp(two.as_bytes()));
    value(
        0x0c,
        fields.into_iter().flat_map(|(field, encoded)| [name(&field), encoded]).collect::<Vec<_>>().concat(),
    )
}

fn pairs(fields: &Value) -> Vec<(String, Vec<u8>)> {
    let fields = fields.as_array().expect("an array of pairs");
    fields.iter().map(|field| (string(&field[0]).to_owned(), described(&field[1]))).collect()
}

fn text(text: &Value) -> Vec<u8> {
    let bytes = match text.get("repeat") {
        Some(part) => string(part).repeat(text["times"].as_u64().expect("a count") as usize).into_bytes(),
        None => string(text).as_bytes().to_vec(),
    };
    value(0x05, bytes)
}

fn value(tag: u8, content: Vec<u8>) -> Vec<u8> {
    [vec![tag], number(content.len() as u128, 8), content].concat()
}

fn name(name: &str) -> Vec<u8> {
    [number(name.len() as u128, 8), name.as_bytes().to_vec()].concat()
}

/// Big-endian, in `width` bytes.
fn number(number: u128, width: usize) -> Vec<u8> {
    (0..width).rev().map(|byte| (number >> (8 * byte)) as u8).collect()
}

fn sorted(mut entries: Vec<Vec<u8>>) -> Vec<u8> {
    entries.sort();
    entries.concat()
}

fn string(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn unhex(hex: &Value) -> Vec<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).expect("a hexadecimal digit") as u8;
    string(hex).as_bytes().chunks(2).map(|pair| digit(&pair[0]) << 4 | digit(&pair[1])).collect()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
