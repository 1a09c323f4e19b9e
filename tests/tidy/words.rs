//! Words that are not written here.

use crate::files;

/// In pieces, so that this file is not its own first breach.
fn forbidden() -> Vec<(String, &'static str)> {
    let of = |pieces: [&str; 2]| pieces.concat();
    vec![
        (of(["exactly", " once"]), "say what holds, by class"),
        (of(["exactly", "-once"]), "say what holds, by class"),
        (of(["TO", "DO"]), "finish it, or list it under \"not there yet\""),
        (of(["FIX", "ME"]), "mend it"),
        (of(["unimplemented", "!"]), "finish it"),
        (of(["todo", "!"]), "finish it"),
        (of(["/home", "/"]), "no path of one machine"),
        (of(["/work", "/"]), "no path of one machine"),
    ]
}

fn breaches(path: &str, text: &str) -> Vec<String> {
    let forbidden = forbidden();
    let mut breaches = Vec::new();
    for (at, line) in text.lines().enumerate() {
        for (word, instead) in &forbidden {
            // The phrase in any case; the marks in theirs, since a lint of the same letters is set in the manifests.
            let phrase = word.starts_with("exactly") && line.to_lowercase().contains(word.as_str());
            if phrase || line.contains(word.as_str()) {
                breaches.push(format!("{path}:{}: `{word}`: {instead}", at + 1));
            }
        }
    }
    breaches
}

#[test]
fn no_forbidden_word() {
    let folders = ["sdk", "macros", "tests", "examples", ".ci", "README.md", "CHANGELOG.md", "Cargo.toml"];
    let files = files::below(&folders);
    let ours = files.iter().filter(|file| !file.path.ends_with("package-lock.json"));
    let found: Vec<_> = ours.flat_map(|file| breaches(&file.path, &file.text)).collect();
    files::none("forbidden", &found);
}

#[test]
fn each_forbidden_word_is_found() {
    for (word, _) in forbidden() {
        assert_eq!(breaches("a file", &format!("before\nsome {word} text")).len(), 1, "{word}");
    }
    assert_eq!(breaches("a file", &forbidden()[0].0.to_uppercase()).len(), 1);
}
