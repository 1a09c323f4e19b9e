//! By hand on PostgreSQL: with two writers that share commits, and with two statements for each effect.

use std::{
    collections::{HashMap, HashSet},
    str::FromStr,
    sync::Arc,
};

use async_trait::async_trait;
use sqlx::{
    Connection, PgConnection, PgPool, Row,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use uuid::Uuid;

use super::{
    Claim, LEASE_MS, RETAIN_MS, Settle,
    queue::{self, Batch, Group},
    tables::{OnPostgres, Table},
};
use crate::contender::{Contender, Provider};

/// A batch of any size has one plan, and it must not be that for a small table.
const PINS: [(&str, &str); 4] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
];

fn options(url: &str) -> PgConnectOptions {
    PgConnectOptions::from_str(url).expect("a URL").options(PINS)
}

async fn create(url: &str, table: Table) {
    let mut conn = PgConnection::connect_with(&options(url)).await.expect("a server");
    for statements in table.on_postgres().schema {
        sqlx::raw_sql(*statements).execute(&mut conn).await.expect("a table");
    }
}

fn head(digest: &[u8; 32]) -> Uuid {
    Uuid::from_slice(&digest[..16]).expect("16 bytes")
}

/// Two writers, each a task with a connection of its own; with one caller they are never both busy.
pub(crate) async fn group(url: &str, table: Table, provider: &Arc<Provider>) -> Group {
    create(url, table).await;
    let (group, intake) = queue::queue(table, provider);
    let intake = Arc::new(intake);
    for _ in 0..2 {
        let (intake, options) = (Arc::clone(&intake), options(url));
        tokio::spawn(async move {
            let mut conn = PgConnection::connect_with(&options).await.expect("a server");
            while let Some(batch) = queue::next(&intake).await {
                apply(&mut conn, table.on_postgres(), batch).await.expect("a commit");
            }
        });
    }
    group
}

async fn apply(conn: &mut PgConnection, on: &OnPostgres, batch: Batch) -> sqlx::Result<()> {
    let Batch { mut claims, claimants, settles, settlers, reads, readers } = batch;
    // Each statement is a commit of its own, so that no transaction holds rows while the next statement is on its way.
    if !claims.is_empty() {
        let asked: Vec<_> = claims.iter().map(|claim| head(&claim.digest)).collect();
        // In one order everywhere: two writers that insert the same keys never wait for each other in a circle.
        claims.sort_unstable_by_key(|claim| claim.digest);
        let won = claim(conn, on, &claims).await?;
        asked.iter().zip(claimants).for_each(|(head, reply)| _ = reply.send(won.contains(head)));
    }
    if !settles.is_empty() {
        let settled = settle(conn, on, &settles).await?;
        let heads = settles.iter().map(|settle| head(&settle.digest));
        heads.zip(settlers).for_each(|(head, reply)| _ = reply.send(settled.contains(&head)));
    }
    if !reads.is_empty() {
        let heads: Vec<_> = reads.iter().map(head).collect();
        let rows = sqlx::query(on.read).bind(&heads).fetch_all(conn).await?;
        let found: sqlx::Result<HashMap<Uuid, Option<Vec<u8>>>> =
            rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect();
        let found = found?;
        heads
            .iter()
            .zip(readers)
            .for_each(|(head, reply)| _ = reply.send(found.get(head).cloned().flatten()));
    }
    Ok(())
}

async fn claim(conn: &mut PgConnection, on: &OnPostgres, claims: &[Claim]) -> sqlx::Result<HashSet<Uuid>> {
    let heads = match claims {
        [claim] => {
            sqlx::query_scalar(on.claim_one)
                .bind(head(&claim.digest))
                .bind(&claim.digest[16..])
                .bind(&claim.fingerprint[..])
                .bind(&claim.provider_key)
                .bind(Uuid::from_bytes(claim.token))
                .bind(claim.now)
                .bind(claim.now + LEASE_MS)
                .fetch_all(conn)
                .await?
        }
        _ => {
            sqlx::query_scalar(on.claim)
                .bind(claims.iter().map(|claim| head(&claim.digest)).collect::<Vec<_>>())
                .bind(claims.iter().map(|claim| &claim.digest[16..]).collect::<Vec<_>>())
                .bind(claims.iter().map(|claim| &claim.fingerprint[..]).collect::<Vec<_>>())
                .bind(claims.iter().map(|claim| claim.provider_key.as_str()).collect::<Vec<_>>())
                .bind(claims.iter().map(|claim| Uuid::from_bytes(claim.token)).collect::<Vec<_>>())
                .bind(claims.iter().map(|claim| claim.now).collect::<Vec<_>>())
                .bind(claims.iter().map(|claim| claim.now + LEASE_MS).collect::<Vec<_>>())
                .fetch_all(conn)
                .await?
        }
    };
    Ok(heads.into_iter().collect())
}

async fn settle(conn: &mut PgConnection, on: &OnPostgres, settles: &[Settle]) -> sqlx::Result<HashSet<Uuid>> {
    let heads = match settles {
        [settle] => {
            sqlx::query_scalar(on.settle_one)
                .bind(head(&settle.digest))
                .bind(Uuid::from_bytes(settle.token))
                .bind(&settle.payload[..])
                .bind(settle.now)
                .bind(settle.now + RETAIN_MS)
                .fetch_all(conn)
                .await?
        }
        _ => {
            sqlx::query_scalar(on.settle)
                .bind(settles.iter().map(|settle| head(&settle.digest)).collect::<Vec<_>>())
                .bind(settles.iter().map(|settle| Uuid::from_bytes(settle.token)).collect::<Vec<_>>())
                .bind(settles.iter().map(|settle| &settle.payload[..]).collect::<Vec<_>>())
                .bind(settles.iter().map(|settle| settle.now).collect::<Vec<_>>())
                .bind(settles.iter().map(|settle| settle.now + RETAIN_MS).collect::<Vec<_>>())
                .fetch_all(conn)
                .await?
        }
    };
    Ok(heads.into_iter().collect())
}

/// Two statements for each effect, each a commit of its own, over a pool.
pub(crate) struct TwoStatements {
    pool: PgPool,
    provider: Arc<Provider>,
}

impl TwoStatements {
    pub(crate) async fn connect(url: &str, provider: &Arc<Provider>) -> Self {
        create(url, Table::Own).await;
        let pool = PgPoolOptions::new().max_connections(16).test_before_acquire(false);
        Self {
            pool: pool.connect_with(options(url)).await.expect("a server"),
            provider: Arc::clone(provider),
        }
    }
}

#[async_trait]
impl Contender for TwoStatements {
    async fn perform(&self, key: u64) {
        let (on, one) = (Table::Own.on_postgres(), Claim::of(key));
        let won =
            claim(&mut self.pool.acquire().await.expect("a connection"), on, std::slice::from_ref(&one))
                .await;
        assert_eq!(won.expect("a claim").len(), 1, "nobody else has the claim");
        self.provider.perform();
        let settled =
            settle(&mut self.pool.acquire().await.expect("a connection"), on, &[Settle::of(&one, key)]).await;
        assert_eq!(settled.expect("a settle").len(), 1, "the claim is the caller's");
    }
    fn replays(&self) -> bool {
        false
    }

    fn count(&self) -> &'static str {
        Table::Own.count()
    }
}
