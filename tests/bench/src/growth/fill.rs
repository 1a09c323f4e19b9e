//! Many rows at once, each like one that a real effect left: the last one is copied, with what identifies it made anew.

use sqlx::{AssertSqlSafe, Connection, PgConnection, Row, SqliteConnection, sqlite::SqliteConnectOptions};

use crate::store::Store;

/// A table, and what is made anew in a copy of a row on each database: column and expression, `i` being the copy's number.
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) sqlite: &'static [(&'static str, &'static str)],
    pub(super) postgres: &'static [(&'static str, &'static str)],
    /// Chooses the row to copy.
    pub(super) template: &'static str,
}

/// The ledger's. The provider key and the readable key are as long as real ones.
pub(super) const LEDGER: Table = Table {
    name: "effectual_effects",
    sqlite: &[
        ("digest", "randomblob(32)"),
        ("token", "randomblob(16)"),
        ("provider_key", "'filled-' || lower(hex(randomblob(14)))"),
        ("retain_until", "retain_until + i / 50"),
    ],
    postgres: &[
        ("digest_head", "gen_random_uuid()"),
        ("digest_tail", "uuid_send(gen_random_uuid())"),
        ("token", "gen_random_uuid()"),
        ("provider_key", "'filled-' || left(md5(random()::text), 28)"),
        ("retain_until", "retain_until + i / 50"),
    ],
    // Not what the sweep of a smaller ledger made a tombstone of.
    template: "state = 'completed' AND run IS NULL AND absent_reason IS NULL",
};

/// The reference's.
pub(super) const BY_HAND: Table = Table {
    name: "effects",
    sqlite: &[
        ("digest", "randomblob(32)"),
        ("token", "randomblob(16)"),
        ("provider_key", "'filled-' || lower(hex(randomblob(14)))"),
    ],
    postgres: &[
        ("head", "gen_random_uuid()"),
        ("tail", "uuid_send(gen_random_uuid())"),
        ("token", "gen_random_uuid()"),
        ("provider_key", "'filled-' || left(md5(random()::text), 28)"),
    ],
    template: "state = 'completed'",
};

/// Not more rows than this in one transaction.
const BATCH: u64 = 250_000;

impl Table {
    /// Adds so many copies.
    pub(super) async fn fill(&self, store: &Store, rows: u64) {
        match store {
            Store::Sqlite(path) => {
                let options = SqliteConnectOptions::new()
                    .filename(path)
                    .busy_timeout(std::time::Duration::from_secs(60))
                    .pragma("cache_size", "-1000000");
                let mut conn = SqliteConnection::connect_with(&options).await.expect("a database");
                let columns = format!(
                    "SELECT name FROM pragma_table_info('{}') WHERE pk = 0 OR type <> 'INTEGER'",
                    self.name
                );
                let found = sqlx::query(AssertSqlSafe(columns)).fetch_all(&mut conn).await.expect("columns");
                let statement = self.statement(
                    &found.iter().map(|row| row.get(0)).collect::<Vec<_>>(),
                    self.sqlite,
                    "WITH RECURSIVE series (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM series LIMIT $1)",
                    "series",
                );
                for batch in batches(rows) {
                    let insert = sqlx::query(AssertSqlSafe(statement.as_str())).bind(batch);
                    insert.execute(&mut conn).await.expect("rows");
                    sqlx::raw_sql("PRAGMA wal_checkpoint(PASSIVE)")
                        .execute(&mut conn)
                        .await
                        .expect("a checkpoint");
                }
            }
            Store::Postgres { .. } => {
                let mut conn = PgConnection::connect(&store.url()).await.expect("a server");
                let columns = format!(
                    "SELECT column_name::text FROM information_schema.columns
                     WHERE table_schema = current_schema() AND table_name = '{}' ORDER BY ordinal_position",
                    self.name
                );
                let found = sqlx::query_scalar(AssertSqlSafe(columns)).fetch_all(&mut conn).await;
                let series = "generate_series(1, $1) AS series (i)";
                let statement = self.statement(&found.expect("columns"), self.postgres, "", series);
                for batch in batches(rows) {
                    let insert = sqlx::query(AssertSqlSafe(statement.as_str())).bind(batch);
                    insert.execute(&mut conn).await.expect("rows");
                }
            }
        }
    }

    /// Inserts copies of one row; the copies are what `series` counts.
    fn statement(&self, columns: &[String], anew: &[(&str, &str)], with: &str, series: &str) -> String {
        let values: Vec<&str> = columns
            .iter()
            .map(|column| {
                anew.iter().find(|(name, _)| name == column).map_or(column.as_str(), |(_, made)| made)
            })
            .collect();
        format!(
            "{with} INSERT INTO {name} ({columns}) SELECT {values} FROM {series} CROSS JOIN \
             (SELECT * FROM {name} WHERE {template} LIMIT 1) AS template",
            name = self.name,
            columns = columns.join(", "),
            values = values.join(", "),
            template = self.template
        )
    }
}

fn batches(rows: u64) -> impl Iterator<Item = i64> {
    (0..rows.div_ceil(BATCH)).map(move |at| i64::try_from(BATCH.min(rows - at * BATCH)).expect("it fits"))
}
