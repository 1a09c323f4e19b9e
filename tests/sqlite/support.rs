//! Claims, raw connections and processes.

use std::{
    io::{BufRead, BufReader, Lines},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

use effectual::{
    EffectId, Keying, Ledger, RecoveryClass, SqliteLedger,
    identity::ArgumentDigest,
    ledger::{
        Change, Claim, ClaimRequest,
        change::Ended,
        record::{AttemptToken, AttemptVerdict, EffectRecord, OutcomeBody, OutcomeKind, Payload, Place},
    },
};
use sqlx::{ConnectOptions, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::TempDir;

pub(crate) const LONG_MS: i64 = 600_000;

pub(crate) fn scratch() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("effects.db");
    (directory, path)
}

pub(crate) async fn open(path: &Path) -> SqliteLedger {
    SqliteLedger::open(path).await.expect("a ledger opens")
}

pub(crate) fn id(number: u64) -> EffectId {
    EffectId::parse(format!("acme/{number:064x}")).expect("a valid effect id")
}

pub(crate) fn request(number: u64, token: u64) -> ClaimRequest {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes[8..].copy_from_slice(&token.to_be_bytes());
    ClaimRequest {
        id: id(number),
        operation: "refund-order".to_owned(),
        keying: Keying::BusinessIdentity,
        key_version: 1,
        identities: effectual::ledger::identities::Identities::default(),
        provider: None,
        provider_key: format!("key-{number}"),
        fingerprints: vec![ArgumentDigest { name: "amount".into(), digest: [1; 32], key_id: None }],
        class: RecoveryClass::Hold,
        can_look_up: false,
        resend_window_ms: None,
        resend_quiet_ms: None,
        token: AttemptToken(bytes),
        lease_ms: LONG_MS,
        attempt_timeout_ms: 1_000,
        place: Place::default(),
    }
}

pub(crate) fn success(bytes: Vec<u8>) -> Change {
    let ended = Ended {
        verdict: AttemptVerdict::Performed,
        class: None,
        send_digest: None,
        key_taken: true,
        first_send_ago_ms: None,
        acts_for_ms: 0,
    };
    let body = OutcomeBody::Payload(Payload { codec: "json/1".to_owned(), bytes });
    let kind = OutcomeKind::Success;
    Change::Settle { ended, kind, body, provider_replay: false, conclusive: false, retain_ms: LONG_MS }
}

pub(crate) async fn win(ledger: &SqliteLedger, number: u64) -> EffectRecord {
    match ledger.claim(&request(number, 0)).await.expect("a claim is answered") {
        Claim::Won { record, .. } => *record,
        claim => panic!("expected to win, got {claim:?}"),
    }
}

/// A connection of somebody else to the same file.
pub(crate) async fn raw(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).connect().await.expect("a connection")
}

pub(crate) async fn execute(conn: &mut SqliteConnection, sql: &'static str) -> sqlx::Result<()> {
    sqlx::raw_sql(sql).execute(conn).await.map(drop)
}

pub(crate) async fn count(conn: &mut SqliteConnection, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(conn).await.expect("a count")
}

/// Another process that runs one test of this program; it does not outlive its owner.
pub(crate) struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

/// Where a child process finds the path that it works on.
pub(crate) const CHILD_PATH: &str = "EFFECTUAL_TEST_PATH";

/// Which of several children it is.
pub(crate) const CHILD_NUMBER: &str = "EFFECTUAL_TEST_NUMBER";

/// What a child's lines that are meant for the parent start with; the test harness prints others.
const MARK: &str = "child: ";

impl Process {
    pub(crate) fn start(test: &str, path: &Path, number: u64, adjust: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program's path"));
        command.args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
        command.env(CHILD_PATH, path).env(CHILD_NUMBER, number.to_string()).stdout(Stdio::piped());
        adjust(&mut command);
        let mut child = command.spawn().expect("a child process");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        Self { child, lines }
    }

    /// The child's next line for the parent; `None` at its end.
    pub(crate) fn next_line(&mut self) -> Option<String> {
        loop {
            let line = self.lines.next()?.expect("a line of text");
            // The harness prints the test's name without a line's end.
            if let Some((_, line)) = line.split_once(MARK) {
                return Some(line.to_owned());
            }
        }
    }

    /// All further lines of a child that must end well.
    pub(crate) fn finish(mut self) -> Vec<String> {
        let lines = std::iter::from_fn(|| self.next_line()).collect();
        assert!(self.child.wait().expect("an exit status").success(), "the child failed");
        lines
    }

    /// Kills it as `kill -9` does, and takes what it had said by then.
    pub(crate) fn kill(mut self) -> Vec<String> {
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
pub(crate) fn tell(line: impl std::fmt::Display) {
    println!("{MARK}{line}");
}

/// In a child: the path to work on, and which child it is.
pub(crate) fn told() -> (PathBuf, u64) {
    let path = std::env::var_os(CHILD_PATH).expect("a path from the parent");
    let number = std::env::var(CHILD_NUMBER).ok().and_then(|number| number.parse().ok());
    (path.into(), number.expect("a number from the parent"))
}
