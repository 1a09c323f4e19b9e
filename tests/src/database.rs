//! A database of its own for each test.

use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tempfile::TempDir;

/// A PostgreSQL database that no other test sees. Dropping this drops it, whoever is still connected.
pub struct PostgresDatabase {
    server: String,
    name: String,
}

impl PostgresDatabase {
    /// Makes an empty database on the server at `url`, which names a user that may create databases.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn create(url: &str) -> Self {
        let name = format!("effectual_test_{:016x}", RandomState::new().hash_one(std::process::id()));
        execute(url, format!("CREATE DATABASE {name}")).await.expect("a new database");
        Self { server: url.to_owned(), name }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        self.url_through(&self.server)
    }

    /// Its URL through a pooler before the server, or the server itself, at `url`.
    pub fn url_through(&self, url: &str) -> String {
        let (server, _) = url.rsplit_once('/').expect("a server's URL names a database");
        format!("{server}/{}", self.name)
    }
}

impl Drop for PostgresDatabase {
    fn drop(&mut self) {
        let (server, statement) =
            (self.server.clone(), format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
        // On a thread with a runtime of its own: the test's may be gone, and cannot be waited for from here.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map(|runtime| runtime.block_on(execute(&server, statement)).is_ok())
        });
        if !matches!(dropping.join(), Ok(Ok(true))) {
            eprintln!("database {} is left: its server did not drop it", self.name);
        }
    }
}

/// `statement` holds names that were made here, never a caller's text.
async fn execute(url: &str, statement: String) -> sqlx::Result<()> {
    let mut connection = PgConnection::connect(url).await?;
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await?;
    connection.close().await
}

/// A path for an SQLite file, in a folder of its own that goes when this is dropped. The file is not there yet.
pub struct SqliteFile {
    folder: TempDir,
}

impl SqliteFile {
    /// Makes the folder.
    ///
    /// # Panics
    ///
    /// When there is no room for one.
    #[expect(clippy::new_without_default, reason = "it makes a folder, which a default value should not")]
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// The file's path.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("ledger.db")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers;

    async fn exists(server: &str, name: &str) -> bool {
        let mut connection = PgConnection::connect(server).await.expect("the server");
        let found: Option<i32> = sqlx::query_scalar("SELECT 1 FROM pg_database WHERE datname = $1")
            .bind(name)
            .fetch_optional(&mut connection)
            .await
            .expect("the list of databases");
        found.is_some()
    }

    #[tokio::test]
    async fn each_test_has_a_database_until_it_ends() {
        let Some(server) = servers::postgres("helpers: a database of its own") else { return };
        let (one, two) = (PostgresDatabase::create(&server).await, PostgresDatabase::create(&server).await);
        assert_ne!(one.name, two.name);
        execute(&one.url(), "CREATE TABLE t (x int)".into()).await.expect("a table in one");
        execute(&two.url(), "CREATE TABLE t (x int)".into()).await.expect("the same table in the other");

        let name = one.name.clone();
        let connected = PgConnection::connect(&one.url()).await.expect("a client that stays");
        drop(one);
        assert!(!exists(&server, &name).await, "still there after its test");
        drop(connected);
        assert!(exists(&server, &two.name).await);
    }

    #[test]
    fn an_sqlite_file_leaves_nothing() {
        let file = SqliteFile::new();
        std::fs::write(file.path(), "x").expect("written");
        let path = file.path();
        drop(file);
        assert!(!path.exists());
    }
}
