//! Opening: many at once, and what is refused.

use std::sync::Arc;

use effectual::{
    Ledger, LedgerError, LedgerErrorKind, PostgresLedger, ledger::postgres::PostgresLedgerBuilder,
};
use effectual_tests::{database::PostgresDatabase, servers};
use sqlx::AssertSqlSafe;
use tokio::{sync::Barrier, task::JoinSet};

use crate::{database, execute, ledger, number, raw, request, win};

async fn refused(url: String) -> LedgerError {
    PostgresLedger::connect(url).await.expect_err("refused")
}

#[tokio::test]
async fn eight_at_once_migrate_once() {
    let Some(database) = database("eight migrations").await else { return };
    let builder = PostgresLedger::builder(database.url());
    migrate_at_once(&database, &builder.clone().schema("effectual"), "effectual").await;
    for name in ["one", "two", "three"] {
        let Some(database) = crate::database(&format!("eight migrations, {name}")).await else { return };
        migrate_at_once(&database, &PostgresLedger::builder(database.url()), "public").await;
    }
}

#[tokio::test]
async fn eight_at_once_migrate_once_through_a_pooler() {
    let Some(pooler) = servers::pgbouncer("postgres: eight pooled migrations") else { return };
    let Some(database) = database("eight pooled migrations").await else { return };
    let builder = PostgresLedger::builder(database.url_through(&pooler)).pooled(true);
    migrate_at_once(&database, &builder.clone().schema("effectual"), "effectual").await;
    let Some(database) = crate::database("eight pooled migrations in no schema").await else { return };
    let builder = PostgresLedger::builder(database.url_through(&pooler)).pooled(true);
    migrate_at_once(&database, &builder, "public").await;
}

async fn migrate_at_once(database: &PostgresDatabase, builder: &PostgresLedgerBuilder, schema: &str) {
    let start = Arc::new(Barrier::new(8));
    let mut opening = JoinSet::new();
    for _ in 0..8 {
        let (builder, start) = (builder.clone(), Arc::clone(&start));
        opening.spawn(async move {
            start.wait().await;
            builder.connect().await.expect("a ledger")
        });
    }
    let ledgers = opening.join_all().await;
    for (n, ledger) in ledgers.iter().enumerate() {
        win(ledger, &request(&n.to_string())).await;
    }
    let mut observer = raw(database).await;
    const LOCKS: &str = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database =
        (SELECT oid FROM pg_database WHERE datname = current_database())";
    assert_eq!(number(&mut observer, LOCKS).await, 0);
    let effects = AssertSqlSafe(format!("SELECT count(*) FROM {schema}.effectual_effects"));
    let stored: i64 = sqlx::query_scalar(effects).fetch_one(&mut observer).await.expect("a count");
    assert_eq!(stored, 8);
    let tables = "SELECT count(DISTINCT schemaname) FROM pg_tables WHERE tablename LIKE 'effectual%'";
    assert_eq!(number(&mut observer, tables).await, 1);
}

/// Each looks at the database while another one commits its migration: it sees some of the tables before and some after.
#[tokio::test]
async fn a_migration_amid_the_first_look_is_no_foreign_table() {
    for round in 0..12 {
        let Some(database) = database("migrations amid the first look").await else { return };
        let mut opening = JoinSet::new();
        for _ in 0..6 {
            opening.spawn(PostgresLedger::connect(database.url()));
        }
        for opened in opening.join_all().await {
            assert!(opened.is_ok(), "round {round}: {:?}", opened.err());
        }
    }
}

#[tokio::test]
async fn a_newer_schema_is_left_alone() {
    let Some(database) = database("a newer schema").await else { return };
    ledger(&database).await.close().await;
    execute(&mut raw(&database).await, "UPDATE effectual_schema SET version = 99").await;
    let error = refused(database.url()).await;
    assert_eq!(error.kind(), LedgerErrorKind::NewerSchema);
    assert!(error.to_string().contains("99"), "{error}");
}

#[tokio::test]
async fn tables_of_others_are_not_a_ledger() {
    for theirs in [
        "CREATE TABLE effectual_effects (id int)",
        "CREATE TABLE effectual_schema (id int)",
        "CREATE TABLE effectual_schema (version text); INSERT INTO effectual_schema VALUES ('one')",
        "CREATE TABLE effectual_schema (version int); INSERT INTO effectual_schema VALUES (1)",
        "CREATE TABLE effectual_schema (version int)",
        "CREATE DOMAIN effectual_state AS text",
    ] {
        let Some(database) = database("tables of others").await else { return };
        let mut connection = raw(&database).await;
        execute(&mut connection, theirs).await;
        let error = refused(database.url()).await;
        assert_eq!(error.kind(), LedgerErrorKind::NotALedger, "{theirs}: {error}");
        let made = "SELECT count(*) FROM pg_type WHERE typname LIKE 'effectual%'";
        assert_eq!(number(&mut connection, made).await, 1, "{theirs}: nothing was made");
    }
}

