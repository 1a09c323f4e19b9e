//! Who may import whom.

use std::collections::BTreeMap;

use crate::files::{self, File, code};

/// What each room of the crate may name. A room is the first folder or file below `sdk/src`.
const ROOMS: [(&str, &[&str]); 19] = [
    ("regions", &["ledger"]),
    ("witness", &["identity", "ledger"]),
    // Tests can put a simulated machine in the place of the real one.
    ("clock", &["environment"]),
    ("identity", &[]),
    ("environment", &[]),
    ("rules", &[]),
    ("retry", &["descriptor", "environment"]),
    // The profile is data, and what the attribute says includes where to find it.
    ("descriptor", &["provider"]),
    ("telemetry", &["identity", "ledger"]),
    ("failure", &["error"]),
    ("error", &["failure", "identity"]),
    ("expansion", &["error", "failure", "identity"]),
    ("provider", &["clock", "context", "descriptor", "failure", "identity"]),
    // An embedded ledger has only the log to tell of its file's trouble; `telemetry` in turn names errors and ids only.
    ("ledger", &["clock", "descriptor", "identity", "telemetry"]),
    ("idempotency_key", &["clock", "identity", "ledger", "telemetry"]),
    ("secret", &[]),
    ("retention", &["clock", "environment", "ledger", "telemetry"]),
    ("context", &["clock", "executor", "failure", "identity", "ledger", "provider"]),
    (
        "executor",
        &[
            "clock",
            "context",
            "descriptor",
            "environment",
            "error",
            "expansion",
            "failure",
            "identity",
            "ledger",
            "provider",
            "retention",
            "retry",
            "secret",
            "telemetry",
        ],
    ),
];

/// Rooms that the table says nothing of: what they name is their own matter, and nobody names them.
const OUTSIDE: [&str; 4] = ["lib", "docs", "testing", "simulation"];

fn room(path: &str) -> &str {
    let path = path.strip_prefix("sdk/src/").unwrap_or(path);
    path.split('/').next().unwrap_or(path).trim_end_matches(".rs")
}

/// The names that follow `crate::` in code: one a path, each of a group.
fn named(text: &str) -> Vec<String> {
    let code: String = code(text).flat_map(|(_, line)| [line, "\n"]).collect();
    let mut names = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        // `$crate::` and `effectual_crate::` are other things.
        let before = code[..at].chars().next_back();
        if before.is_some_and(|before| before.is_alphanumeric() || matches!(before, '_' | '$')) {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(group) => names.extend(firsts(group)),
            None => names.push(first(rest)),
        }
    }
    names
}

