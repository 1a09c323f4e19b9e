//! Where and when it was measured.

use std::{fs, process::Command};

use crate::store::Server;

/// What a figure depends on.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) date: String,
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) memory_gib: f64,
    pub(crate) kernel: String,
    pub(crate) rust: String,
    pub(crate) postgres: Option<String>,
    pub(crate) sqlite: String,
    pub(crate) commit: String,
}

impl Machine {
    pub(crate) async fn describe(server: Option<&Server>) -> Self {
        let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let memory = memory.lines().find_map(|line| line.strip_prefix("MemTotal:"));
        let kib = memory.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
        let model = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        Self {
            date: said("date", &["-u", "+%Y-%m-%d"]),
            processor: model.map_or("unknown".to_owned(), |(_, name)| name.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory_gib: kib.unwrap_or_default() / 1024.0 / 1024.0,
            kernel: said("uname", &["-sr"]),
            rust: said("rustc", &["--version"]),
            postgres: server.map(|server| server.version.clone()),
            sqlite: sqlite().await,
            commit: said("git", &["rev-parse", "--short", "HEAD"]),
        }
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}; {} × {}, {:.0} GiB, {}; {}; SQLite {}; PostgreSQL {}; commit {}",
            self.date,
            self.cores,
            self.processor,
            self.memory_gib,
            self.kernel,
            self.rust,
            self.sqlite,
            self.postgres.as_deref().unwrap_or("not there"),
            self.commit
        )
    }
}

fn said(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

async fn sqlite() -> String {
    use sqlx::{Connection, SqliteConnection};
    let mut conn = SqliteConnection::connect("sqlite::memory:").await.expect("a database");
    sqlx::query_scalar("SELECT sqlite_version()").fetch_one(&mut conn).await.expect("a version")
}