#[tokio::test]
async fn a_failed_migration_leaves_nothing() {
    let Some(database) = database("a failed migration").await else { return };
    let mut connection = raw(&database).await;
    // Not one of the ledger's tables, but a name that the migration needs.
    execute(&mut connection, "CREATE TABLE effectual_evidence_by_effect (id int)").await;
    refused(database.url()).await;
    assert_eq!(
        number(&mut connection, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").await,
        1
    );
}

/// The database's URL as another user of it sees it.
fn url_of(database: &PostgresDatabase, user: &str) -> String {
    let url = database.url();
    let (_, rest) = url.split_once('@').expect("a user in the URL");
    format!("postgres://{user}:canary@{rest}")
}

#[tokio::test]
async fn what_cannot_be_written_is_read_only() {
    let Some(database) = database("read-only").await else { return };
    ledger(&database).await.close().await;
    let user = database.url().rsplit_once('/').map(|(_, name)| format!("{name}_user")).expect("a name");
    let mut admin = raw(&database).await;
    execute(&mut admin, AssertSqlSafe(format!("CREATE ROLE {user} LOGIN"))).await;
    let unprivileged = refused(url_of(&database, &user)).await;
    execute(&mut admin, AssertSqlSafe(format!("GRANT SELECT ON ALL TABLES IN SCHEMA public TO {user}")))
        .await;
    let reader = refused(url_of(&database, &user)).await;
    execute(&mut admin, AssertSqlSafe(format!("GRANT ALL ON ALL TABLES IN SCHEMA public TO {user}"))).await;
    let writer = PostgresLedger::connect(url_of(&database, &user)).await;
    let writer = writer.expect("a user who may not make tables can use them");
    win(&writer, &request("one")).await;
    writer.close().await;
    execute(&mut admin, AssertSqlSafe(format!("ALTER ROLE {user} SET default_transaction_read_only = on")))
        .await;
    let read_only = refused(url_of(&database, &user)).await;
    for error in [unprivileged, reader, read_only] {
        assert_eq!(error.kind(), LedgerErrorKind::ReadOnly, "{error}");
        assert!(!format!("{error:?}").contains("canary"), "{error:?}");
    }
    execute(&mut admin, AssertSqlSafe(format!("DROP OWNED BY {user}; DROP ROLE {user}"))).await;
}

#[tokio::test]
async fn a_user_who_may_not_make_tables_is_told_so() {
    let Some(database) = database("no privilege to migrate").await else { return };
    let user = database.url().rsplit_once('/').map(|(_, name)| format!("{name}_user")).expect("a name");
    let mut admin = raw(&database).await;
    execute(&mut admin, AssertSqlSafe(format!("CREATE ROLE {user} LOGIN"))).await;
    execute(&mut admin, "REVOKE CREATE ON SCHEMA public FROM public").await;
    let error = refused(url_of(&database, &user)).await;
    assert_eq!(error.kind(), LedgerErrorKind::ReadOnly, "{error}");
    let in_schema = PostgresLedger::builder(url_of(&database, &user)).schema("mine").connect().await;
    assert_eq!(in_schema.expect_err("no new schema").kind(), LedgerErrorKind::ReadOnly);
    execute(&mut admin, AssertSqlSafe(format!("DROP ROLE {user}"))).await;
}

#[tokio::test]
async fn an_unreachable_ledger_is_named_without_its_password() {
    let Some(database) = database("unreachable").await else { return };
    let url = url_of(&database, "effectual");
    let (server, name) = url.rsplit_once('/').expect("a database in the URL");
    for (url, names) in [
        (format!("{server}/{name}_missing"), format!("{name}_missing")),
        (format!("postgres://effectual:canary@127.0.0.1:1/{name}"), "127.0.0.1:1".to_owned()),
        (url_of(&database, "nobody_here"), name.to_owned()),
    ] {
        let error = refused(url).await;
        assert_eq!(error.kind(), LedgerErrorKind::Unavailable, "{error}");
        assert!(error.is_transient() && error.to_string().contains(&names), "{error}");
        let source = std::error::Error::source(&error).map(|source| format!("{source} {source:?}"));
        assert!(!format!("{error} {error:?} {source:?}").contains("canary"), "{error:?}");
    }
}

#[tokio::test]
async fn wrong_settings_are_named_without_the_url() {
    for url in
        ["canary", "postgres://u:canary@[bad/x", "mysql://u:canary@h/x", "postgres://u:canary@h:99999/x"]
    {
        let error = refused(url.into()).await;
        assert_eq!(error.kind(), LedgerErrorKind::Closed, "{url}: {error}");
        assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
    }
    let builder = PostgresLedger::builder("postgres://u:canary@h/x");
    assert!(!format!("{builder:?}").contains("canary"));
    for schema in ["", "1st", "a-b", "A", "a;b", "é"] {
        let error = builder.clone().schema(schema).connect().await.expect_err("refused");
        assert_eq!(error.kind(), LedgerErrorKind::Closed, "{schema}: {error}");
    }
}
