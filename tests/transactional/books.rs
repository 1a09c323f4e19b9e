//! A table of bookings beside the ledger's own tables, and the effect that writes to it.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use effectual::{
    EffectContext, Executor, ExecutorBuilder, Failure, Ledger, Nested, OrFail, PostgresLedger, Receipt,
    SendRefused, SqliteLedger, TenantScope, TransactionRefused, effect, retry::RetryPolicy,
};
use effectual_tests::{
    database::{PostgresDatabase, SqliteFile},
    servers,
};
use serde::{Deserialize, Serialize};
use sqlx::{Connection, PgConnection, SqliteConnection};
use tokio::sync::Semaphore;

/// What the body does after it has written its booking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    Return,
    Lose,
    Refuse,
    Busy,
    Panic,
    Hang,
    /// Waits until the test lets it go on.
    Wait,
    /// Ends the transaction in raw SQL.
    Commit,
    Rollback,
    /// Makes a savepoint with a booking in it, and drops it.
    Savepoint,
    /// Swallows an error of the database.
    Swallow,
    /// Asks for leave to send.
    Send,
    /// Calls another effect.
    Nest,
    /// Asks for its transaction twice.
    Twice,
    /// Keeps its guard for ever.
    Forget,
    /// Opens no transaction.
    Idle,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize, Failure)]
pub(crate) enum BookError {
    #[error("the database said no")]
    Sql,
    #[error("the account is closed")]
    #[failure(refused)]
    Closed,
    #[error("busy")]
    #[failure(not_performed, retry)]
    Busy,
    #[error("not sent: {0}")]
    #[failure(transparent)]
    NotSent(#[from] SendRefused),
    #[error("no transaction: {0}")]
    #[failure(transparent)]
    NoTransaction(#[from] TransactionRefused),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Booked {
    pub(crate) account: String,
    pub(crate) attempt: u32,
}

/// What the bodies do, one after the other; then they return.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    acts: Arc<Mutex<VecDeque<Then>>>,
    /// Where a waiting body says that it waits, and where it is let go.
    pub(crate) waits: Arc<Semaphore>,
    pub(crate) go: Arc<Semaphore>,
}

impl Script {
    pub(crate) fn of(acts: impl IntoIterator<Item = Then>) -> Self {
        let acts = Arc::new(Mutex::new(acts.into_iter().collect()));
        Self { acts, waits: Arc::new(Semaphore::new(0)), go: Arc::new(Semaphore::new(0)) }
    }

    fn next(&self) -> Then {
        self.acts.lock().unwrap_or_else(PoisonError::into_inner).pop_front().unwrap_or(Then::Return)
    }

    /// Resolves when a body waits.
    pub(crate) async fn waiting(&self) {
        self.waits.acquire().await.expect("open").forget();
    }
}

/// The effect, and one that it may call, for one database.
macro_rules! booking {
    ($name:ident, $ledger:ident, $connection:ident, $operation:literal, $notified:literal) => {
        pub(crate) mod $name {
            use super::*;

            #[effect(keying = business_identity, on_unknown = transactional, operation = $operation)]
            pub(crate) async fn book(
                cx: &EffectContext,
                #[key] account: String,
                #[skip] script: Script,
            ) -> effectual::Result<Booked, BookError> {
                let booked = Booked { account: account.clone(), attempt: cx.attempt() };
                let then = script.next();
                if then == Then::Idle {
                    return Ok(booked);
                }
                let mut transaction = cx.transaction::<$ledger>().await.or_fail()?;
                insert(&mut transaction, &account).await?;
                match then {
                    Then::Return | Then::Idle => {}
                    Then::Lose => return Err(BookError::Sql.into()),
                    Then::Refuse => return Err(BookError::Closed.into()),
                    Then::Busy => return Err(BookError::Busy.into()),
                    Then::Panic => panic!("a body's own panic"),
                    Then::Hang => std::future::pending().await,
                    Then::Wait => {
                        script.waits.add_permits(1);
                        script.go.acquire().await.expect("open").forget();
                    }
                    Then::Commit => run(&mut transaction, "COMMIT").await?,
                    Then::Rollback => run(&mut transaction, "ROLLBACK").await?,
                    Then::Savepoint => {
                        let mut inner = transaction.begin().await.map_err(|_| BookError::Sql)?;
                        insert(&mut inner, &account).await?;
                        inner.rollback().await.map_err(|_| BookError::Sql)?;
                    }
                    Then::Swallow => drop(run(&mut transaction, "INSERT INTO nowhere VALUES (1)").await),
                    Then::Send => drop(cx.send_permit().or_fail()?),
                    Then::Nest => drop(notify(cx, account, script).await.nested::<BookError>()?),
                    Then::Twice => drop(cx.transaction::<$ledger>().await.or_fail()?),
                    Then::Forget => std::mem::forget(transaction),
                }
                Ok(booked)
            }

            #[effect(keying = business_identity, on_unknown = rerun, operation = $notified)]
            async fn notify(
                _cx: &EffectContext,
                #[key] account: String,
                #[skip] script: Script,
            ) -> effectual::Result<String, BookError> {
                script.waits.add_permits(1);
                Ok(account)
            }

            async fn insert(connection: &mut $connection, account: &str) -> Result<(), BookError> {
                let insert = sqlx::query("INSERT INTO bookings (account) VALUES ($1)").bind(account);
                insert.execute(connection).await.map(drop).map_err(|_| BookError::Sql)
            }

            async fn run(connection: &mut $connection, sql: &'static str) -> Result<(), BookError> {
                sqlx::raw_sql(sql).execute(connection).await.map(drop).map_err(|_| BookError::Sql)
            }

            /// How many bookings an account has, as another connection sees it.
            pub(super) async fn count(url: &str, account: &str) -> i64 {
                let mut connection = $connection::connect(url).await.expect("the database");
                let count =
                    sqlx::query_scalar("SELECT count(*) FROM bookings WHERE account = $1").bind(account);
                count.fetch_one(&mut connection).await.expect("the table")
            }

            pub(super) async fn make(url: &str) {
                let mut connection = $connection::connect(url).await.expect("the database");
                run(&mut connection, "CREATE TABLE bookings (account TEXT NOT NULL)").await.expect("a table");
            }
        }
    };
}

booking!(sqlite, SqliteLedger, SqliteConnection, "book-sqlite", "notify-sqlite");
booking!(postgres, PostgresLedger, PgConnection, "book-postgres", "notify-postgres");

/// Which database.
pub(crate) enum Database {
    Sqlite(SqliteFile),
    Postgres { database: PostgresDatabase, pooler: Option<String> },
}

/// A database with the table, and a ledger in it.
pub(crate) struct Books {
    pub(crate) database: Database,
    pub(crate) ledger: Arc<dyn Ledger>,
}

impl Books {
    pub(crate) async fn sqlite() -> Self {
        Self::of(Database::Sqlite(SqliteFile::new())).await
    }

