//! A database for each contender, made for a part of the run and removed after it.

use std::path::{Path, PathBuf};

use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection, sqlite::SqliteConnectOptions};

/// The PostgreSQL server of the run.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) version: String,
    /// Its first process, whose children's processor time counts.
    pub(crate) pid: Option<u32>,
    pub(crate) folder: PathBuf,
}

impl Server {
    /// The server that `./tests/run` started, if it did.
    pub(crate) async fn find() -> Option<Self> {
        let url = std::env::var("EFFECTUAL_TEST_POSTGRES_URL").ok()?;
        let mut conn = PgConnection::connect(&url).await.expect("a server");
        let ask = async |conn: &mut PgConnection, sql: &'static str| -> String {
            sqlx::query_scalar(sql).fetch_one(conn).await.expect("a setting")
        };
        let backend = ask(&mut conn, "SELECT pg_backend_pid()::text").await;
        let version = ask(&mut conn, "SELECT split_part(current_setting('server_version'), ' ', 1)").await;
        let folder = PathBuf::from(ask(&mut conn, "SHOW data_directory").await);
        assert_eq!(ask(&mut conn, "SHOW fsync").await, "on", "durable means durable");
        assert_eq!(ask(&mut conn, "SHOW synchronous_commit").await, "on", "durable means durable");
        Some(Self { url, version, pid: parent(&backend), folder })
    }

    /// How much write-ahead log the server has written, in bytes.
    pub(crate) async fn log_written(&self) -> u64 {
        let mut conn = PgConnection::connect(&self.url).await.expect("a server");
        let sql = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";
        let written: i64 = sqlx::query_scalar(sql).fetch_one(&mut conn).await.expect("a position");
        written.unsigned_abs()
    }
}

fn parent(process: &str) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok())
}

/// Which kind of database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Database {
    Sqlite,
    Postgres,
}

impl Database {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

/// One database.
#[derive(Debug, Clone)]
pub(crate) enum Store {
    Sqlite(PathBuf),
    Postgres { server: String, name: String },
}

impl Store {
    pub(crate) fn sqlite(folder: &Path, name: &str) -> Self {
        Self::Sqlite(folder.join(format!("{name}.db")))
    }

    pub(crate) async fn postgres(server: &Server, name: &str) -> Self {
        let name = format!("bench_{}", name.replace('-', "_"));
        execute(&server.url, format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
        execute(&server.url, format!("CREATE DATABASE {name}")).await;
        Self::Postgres { server: server.url.clone(), name }
    }

    /// The file of a SQLite database.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Sqlite(path) => path,
            Self::Postgres { .. } => unreachable!("it is no file"),
        }
    }

    /// The URL of a PostgreSQL database.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::Postgres { server, name } => {
                let (server, _) = server.rsplit_once('/').expect("a server's URL names a database");
                format!("{server}/{name}")
            }
            Self::Sqlite(_) => unreachable!("it is no server"),
        }
    }

    /// The answer of a query that was written here.
    pub(crate) async fn number(&self, sql: &str) -> u64 {
        let query = sqlx::AssertSqlSafe(sql.to_owned());
        let number: i64 = match self {
            Self::Sqlite(path) => {
                let mut conn = open(path).await;
                sqlx::query_scalar(query).fetch_one(&mut conn).await.expect("a number")
            }
            Self::Postgres { .. } => {
                let mut conn = PgConnection::connect(&self.url()).await.expect("a server");
                sqlx::query_scalar(query).fetch_one(&mut conn).await.expect("a number")
            }
        };
        number.unsigned_abs()
    }

    /// A statement that was written here.
    pub(crate) async fn execute(&self, sql: &str) {
        match self {
            Self::Sqlite(path) => {
                let mut conn = open(path).await;
                let done = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut conn).await;
                done.expect("it is done");
            }
            Self::Postgres { .. } => execute(&self.url(), sql.to_owned()).await,
        }
    }

    /// Ends what much writing leaves to do, so that it is not measured with what comes next.
    pub(crate) async fn settle_down(&self) {
        match self {
            Self::Sqlite(_) => self.execute("PRAGMA wal_checkpoint(TRUNCATE); ANALYZE").await,
            Self::Postgres { .. } => {
                self.execute("VACUUM ANALYZE").await;
                self.execute("CHECKPOINT").await;
            }
        }
    }

    /// Leaves no free space.
    pub(crate) async fn compact(&self) {
        self.execute(if matches!(self, Self::Sqlite(_)) { "VACUUM" } else { "VACUUM FULL" }).await;
    }

    /// What tables and indexes take on the disk; without the log.
    pub(crate) async fn bytes(&self) -> u64 {
        match self {
            Self::Sqlite(path) => {
                let mut conn = open(path).await;
                sqlx::raw_sql("PRAGMA wal_checkpoint(PASSIVE)")
                    .execute(&mut conn)
                    .await
                    .expect("a checkpoint");
                self.number(
                    "SELECT (page_count - freelist_count) * page_size
                    FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
                )
                .await
            }
            Self::Postgres { .. } => {
                self.number(
                    "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class AS c
                    JOIN pg_namespace AS n ON n.oid = c.relnamespace
                    WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema')",
                )
                .await
            }
        }
    }

    /// Removes it, whoever is still connected.
    pub(crate) async fn remove(self) {
        match self {
            Self::Sqlite(path) => {
                for suffix in ["", "-wal", "-shm"] {
                    let mut name = path.clone().into_os_string();
                    name.push(suffix);
                    drop(std::fs::remove_file(name));
                }
            }
            Self::Postgres { server, name } => {
                execute(&server, format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
            }
        }
    }
}

async fn open(path: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(path).busy_timeout(std::time::Duration::from_secs(30));
    SqliteConnection::connect_with(&options).await.expect("a database")
}

/// `statement` holds names that were made here.
async fn execute(url: &str, statement: String) {
    let mut conn = PgConnection::connect(url).await.expect("a server");
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut conn).await.expect("a database");
}
