//! An example's program: built once, run in a folder of its own.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::OnceLock,
};

use tempfile::TempDir;

/// What one run said.
pub struct Said(String);

/// An example's program in a folder of its own.
pub struct Program {
    name: &'static str,
    path: PathBuf,
    folder: TempDir,
}

impl Program {
    /// A link to the program in a folder of its own: examples keep their files beside the program.
    ///
    /// # Panics
    /// When there is no such example, or the examples do not build.
    #[must_use]
    pub fn of(name: &str) -> Self {
        let (name, built) = built().get_key_value(name).unwrap_or_else(|| panic!("no example `{name}`"));
        let beside = built.parent().expect("a program lies in a folder");
        let folder = tempfile::tempdir_in(beside).expect("a folder on the same disk");
        let path = folder.path().join(built.file_name().expect("a program has a name"));
        std::fs::hard_link(built, &path).expect("a link to the program");
        Self { name, path, folder }
    }

    /// Where its files are.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn run(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Said {
        let mut command = Command::new(&self.path);
        command.args(arguments).envs(environment.iter().copied()).current_dir(self.folder());
        let output = command.output().expect("the example runs");
        Said(written(self.name, arguments, &output))
    }

    /// Starts it and leaves it running, with nothing of this process's environment but what is given.
    ///
    /// # Panics
    /// When it does not start, or ends without a line.
    #[must_use]
    pub fn start(&self, environment: &[(&str, &str)]) -> Running {
        let mut command = Command::new(&self.path);
        command.env_clear().envs(environment.iter().copied()).current_dir(self.folder());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the example starts");
        let mut said = String::new();
        let output = BufReader::new(child.stdout.take().expect("its output")).read_line(&mut said);
        assert!(output.is_ok() && !said.is_empty(), "the example ended without a word");
        Running { child, said: said.trim_end().to_owned() }
    }

    /// Compares the runs with what is written down.
    ///
    /// # Panics
    /// When they differ.
    pub fn compare(&self, said: &[Said]) {
        let said: Vec<_> = said.iter().map(|Said(text)| text.as_str()).collect();
        let said = said.join("\n");
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/{}.txt", self.name));
        if std::env::var_os("EFFECTUAL_TEST_WRITE").is_some() {
            std::fs::write(&file, &said).expect("the text is written down");
        }
        let expected = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(said == expected, "{} differs:\n--- expected\n{expected}\n--- said\n{said}", file.display());
    }
}

/// A program that goes on; it does not outlive its owner.
pub struct Running {
    child: Child,
    said: String,
}

impl Running {
    /// The first line that it wrote.
    #[must_use]
    pub fn said(&self) -> &str {
        &self.said
    }

    /// Kills it as `kill -9` does.
    ///
    /// # Panics
    /// When it has ended by itself.
    pub fn kill(mut self) {
        self.child.kill().expect("it is still running");
        let status = self.child.wait().expect("its end");
        assert!(status.code().is_none(), "it had ended by itself: {status}");
    }

    /// Asks it to end, as a supervisor does, and waits until it has.
    ///
    /// # Panics
    /// When it cannot be asked.
    pub fn stop(mut self) -> ExitStatus {
        let pid = self.child.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &pid]).status().expect("`kill` runs");
        assert!(asked.success(), "it has ended already");
        self.child.wait().expect("its end")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The command, what came out of it, and how it ended.
fn written(name: &str, arguments: &[&str], output: &Output) -> String {
    let arguments: String = arguments.iter().map(|argument| format!(" {argument}")).collect();
    let mut text = plain(&format!("$ {name}{arguments}\n"));
    for stream in [&output.stdout, &output.stderr] {
        text.push_str(&plain(&String::from_utf8_lossy(stream)));
    }
    if !output.status.success() {
        let end = output.status.code().map_or("killed".to_owned(), |code| format!("exit {code}"));
        text.push_str(&format!("({end})\n"));
    }
    text
}

/// The text without what differs from run to run.
fn plain(text: &str) -> String {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let mut plain = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let inside = rest.starts_with(word);
        let end = rest.find(|c| word(c) != inside).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        plain.push_str(if inside { plain_word(run) } else { run });
        rest = after;
    }
    plain
}

fn plain_word(word: &str) -> &str {
    let hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match word {
        _ if word.strip_suffix("ms").is_some_and(|time| time.parse::<u64>().is_ok()) => "<time>",
        _ if word.len() == 64 && hex(word) => "<digest>",
        _ if word.len() == 36 && word.split('-').map(str::len).eq([8, 4, 4, 4, 12]) => "<key>",
        _ if word.starts_with("ch_") && word.len() > 10 => "<charge>",
        _ if word.starts_with("re_") && word.len() > 10 => "<refund>",
        _ => word,
    }
}

/// All examples.
///
/// # Panics
/// When they do not build.
pub fn names() -> impl Iterator<Item = &'static str> {
    built().keys().map(String::as_str)
}

/// The programs by name. Built once a run, with the features that `./tests/run` builds everything with, so that there is
/// nothing left to build; `cargo` holds no lock while tests run.
fn built() -> &'static BTreeMap<String, PathBuf> {
    static BUILT: OnceLock<BTreeMap<String, PathBuf>> = OnceLock::new();
    BUILT.get_or_init(|| {
        let this = std::env::current_exe().expect("this program's path");
        let target = this.ancestors().nth(3).expect("<target>/<profile>/deps/<program>");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
        let mut command = Command::new(cargo);
        command.args(["build", "--workspace", "--all-features", "--examples", "--message-format=json"]);
        command.arg("--target-dir").arg(target).current_dir(env!("CARGO_MANIFEST_DIR"));
        if !cfg!(debug_assertions) {
            command.arg("--release");
        }
        let output = command.output().expect("cargo runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "the examples do not build:\n{errors}");
        String::from_utf8_lossy(&output.stdout).lines().filter_map(example).collect()
    })
}

/// The name and path of an example, where this line of Cargo's is about one.
fn example(line: &str) -> Option<(String, PathBuf)> {
    let message: serde_json::Value = serde_json::from_str(line).ok()?;
    let target = &message["target"];
    let is_example = target["kind"].as_array()?.iter().any(|kind| kind == "example");
    let path = message["executable"].as_str().filter(|_| is_example)?;
    Some((target["name"].as_str()?.to_owned(), path.into()))
}
