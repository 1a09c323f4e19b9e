//! Other processes of the same test program.

use std::{
    ffi::{OsStr, OsString},
    io::{BufRead, BufReader, Lines},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

/// Another process that runs one ignored test of this program; it does not outlive its owner.
pub struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

/// Where a child process finds what it works on.
const CHILD_PATH: &str = "EFFECTUAL_TEST_PATH";

/// Which of several children it is.
const CHILD_NUMBER: &str = "EFFECTUAL_TEST_NUMBER";

/// What a child's lines that are meant for the parent start with; the test harness prints others.
const MARK: &str = "child: ";

impl Process {
    /// Starts a child that runs `test`, by its whole path.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start(
        test: &str,
        path: impl AsRef<OsStr>,
        number: u64,
        adjust: impl FnOnce(&mut Command),
    ) -> Self {
        let program = std::env::current_exe().expect("this program's path");
        Self::start_copy(&program, test, path, number, adjust)
    }

    /// The same, with a copy of this program that lies where its user may run it.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start_copy(
        program: &Path,
        test: &str,
        path: impl AsRef<OsStr>,
        number: u64,
        adjust: impl FnOnce(&mut Command),
    ) -> Self {
        let mut command = Command::new(program);
        command.args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
        adjust(&mut command);
        Self::run(command, path, number)
    }

    /// Starts a child that is a program of its own.
    ///
    /// # Panics
    /// When it does not start.
    pub fn run(mut command: Command, path: impl AsRef<OsStr>, number: u64) -> Self {
        command.env(CHILD_PATH, path).env(CHILD_NUMBER, number.to_string()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a child process");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        Self { child, lines }
    }

    /// The child's next line for the parent; `None` at its end.
    ///
    /// # Panics
    /// When it writes what is no text.
    pub fn next_line(&mut self) -> Option<String> {
        loop {
            let line = self.lines.next()?.expect("a line of text");
            // The harness prints the test's name without a line's end.
            if let Some((_, line)) = line.split_once(MARK) {
                return Some(line.to_owned());
            }
        }
    }

    /// All further lines of a child that must end well.
    ///
    /// # Panics
    /// When it does not.
    #[must_use]
    pub fn finish(mut self) -> Vec<String> {
        let lines = std::iter::from_fn(|| self.next_line()).collect();
        assert!(self.child.wait().expect("an exit status").success(), "the child failed");
        lines
    }

    /// Stops it as `kill -STOP` does, or lets it go on.
    ///
    /// # Panics
    /// When it has ended by itself.
    pub fn stop(&self, is_stopped: bool) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        let signal = if is_stopped { Signal::STOP } else { Signal::CONT };
        kill_process(pid, signal).expect("it is still running");
    }

    /// Kills it as `kill -9` does, and takes what it had said by then.
    ///
    /// # Panics
    /// When it has ended by itself.
    pub fn kill(mut self) -> Vec<String> {
        self.child.kill().expect("it is still running");
        std::iter::from_fn(|| self.next_line()).collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// In a child: tells the parent something.
pub fn tell(line: impl std::fmt::Display) {
    println!("{MARK}{line}");
}

/// In a child: the path to work on, and which child it is.
///
/// # Panics
/// In a process that is no child.
#[must_use]
pub fn told() -> (PathBuf, u64) {
    let path: OsString = std::env::var_os(CHILD_PATH).expect("a path from the parent");
    let number = std::env::var(CHILD_NUMBER).ok().and_then(|number| number.parse().ok());
    (path.into(), number.expect("a number from the parent"))
}