/// The first name of each path of a group, which ends with its own brace.
fn firsts(group: &str) -> Vec<String> {
    let (mut depth, mut names, mut start) = (0, Vec::new(), 0);
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' | ',' if depth == 0 => {
                names.push(first(group[start..at].trim_start()));
                start = at + 1;
                if character == '}' {
                    break;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

fn first(path: &str) -> String {
    path.chars().take_while(|character| character.is_alphanumeric() || *character == '_').collect()
}

/// Where each name of the crate's root comes from: `EffectId` is the identity's.
fn exported(lib: &str) -> BTreeMap<String, String> {
    let mut exported = BTreeMap::new();
    for statement in lib.split("\npub use ").skip(1).filter_map(|rest| rest.split(';').next()) {
        let room = first(statement);
        let names = statement.split(|character: char| !character.is_alphanumeric() && character != '_');
        for name in names.filter(|name| name.starts_with(char::is_uppercase)) {
            exported.insert(name.to_owned(), room.clone());
        }
    }
    exported
}

fn breaches(file: &File, exported: &BTreeMap<String, String>) -> Vec<String> {
    let room = room(&file.path);
    let rule = ROOMS.iter().find(|(name, _)| *name == room).map(|(_, rule)| *rule);
    let mut breaches = Vec::new();
    for name in named(&file.text) {
        let target = exported.get(&name).cloned().unwrap_or(name);
        let free = target == room || target == "Result";
        if !free && !rule.unwrap_or_default().contains(&target.as_str()) {
            breaches.push(format!("{}: names `{target}`", file.path));
        }
    }
    breaches
}

#[test]
fn every_room_names_only_what_it_may() {
    let exported = exported(&files::read("sdk/src/lib.rs").text);
    assert_eq!(exported.get("EffectId").map(String::as_str), Some("identity"));
    let mut found = Vec::new();
    for file in files::rust(&["sdk/src"]) {
        // What a file of tests names is no part of its room.
        let is_tests = file.path.ends_with("/tests.rs");
        if !is_tests && !OUTSIDE.contains(&room(&file.path)) {
            found.extend(breaches(&file, &exported));
        }
        // Out of a room by its back door.
        if file.text.contains("super::super") {
            found.push(format!("{}: write `crate::…` instead of `super::super`", file.path));
        }
    }
    files::none("who may import whom: sdk/src/docs/architecture.md", &found);
}

#[test]
fn every_room_has_its_rule() {
    let known = |room: &str| OUTSIDE.contains(&room) || ROOMS.iter().any(|(name, _)| *name == room);
    let files = files::rust(&["sdk/src"]);
    let unknown: Vec<_> =
        files.iter().filter(|file| !known(room(&file.path))).map(|file| file.path.clone()).collect();
    files::none("a new room needs a line in tests/tidy/imports.rs and in the page on architecture", &unknown);
    for (room_name, _) in ROOMS {
        assert!(files.iter().any(|file| room(&file.path) == room_name), "there is no room `{room_name}`");
    }
}

/// What only one place may name: the word, the places, and where it is looked for.
const PLACES: [(&str, &[&str]); 6] = [
    ("sqlx", &["sdk/src/ledger/sqlite/", "sdk/src/ledger/postgres/"]),
    ("backoff::{", &["sdk/src/retry/backoff.rs"]),
    ("reqwest", &["sdk/src/provider/http/"]),
    ("SELECT ", &["sdk/src/ledger/sqlite/", "sdk/src/ledger/postgres/"]),
    ("INSERT ", &["sdk/src/ledger/sqlite/", "sdk/src/ledger/postgres/"]),
    ("UPDATE ", &["sdk/src/ledger/sqlite/", "sdk/src/ledger/postgres/"]),
];

#[test]
fn what_is_replaceable_is_named_in_one_place() {
    let mut found = Vec::new();
    for file in files::rust(&["sdk/src"]) {
        for (word, places) in PLACES {
            if !places.iter().any(|place| file.path.starts_with(place)) {
                let lines = code(&file.text).filter(|(_, line)| line.contains(word));
                found.extend(lines.map(|(at, _)| format!("{}:{at}: names `{}`", file.path, word.trim())));
            }
        }
    }
    files::none("named outside its place", &found);
    for (word, places) in PLACES {
        let files = files::rust(
            places.iter().map(|place| place.trim_end_matches('/')).collect::<Vec<_>>().as_slice(),
        );
        assert!(files.iter().any(|file| file.text.contains(word)), "nobody names `{word}` any more");
    }
}

#[test]
fn no_backend_names_another() {
    let mut found = Vec::new();
    for (folder, other) in [("sqlite", "postgres"), ("postgres", "sqlite")] {
        for file in files::rust(&[&format!("sdk/src/ledger/{folder}")]) {
            let lines = code(&file.text).filter(|(_, line)| line.contains(&format!("ledger::{other}")));
            found.extend(lines.map(|(at, _)| format!("{}:{at}: names {other}", file.path)));
        }
    }
    for file in files::rust(&["sdk/src/executor", "sdk/src/provider"]) {
        for backend in ["ledger::sqlite", "ledger::postgres", "SqliteLedger", "PostgresLedger"] {
            let lines = code(&file.text).filter(|(_, line)| line.contains(backend));
            found.extend(lines.map(|(at, _)| format!("{}:{at}: names {backend}", file.path)));
        }
    }
    files::none("a backend is known by its trait", &found);
}

#[test]
fn imports_are_read() {
    let text = "use crate::{\n    clock::{self, Moment},\n    identity::EffectId,\n    Keying,\n};\n// crate::comment\n\
                fn f() { crate::ledger::x(); $crate::macros!(); }";
    assert_eq!(named(text), ["clock", "identity", "Keying", "ledger"]);
    let exported = exported("\npub use identity::{EffectId, ids::Tenant};\npub use error::EffectError;\n");
    assert_eq!(exported["Tenant"], "identity");
    assert_eq!(exported["EffectError"], "error");
    let file = File { path: "sdk/src/retry/mod.rs".into(), text: "use crate::EffectId;".into() };
    assert_eq!(breaches(&file, &exported), ["sdk/src/retry/mod.rs: names `identity`"]);
    assert_eq!(room("sdk/src/provider/http/mod.rs"), "provider");
    assert_eq!(room("sdk/src/clock.rs"), "clock");
}
