//! What the documentation names exists.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    files::{self, root},
    sizes::function_name,
};

const DUTIES: [&str; 2] = ["the caller's duty, no test", "the host's duty, no test"];

/// Test functions of the repository: those of the conformance suite and of `on_each_ledger` have no attribute.
fn functions() -> BTreeSet<String> {
    let files = files::rust(&["tests", "sdk/src", "macros/src"]);
    let lines = files.iter().flat_map(|file| file.text.lines());
    lines.filter_map(function_name).collect()
}

/// The lines of a Markdown table's body below a header that ends with `last`, as cells.
fn rows(text: &str, last: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        let cells: Vec<String> =
            line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
        if !line.starts_with('|') {
            inside = false;
        } else if cells.last().is_some_and(|cell| cell == last) {
            inside = true;
        } else if inside && !cells[0].starts_with("---") {
            rows.push(cells);
        }
    }
    rows
}

/// The texts between backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_promise_names_a_test_that_exists_or_whose_duty_it_is() {
    let functions = functions();
    for (page, rows_min) in [("guarantees", 30), ("witness", 20)] {
        let path = format!("sdk/src/docs/{page}.md");
        let rows = rows(&files::read(&path).text, "test");
        assert!(rows.len() > rows_min, "the table was not read: {} rows", rows.len());
        files::none(&path, &rows.iter().flat_map(|row| wrong(row, &functions)).collect::<Vec<_>>());
    }
}

/// What is wrong with a row of promise, enforcement and tests.
fn wrong(row: &[String], functions: &BTreeSet<String>) -> Vec<String> {
    let [promise, enforced, test] = row else { return vec![format!("not three cells: {row:?}")] };
    let is_duty = DUTIES.iter().any(|duty| test.ends_with(duty));
    let names = quoted(test);
    let mut breaches = Vec::new();
    if names.is_empty() && !is_duty {
        breaches.push(format!("{promise}: no test, and not one of {DUTIES:?}"));
    }
    if enforced.is_empty() && !is_duty {
        breaches.push(format!("{promise}: nothing enforces it"));
    }
    let unknown = names.into_iter().filter(|name| !functions.contains(*name));
    breaches.extend(unknown.map(|name| format!("{promise}: there is no test `{name}`")));
    breaches
}

#[test]
fn every_page_is_in_the_documentation() {
    let pages = files::below(&["sdk/src/docs"]);
    let sources = ["sdk/src/lib.rs", "sdk/src/docs/mod.rs", "sdk/src/identity/mod.rs"];
    let sources: String = sources.iter().map(|path| files::read(path).text).collect();
    let pages = pages.iter().filter_map(|file| file.path.strip_prefix("sdk/src/docs/"));
    let missing: Vec<_> = pages
        .filter(|name| name.ends_with(".md"))
        .filter(|name| !sources.contains(&format!("{name}\")]")))
        .map(str::to_owned)
        .collect();
    files::none("included by no module", &missing);
}

/// The targets of Markdown links: `](target)`.
fn links(text: &str) -> Vec<&str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect()
}

/// The name under which a heading is linked to.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = kept.chars().filter(|character| character.is_alphanumeric() || " -_".contains(*character));
    kept.collect::<String>().replace(' ', "-")
}

fn anchors(text: &str) -> BTreeSet<String> {
    text.lines().filter(|line| line.starts_with('#')).map(anchor).collect()
}

#[test]
fn links_between_files_lead_somewhere() {
    let mut breaches = Vec::new();
    for page in ["README.md", "CHANGELOG.md"].map(files::read) {
        for link in links(&page.text).into_iter().filter(|link| !link.contains("://")) {
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            if !root().join(path).is_file() {
                breaches.push(format!("{}: there is no {path}", page.path));
            } else if !heading.is_empty() && !anchors(&files::read(path).text).contains(heading) {
                breaches.push(format!("{}: {path} has no heading `{heading}`", page.path));
            }
        }
    }
    files::none("broken links", &breaches);
}

/// rustdoc checks what is linked to, and not the heading in it.
#[test]
fn links_between_pages_lead_to_a_heading() {
    let pages: BTreeMap<String, String> = files::below(&["sdk/src/docs"])
        .into_iter()
        .filter_map(|file| {
            Some((file.path.strip_prefix("sdk/src/docs/")?.strip_suffix(".md")?.to_owned(), file.text))
        })
        .collect();
    let mut breaches = Vec::new();
    let mut checked = 0;
    for (page, text) in &pages {
        for link in links(text) {
            let Some((target, heading)) = link.split_once('#') else { continue };
            let target = target.rsplit("::").next().unwrap_or_default();
            let Some(linked) = pages.get(target) else { continue };
            checked += 1;
            if !anchors(linked).contains(heading) {
                breaches.push(format!("{page}.md: {target}.md has no heading `{heading}`"));
            }
        }
    }
    assert!(checked > 5, "no link was read");
    files::none("broken links", &breaches);
}

#[test]
fn a_table_is_read() {
    let text = "| a | b | test |\n| --- | --- | --- |\n| one | by | `x`, `y` |\n\n| a | other |\n| - | - |\n| no | no |\n";
    let rows = rows(text, "test");
    assert_eq!(rows, [["one", "by", "`x`, `y`"]]);
    assert_eq!(quoted(&rows[0][2]), ["x", "y"]);
    assert_eq!(anchor("## What was seen, and what it means"), "what-was-seen-and-what-it-means");
    assert_eq!(links("see [a](b#c), [d](e)"), ["b#c", "e"]);
}
