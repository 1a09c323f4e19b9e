//! What can be opened, and what is refused without being touched.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
};

use effectual::{Ledger, LedgerError, LedgerErrorKind, SqliteLedger};
use sqlx::Connection;

use crate::support::{Process, count, execute, id, open, raw, request, scratch, tell, told, win};

async fn refusal(path: &Path) -> LedgerError {
    SqliteLedger::open(path).await.expect_err("it cannot be opened")
}

fn names(error: &LedgerError, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

#[tokio::test]
async fn a_ledger_is_created_and_found_again() {
    let (_directory, path) = scratch();
    let first = open(&path).await;
    let record = win(&first, 1).await;
    first.close().await;
    let second = open(&path).await;
    let found = second.read(&id(1)).await.expect("a read is answered").expect("it is still there");
    assert_eq!(found.effect, record);
    assert!(format!("{second:?}").contains("effects.db"));
}

#[tokio::test]
async fn an_empty_file_becomes_a_ledger() {
    let (_directory, path) = scratch();
    fs::write(&path, "").expect("an empty file");
    win(&open(&path).await, 1).await;
}

#[tokio::test]
async fn names_that_sqlite_treats_apart_are_files() {
    let (directory, _) = scratch();
    let path = directory.path().join(":memory:");
    win(&open(&path).await, 1).await;
    assert!(path.exists());
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let (directory, path) = scratch();
    let error = refusal(&directory.path().join("missing/effects.db")).await;
    assert_eq!(error.kind(), LedgerErrorKind::Unavailable);
    names(&error, &["missing", "does not exist", "create it"]);
    let error = SqliteLedger::builder(&path).create(false).open().await.expect_err("it does not exist");
    assert_eq!(error.kind(), LedgerErrorKind::Unavailable);
    names(&error, &["effects.db", "does not exist"]);
    assert!(!path.exists());
    let error = refusal(directory.path()).await;
    assert_eq!(error.kind(), LedgerErrorKind::NotALedger);
    names(&error, &["not a file"]);
}

#[tokio::test]
async fn a_file_that_is_not_sqlite_is_left_as_it_is() {
    for content in ["a diary\n".to_owned(), "0123456789abcdef".repeat(1000)] {
        let (_directory, path) = scratch();
        fs::write(&path, &content).expect("a file");
        let error = refusal(&path).await;
        assert_eq!(error.kind(), LedgerErrorKind::NotALedger, "{error}");
        names(&error, &["effects.db"]);
        assert_eq!(fs::read_to_string(&path).expect("the file"), content);
    }
}

#[tokio::test]
async fn another_applications_database_is_left_as_it_is() {
    for set_up in [
        "CREATE TABLE diary (day TEXT)",
        "PRAGMA journal_mode = WAL; CREATE TABLE diary (day TEXT)",
        "PRAGMA application_id = 7",
        "PRAGMA user_version = 1",
    ] {
        let (_directory, path) = scratch();
        let mut options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).create_if_missing(true);
        options = sqlx::ConnectOptions::disable_statement_logging(options);
        let mut conn = sqlx::ConnectOptions::connect(&options).await.expect("a new database");
        execute(&mut conn, set_up).await.expect("its tables");
        conn.close().await.expect("closed");
        let before = fs::read(&path).expect("the file");
        let error = refusal(&path).await;
        assert_eq!(error.kind(), LedgerErrorKind::NotALedger, "{set_up}: {error}");
        names(&error, &["effects.db", "another application"]);
        assert!(fs::read(&path).expect("the file") == before, "{set_up}: the file was touched");
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused_with_both_versions() {
    let (_directory, path) = scratch();
    open(&path).await.close().await;
    let mut conn = raw(&path).await;
    execute(&mut conn, "PRAGMA user_version = 99").await.expect("a later version");
    conn.close().await.expect("closed");
    let before = fs::read(&path).expect("the file");
    let error = refusal(&path).await;
    assert_eq!(error.kind(), LedgerErrorKind::NewerSchema);
    names(&error, &["effects.db", "schema 99", "knows up to"]);
    assert!(fs::read(&path).expect("the file") == before, "the file was touched");
}

/// Opens and claims as a user without privileges, and expects to be told that the ledger cannot be written.
fn read_only_for_others(prepare: impl FnOnce(&Path, &Path)) {
    let (directory, path) = scratch();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { open(&path).await.close().await });
    prepare(directory.path(), &path);
    let as_nobody = |command: &mut std::process::Command| {
        // Permissions do not bind root.
        if fs::metadata("/proc/self").is_ok_and(|process| std::os::unix::fs::MetadataExt::uid(&process) == 0)
        {
            command.uid(65534).gid(65534);
        }
    };
    // The folder that this program was built in may be root's alone.
    let everybodys = tempfile::tempdir().expect("a directory");
    chmod(everybodys.path(), 0o755);
    let program = everybodys.path().join("child");
    fs::copy(std::env::current_exe().expect("this program's path"), &program).expect("a copy");
    let told = Process::start_copy(&program, "opening::child_is_refused", &path, 0, as_nobody).finish();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
    let [told] = told.as_slice() else { panic!("one line, not {told:?}") };
    assert!(told.starts_with("ReadOnly ") && told.contains("effects.db"), "{told}");
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions");
}

#[test]
fn a_read_only_file_is_said_to_be_one() {
    read_only_for_others(|directory, path| {
        chmod(path, 0o444);
        chmod(directory, 0o777);
    });
}

#[test]
fn a_read_only_directory_is_said_to_be_one() {
    read_only_for_others(|directory, path| {
        chmod(path, 0o666);
        chmod(directory, 0o555);
    });
}

#[test]
fn a_read_only_directory_takes_no_new_ledger() {
    read_only_for_others(|directory, path| {
        fs::remove_file(path).expect("removed");
        chmod(directory, 0o555);
    });
}

#[tokio::test]
#[ignore = "run by the tests of read-only files in a process of its own"]
async fn child_is_refused() {
    let (path, _) = told();
    let error = match SqliteLedger::open(&path).await {
        Ok(ledger) => ledger.claim(&request(1, 1)).await.expect_err("it cannot be written"),
        Err(error) => error,
    };
    tell(format!("{:?} {error}", error.kind()));
}

/// What a writer leaves that dies amid a transaction before the file has its write-ahead log: as when the machine stops
/// while the ledger is made.
#[tokio::test]
async fn a_file_left_amid_a_transaction_opens() {
    let (directory, path) = scratch();
    let ledger = open(&path).await;
    win(&ledger, 1).await;
    ledger.close().await;
    let mut conn = raw(&path).await;
    execute(
        &mut conn,
        "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN; CREATE TABLE filler (bytes);
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
         INSERT INTO filler SELECT zeroblob(4000) FROM n",
    )
    .await
    .expect("half a transaction, of which some is in the file");
    let left = directory.path().join("left.db");
    fs::copy(&path, &left).expect("the file");
    fs::copy(path.with_file_name("effects.db-journal"), directory.path().join("left.db-journal"))
        .expect("its journal");
    let opened = open(&left).await;
    assert!(opened.read(&id(1)).await.expect("a read").is_some(), "what was there before");
    let filler = "SELECT count(*) FROM sqlite_schema WHERE name = 'filler'";
    assert_eq!(count(&mut raw(&left).await, filler).await, 0, "what was never committed");
}
