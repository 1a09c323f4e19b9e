//! Processes that are killed while they make the ledger or migrate it: the next one finds nothing of that or all of it.

use std::{path::Path, time::Duration};

use effectual::{Ledger, SqliteLedger};
use effectual_tests::{
    database::{PostgresDatabase, SqliteFile},
    process::{Process, tell, told},
    servers,
    wait::until,
};
use sqlx::{ConnectOptions, Connection, PgConnection, sqlite::SqliteConnectOptions};

use crate::worker::open;

const LIMIT: Duration = Duration::from_secs(60);

/// How many files are made halfway.
const FILES: usize = 30;

#[tokio::test]
#[ignore = "run by the tests of this file in processes of their own"]
async fn child_opens() {
    let (place, is_postgres) = told();
    let place = place.into_os_string().into_string().expect("UTF-8");
    let _ledger = open(if is_postgres == 1 { "postgres" } else { "sqlite" }, &place, 0).await;
    tell("open");
    std::future::pending::<()>().await;
}

/// The file, or its log, is there: the process dies a little later with each round.
#[tokio::test]
async fn a_process_killed_while_it_makes_the_file_leaves_one_that_opens() {
    let mut halfway = 0;
    for round in 0..FILES {
        let file = SqliteFile::new();
        let seen = if round % 2 == 0 { file.path() } else { log_of(&file.path()) };
        let child = Process::start("migrations::child_opens", file.path(), 0, |_| {});
        while !seen.exists() {
            std::hint::spin_loop();
        }
        for _ in 0..round * 2_000 {
            std::hint::spin_loop();
        }
        let said = child.kill();
        halfway += usize::from(said.is_empty());
        SqliteLedger::open(file.path()).await.expect("a ledger, whatever was there");
        let mut conn = SqliteConnectOptions::new().filename(file.path()).connect().await.expect("the file");
        let whole: (String, i64) = sqlx::query_as(
            "SELECT (SELECT integrity_check FROM pragma_integrity_check),
                (SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name LIKE 'effectual_%')",
        )
        .fetch_one(&mut conn)
        .await
        .expect("a look");
        assert_eq!((whole.0.as_str(), whole.1 >= 5), ("ok", true), "round {round}: {whole:?}");
    }
    assert!(halfway > FILES / 2, "{halfway} of {FILES} processes were killed before the file was made");
}

/// A file of the first release, with rows of every kind; its log is there before it is migrated.
#[tokio::test]
async fn a_process_killed_amid_its_migration_leaves_a_file_that_opens() {
    const FIRST: &str = include_str!("../schema_compat/sqlite_0001.sql");
    const LOOK: &str = "SELECT (SELECT integrity_check FROM pragma_integrity_check),
        (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM effectual_effects)";
    let (mut halfway, mut rows) = (0, None);
    for round in 0..FILES {
        let file = SqliteFile::new();
        let options = SqliteConnectOptions::new().filename(file.path()).create_if_missing(true);
        let mut conn = options.connect().await.expect("the file");
        sqlx::raw_sql(FIRST).execute(&mut conn).await.expect("a ledger of the first release");
        conn.close().await.expect("closed");
        let child = Process::start("migrations::child_opens", file.path(), 0, |_| {});
        while !log_of(&file.path()).exists() {
            std::hint::spin_loop();
        }
        for _ in 0..round * 2_000 {
            std::hint::spin_loop();
        }
        halfway += usize::from(child.kill().is_empty());
        let mut looks = Vec::new();
        for is_migrated in [false, true] {
            if is_migrated {
                SqliteLedger::open(file.path()).await.expect("a ledger, whatever was there").close().await;
            }
            let mut conn =
                SqliteConnectOptions::new().filename(file.path()).connect().await.expect("the file");
            let look: (String, i64, i64) = sqlx::query_as(LOOK).fetch_one(&mut conn).await.expect("a look");
            looks.push(look);
        }
        let rows = *rows.get_or_insert(looks[0].2);
        let is_all_or_nothing = [1, looks[1].1].contains(&looks[0].1);
        assert!(is_all_or_nothing && looks[1].1 > 4 && rows > 20, "round {round}: {looks:?}");
        assert!(looks.iter().all(|look| look.0 == "ok" && look.2 == rows), "round {round}: {looks:?}");
    }
    assert!(halfway > FILES / 2, "{halfway} of {FILES} processes were killed before the file was migrated");
}

fn log_of(path: &Path) -> std::path::PathBuf {
    path.with_file_name(format!("{}-wal", path.file_name().expect("a name").display()))
}

/// The migration stands still in its middle: somebody else is about to make one of its tables.
#[tokio::test]
async fn a_process_killed_amid_its_migration_leaves_a_database_that_opens() {
    let Some(server) = servers::postgres("a kill amid a migration of PostgreSQL") else { return };
    let database = PostgresDatabase::create(&server).await;
    let mut other = PgConnection::connect(&database.url()).await.expect("a connection");
    let mut observer = PgConnection::connect(&database.url()).await.expect("a connection");
    for table in ["effectual_attempts", "effectual_touches", "effectual_evidence"] {
        let mut making = other.begin().await.expect("a transaction");
        sqlx::raw_sql(sqlx::AssertSqlSafe(format!("CREATE TABLE {table} (x int)")))
            .execute(&mut *making)
            .await
            .expect("a table that nobody sees yet");
        let child = Process::start("migrations::child_opens", database.url(), 1, |_| {});
        until("the migration to stand still", LIMIT, async || number(&mut observer, WAITING).await == 1)
            .await;
        assert_eq!(child.kill(), [""; 0]);
        making.rollback().await.expect("it is not made");
        until("the server to notice", LIMIT, async || number(&mut observer, CONNECTED).await == 0).await;
        assert_eq!(number(&mut observer, TABLES).await, 0, "{table}: something of the migration is left");
    }
    open("postgres", &database.url(), 0).await;
    assert!(number(&mut observer, TABLES).await >= 6);
}

const WAITING: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'effectual' AND wait_event_type = 'Lock'";
const CONNECTED: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'effectual'";
const TABLES: &str = "SELECT count(*) FROM pg_class WHERE relname LIKE 'effectual_%' AND relkind = 'r'";

async fn number(connection: &mut PgConnection, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(connection).await.expect("a number")
}
