//! Files and functions that can be read whole.

use crate::files;

const FOLDERS: [&str; 4] = ["sdk/src", "macros/src", "tests", "examples"];
const FILE_LINES_MAX: usize = 400;
const FUNCTION_LINES_MAX: usize = 70;

#[test]
fn a_file_has_at_most_400_lines() {
    let mut breaches = Vec::new();
    for file in files::rust(&FOLDERS) {
        let lines = file.text.lines().count();
        if lines > FILE_LINES_MAX {
            breaches.push(format!("{}: {lines} lines", file.path));
        }
    }
    files::none("split the file by role", &breaches);
}

#[test]
fn a_function_has_at_most_70_lines() {
    let mut breaches = Vec::new();
    for file in files::rust(&FOLDERS) {
        for function in functions(&file.text) {
            if function.lines > FUNCTION_LINES_MAX {
                breaches.push(format!(
                    "{}:{}: {} has {} lines",
                    file.path, function.at, function.name, function.lines
                ));
            }
        }
    }
    files::none("split the function", &breaches);
}

struct Function {
    name: String,
    at: usize,
    lines: usize,
}

/// Every function, as rustfmt writes it: a body ends with the first line that is its closing brace at the function's own
/// indentation. The format itself is checked elsewhere.
fn functions(text: &str) -> Vec<Function> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let rest = &lines[at..];
        let Some(opens) = rest.iter().position(|line| line.trim_end().ends_with(['{', '}', ';'])) else {
            continue;
        };
        let indentation = line.len() - line.trim_start().len();
        let closing = format!("{}}}", &line[..indentation]);
        let ends = match rest[opens].trim_end().ends_with('{') {
            true => rest.iter().position(|line| line.trim_end() == closing).unwrap_or(rest.len() - 1),
            // A declaration, or a body on one line.
            false => opens,
        };
        found.push(Function { name, at: at + 1, lines: ends + 1 });
    }
    found
}

/// The name of the function that begins on this line.
pub(crate) fn function_name(line: &str) -> Option<String> {
    let mut words = line.trim_start().split(' ').peekable();
    while words.peek().is_some_and(|word| {
        word.starts_with("pub")
            || ["async", "const", "unsafe", "extern", "default", "in", "\"C\""].contains(word)
            || word.ends_with(')')
    }) {
        words.next();
    }
    if words.next() != Some("fn") {
        return None;
    }
    let name: String = words
        .next()?
        .chars()
        .take_while(|character| character.is_alphanumeric() || *character == '_')
        .collect();
    (!name.is_empty()).then_some(name)
}

#[test]
fn functions_are_counted() {
    let text = "\
impl It {
    pub(crate) async fn long(
        &self,
    ) -> u32 {
        fn inner() {}
        if self.is() {
            1
        }
        2
    }
    fn short(&self) {}
}
trait Says {
    fn says(&self) -> u32;
    fn declared(
        &self,
    ) -> u32;
}
// fn commented() {
let text = \"fn quoted\";
";
    let found: Vec<_> =
        functions(text).into_iter().map(|function| (function.name, function.at, function.lines)).collect();
    let expected = [("long", 2, 9), ("inner", 5, 1), ("short", 11, 1), ("says", 14, 1), ("declared", 15, 3)];
    assert_eq!(found, expected.map(|(name, at, lines)| (name.to_owned(), at, lines)));
}