    pub(crate) async fn postgres(part: &str, pooled: bool) -> Option<Self> {
        let server = servers::postgres(part)?;
        let pooler = if pooled { Some(servers::pgbouncer(part)?) } else { None };
        let database = PostgresDatabase::create(&server).await;
        Some(Self::of(Database::Postgres { database, pooler }).await)
    }

    async fn of(database: Database) -> Self {
        let ledger = open(&database, 0).await;
        match &database {
            Database::Sqlite(file) => sqlite::make(&file_url(file)).await,
            Database::Postgres { database, .. } => postgres::make(&database.url()).await,
        }
        Self { database, ledger }
    }

    /// Another ledger over the same database, whose clock is so many milliseconds ahead.
    pub(crate) async fn another(&self, ahead_ms: i64) -> Arc<dyn Ledger> {
        open(&self.database, ahead_ms).await
    }

    /// Its kind and where it is, for another process.
    pub(crate) fn told(&self) -> (&'static str, String) {
        match &self.database {
            Database::Sqlite(file) => ("sqlite", file.path().to_str().expect("a path in UTF-8").to_owned()),
            Database::Postgres { database, pooler: None } => ("postgres", database.url()),
            Database::Postgres { database, pooler: Some(pooler) } => ("pooled", database.url_through(pooler)),
        }
    }

    pub(crate) async fn count(&self, account: &str) -> i64 {
        match &self.database {
            Database::Sqlite(file) => sqlite::count(&file_url(file), account).await,
            Database::Postgres { database, .. } => postgres::count(&database.url(), account).await,
        }
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        matches!(self.database, Database::Sqlite(_))
    }

    pub(crate) fn executor(&self) -> Executor {
        builder(&self.ledger).build().expect("a valid set-up")
    }

    pub(crate) async fn book(
        &self,
        scope: &TenantScope,
        account: &str,
        script: &Script,
    ) -> effectual::Result<Booked, BookError> {
        match self.is_sqlite() {
            true => sqlite::book(scope, account.into(), script.clone()).await,
            false => postgres::book(scope, account.into(), script.clone()).await,
        }
    }
}

pub(crate) async fn open_at(kind: &str, at: &str, ahead_ms: i64) -> Arc<dyn Ledger> {
    if kind == "sqlite" {
        let builder = SqliteLedger::builder(at).clock_offset_ms(ahead_ms);
        return Arc::new(builder.open().await.expect("a SQLite ledger"));
    }
    let builder = PostgresLedger::builder(at).pooled(kind == "pooled").clock_offset_ms(ahead_ms);
    Arc::new(builder.connect().await.expect("a PostgreSQL ledger"))
}

async fn open(database: &Database, ahead_ms: i64) -> Arc<dyn Ledger> {
    match database {
        Database::Sqlite(file) => open_at("sqlite", file.path().to_str().expect("UTF-8"), ahead_ms).await,
        Database::Postgres { database, pooler: None } => open_at("postgres", &database.url(), ahead_ms).await,
        Database::Postgres { database, pooler: Some(pooler) } => {
            open_at("pooled", &database.url_through(pooler), ahead_ms).await
        }
    }
}

fn file_url(file: &SqliteFile) -> String {
    format!("sqlite://{}", file.path().display())
}

pub(crate) fn builder(ledger: &Arc<dyn Ledger>) -> ExecutorBuilder {
    Executor::builder(ledger.clone())
        .attempt_timeout(Duration::from_secs(2))
        .margin(Duration::from_millis(200))
        .lease(Duration::from_secs(8))
        .wait(Duration::from_secs(20))
        .retry(RetryPolicy::default().attempts_max(3).base(Duration::from_millis(2)))
}

/// A call's receipt and the scope that fills it.
pub(crate) fn receipted(executor: &Executor) -> (Receipt, TenantScope) {
    let receipt = Receipt::new();
    let scope = executor.tenant("acme").expect("a tenant").with_receipt(&receipt);
    (receipt, scope)
}

pub(crate) async fn history(executor: &Executor, receipt: &Receipt) -> effectual::ledger::EffectHistory {
    let id = receipt.effect_id().expect("an identity");
    executor.inspect(&id).await.expect("the ledger answers").expect("the effect is recorded")
}
