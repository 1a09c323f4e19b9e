//! One story a file: see the header of each. Here is what several of them need and none is about.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// The folder of an example's files: beside the program, so that nothing is left elsewhere. Emptied where `--fresh` is
/// among the program's arguments.
///
/// # Errors
/// The folder cannot be made or emptied.
pub fn folder(example: &str) -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder = program.with_file_name(format!("{example}-data"));
    if std::env::args().any(|argument| argument == "--fresh") && folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// A provider's books: a file with one line for everything that it has performed.
pub struct Books(PathBuf);

impl Books {
    /// The books at this path, which need not be there yet.
    #[must_use]
    pub fn at(path: impl AsRef<Path>) -> Self {
        Self(path.as_ref().to_owned())
    }

    /// Enters what was performed, and gives its number.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn enter(&self, line: &str) -> io::Result<usize> {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.0)?;
        writeln!(file, "{line}")?;
        file.sync_all()?;
        self.performed()
    }

    /// The number of the first line that starts so.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn find(&self, start: &str) -> io::Result<Option<usize>> {
        Ok(self.lines()?.iter().position(|line| line.starts_with(start)).map(|index| index + 1))
    }

    /// How much was performed.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn performed(&self) -> io::Result<usize> {
        Ok(self.lines()?.len())
    }

    fn lines(&self) -> io::Result<Vec<String>> {
        match std::fs::read_to_string(&self.0) {
            Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}
