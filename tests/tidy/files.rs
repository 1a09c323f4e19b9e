//! The repository's files, as the rules look at them.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A file with its path from the repository's root, written with `/`.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the repository").to_owned()
}

/// Every text file below these folders, sorted. Folders and files that begin with a dot are not ours to check, but for
/// the ones that are named.
pub(crate) fn below(folders: &[&str]) -> Vec<File> {
    let mut files = Vec::new();
    for folder in folders {
        collect(&root().join(folder), &mut files);
    }
    assert!(!files.is_empty(), "no file below {folders:?}");
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
}

/// Every Rust file below these folders.
pub(crate) fn rust(folders: &[&str]) -> Vec<File> {
    below(folders).into_iter().filter(|file| file.path.ends_with(".rs")).collect()
}

pub(crate) fn read(path: &str) -> File {
    let text = fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    File { path: path.to_owned(), text }
}

fn collect(path: &Path, files: &mut Vec<File>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("a folder of the repository") {
            let entry = entry.expect("an entry of a folder");
            let name = entry.file_name();
            let built = ["target", "node_modules"].iter().any(|built| name == *built);
            if !built && !name.to_string_lossy().starts_with('.') {
                collect(&entry.path(), files);
            }
        }
    } else if let Ok(text) = fs::read_to_string(path) {
        let path = path.strip_prefix(root()).expect("below the root").to_string_lossy().replace('\\', "/");
        files.push(File { path, text });
    }
}

/// The lines that are code, with their numbers from 1: comments are left out.
pub(crate) fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// Fails with all breaches of a rule, one a line.
pub(crate) fn none(rule: &str, breaches: &[String]) {
    assert!(breaches.is_empty(), "{rule}:\n{}", breaches.join("\n"));
}
