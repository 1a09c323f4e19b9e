//! Through a pooler in transaction mode a body's statements are not left in sessions that are lent to others.

use std::time::Duration;

use effectual_tests::wait;
use sqlx::{ConnectOptions, Connection, PgConnection, postgres::PgConnectOptions};

use crate::books::*;

const SESSIONS: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
    AND pid <> pg_backend_pid() AND backend_type = 'client backend'";

async fn number(connection: &mut PgConnection, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).persistent(false).fetch_one(connection).await.expect("a number")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f27_no_statement_of_a_body_is_left_in_a_session() {
    let Some(books) = Books::postgres("transactional: what is left in a session", true).await else { return };
    let executor = books.executor();
    for (call, act) in
        [Then::Return, Then::Lose, Then::Swallow, Then::Refuse, Then::Panic].into_iter().enumerate()
    {
        let (_, scope) = receipted(&executor);
        drop(books.book(&scope, &format!("s-{call}"), &Script::of([act])).await);
    }
    let (Database::Postgres { database, .. }, (_, url)) = (&books.database, books.told()) else { return };
    let mut observer = PgConnection::connect(&database.url()).await.expect("the database");
    const STUCK: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
        AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'";
    let ended = async || number(&mut observer, STUCK).await == 0;
    wait::until("the transactions to end", Duration::from_secs(30), ended).await;
    let sessions = number(&mut observer, SESSIONS).await;
    assert!(sessions > 0, "the pooler keeps sessions");
    let options: PgConnectOptions = url.parse().expect("a URL");
    let mut borrowed = Vec::new();
    for _ in 0..sessions {
        let mut session = options.clone().extra_float_digits(None).connect().await.expect("a connection");
        sqlx::raw_sql("BEGIN").execute(&mut session).await.expect("a transaction");
        assert_eq!(number(&mut session, "SELECT count(*) FROM pg_prepared_statements").await, 0);
        borrowed.push(session);
    }
    assert_eq!(number(&mut observer, SESSIONS).await, sessions, "each session was looked at");
}
