//! Runs of 100,000 effects, and lists that break off.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use async_trait::async_trait;
use effectual::{
    EffectId, Keying, Ledger, LedgerError, LedgerErrorKind, MemoryLedger, PostgresLedger, RunId,
    SqliteLedger, Tenant,
    ledger::{
        Change, Changed, Claim, ClaimRequest, EffectHistory, Owner, Payload, RunPage, RunRow, UnsettledPage,
        UnsettledQuery, record::State,
    },
};
use effectual_tests::{
    database::{PostgresDatabase, SqliteFile},
    servers,
    wire::Request,
};
use sqlx::{Connection, PgConnection, Row, SqliteConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::serve::{ACME, Served};

const EFFECTS: usize = 100_000;

/// Columns and values of a completed effect, one for each number `n`; what differs by database is filled in.
fn filled(run: &RunId, digest: &str, token: &str, numbers: &str) -> String {
    format!(
        "INSERT INTO effectual_effects ({digest_columns}, tenant, key_version, operation, keying, provider_key, fingerprints,
            created_at, state, fence, attempt, token, class, run, node, started_at, lease_until, attempt_timeout_ms,
            ended_at, verdict, key_taken, outcome_kind, payload, payload_codec, provider_replay, settled_at, retain_until)
         SELECT {digest_values}, 'acme', 1, 'refund', 'business-identity', 'key-' || n, '[]', 1764540000000, 'completed', 1, 1,
            {token}, 'hold', '{run}', 'charge', 1764540000000 + n / 7, 1764540060000, 15000, 1764540000001, 'performed',
            {yes}, 'success', {payload}, 'json/1', {no}, 1764540000001, 1767132000000
         FROM {numbers}",
        digest_columns = if digest.contains("::uuid") { "digest_head, digest_tail" } else { "digest" },
        digest_values = digest,
        yes = if digest.contains("::uuid") { "true" } else { "1" },
        no = if digest.contains("::uuid") { "false" } else { "0" },
        payload = if digest.contains("::uuid") { "'\\x31'::bytea" } else { "x'31'" },
    )
}

/// Reads the whole list as a stream and the list page by page; both have every effect once, in one order.
async fn whole_and_paged(served: &Served, run: &RunId) {
    let started = Instant::now();
    let before = resident_kib();
    let (bytes, rows, peak) = streamed(served, run).await;
    println!(
        "{rows} rows, {bytes} bytes in {:?}, {} KiB more resident",
        started.elapsed(),
        peak - before.min(peak)
    );
    assert_eq!(rows, EFFECTS);
    assert!(peak.saturating_sub(before) < 64 * 1024, "from {before} to {peak} KiB for {bytes} bytes");

    let started = Instant::now();
    let (mut pages, mut seen, mut last) = (0, BTreeSet::new(), String::new());
    let mut query = "?limit=1000".to_owned();
    loop {
        let answer = served.get(&format!("/runs/{run}/effects{query}")).await;
        let shown = answer.json();
        for row in shown["effects"].as_array().expect("a list") {
            let at = row["at"].as_str().expect("a time").to_owned();
            assert!(at >= last, "in order");
            last = at;
            assert!(seen.insert(row["effectId"].to_string()), "a row twice");
        }
        pages += 1;
        let Some(link) = answer.header("link") else { break };
        let next = link.strip_prefix('<').and_then(|link| link.strip_suffix(">; rel=\"next\""));
        query = next.expect("a link to the next page").to_owned();
    }
    println!("{pages} pages in {:?}", started.elapsed());
    assert_eq!((pages, seen.len()), (EFFECTS / 1_000, EFFECTS));
}

/// Bytes and rows of the plain form, and how much memory this process had at the most; nothing is kept of what is read.
async fn streamed(served: &Served, run: &RunId) -> (usize, usize, usize) {
    let mut stream = served.connect().await;
    let head = format!(
        "GET /runs/{run}/effects HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {ACME}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    let (mut bytes, mut rows, mut peak, mut kept) = (0, 0, 0, Vec::new());
    let mut piece = vec![0; 1 << 16];
    loop {
        let read = stream.read(&mut piece).await.expect("a piece");
        if read == 0 {
            break;
        }
        bytes += read;
        kept.extend_from_slice(&piece[..read]);
        const MARK: &[u8] = b"\"effectId\"";
        rows += kept.windows(MARK.len()).filter(|window| *window == MARK).count();
        // What may be the beginning of a mark goes on into the next piece.
        kept.drain(..kept.len().saturating_sub(MARK.len() - 1));
        peak = peak.max(resident_kib());
    }
    assert!(kept.ends_with(b"0\r\n\r\n"), "the list came to its end");
    (bytes, rows, peak)
}

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("its memory");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_100_000_effects_on_sqlite() {
    let file = SqliteFile::new();
    let ledger = SqliteLedger::open(file.path()).await.expect("a ledger");
    let served = Served::start(Arc::new(ledger)).await;
    let run = served.run();
    let url = format!("sqlite://{}", file.path().display());
    let mut connection = SqliteConnection::connect(&url).await.expect("the file");
    let numbers = format!(
        "(WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {EFFECTS}) SELECT n FROM numbers)"
    );
    let insert = filled(&run, "randomblob(32)", "randomblob(16)", &numbers);
    sqlx::raw_sql(sqlx::AssertSqlSafe(insert)).execute(&mut connection).await.expect("the rows");
    whole_and_paged(&served, &run).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_100_000_effects_on_postgres() {
    let Some(server) = servers::postgres("witness: 100,000 effects on PostgreSQL") else { return };
    let database = PostgresDatabase::create(&server).await;
    let ledger = PostgresLedger::connect(database.url()).await.expect("a ledger");
    let served = Served::start(Arc::new(ledger)).await;
    let run = served.run();
    let mut connection = PgConnection::connect(&database.url()).await.expect("a connection");
    let digest = "gen_random_uuid()::uuid, uuid_send(gen_random_uuid())";
    let numbers = format!("generate_series(1, {EFFECTS}) AS numbers (n)");
    let insert = filled(&run, digest, "gen_random_uuid()", &numbers);
    sqlx::raw_sql(sqlx::AssertSqlSafe(insert)).execute(&mut connection).await.expect("the rows");
    whole_and_paged(&served, &run).await;
}

/// A run's list is found by the index on runs, also before the database has counted its rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_on_postgres_reads_only_its_run() {
    let Some(server) = servers::postgres("witness: the plan of a list") else { return };
    let database = PostgresDatabase::create(&server).await;
    let ledger = PostgresLedger::connect(database.url()).await.expect("a ledger");
    let served = Served::start(Arc::new(ledger)).await;
    let (run, other) = (served.run(), served.run());
    let mut connection = PgConnection::connect(&database.url()).await.expect("a connection");
    for (run, rows) in [(&run, 10), (&other, 20_000)] {
        let digest = "gen_random_uuid()::uuid, uuid_send(gen_random_uuid())";
        let insert =
            filled(run, digest, "gen_random_uuid()", &format!("generate_series(1, {rows}) AS numbers (n)"));
        sqlx::raw_sql(sqlx::AssertSqlSafe(insert)).execute(&mut connection).await.expect("the rows");
    }
    let scans = async |connection: &mut PgConnection| -> i64 {
        let query =
            "SELECT pg_stat_force_next_flush(), sum(seq_scan)::bigint AS scans FROM pg_stat_user_tables
            WHERE relname IN ('effectual_effects', 'effectual_attempts', 'effectual_touches')";
        sqlx::query(query).fetch_one(connection).await.expect("the counts").get("scans")
    };
    let used = "SELECT coalesce(sum(idx_scan), 0)::bigint FROM pg_stat_user_indexes WHERE indexrelname = 'effectual_effects_by_run'";
    let before = scans(&mut connection).await;
    assert_eq!(served.effects(&run).await.len(), 10);
    // The ledger's own session reports what it did within a second.
    effectual_tests::wait::until("the index to be counted", std::time::Duration::from_secs(20), async || {
        assert_eq!(served.effects(&run).await.len(), 10);
        let count: i64 = sqlx::query_scalar(used).fetch_one(&mut connection).await.expect("the count");
        count > 0
    })
    .await;
    assert_eq!(scans(&mut connection).await, before, "a table was read from its beginning");
}

/// Gives a long list and breaks off in its midst.
#[derive(Debug)]
struct Breaks {
    memory: MemoryLedger,
    pieces: AtomicUsize,
    good: usize,
}

#[async_trait]
impl Ledger for Breaks {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        self.memory.claim(request).await
    }

    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        self.memory.change(owner, change).await
    }

    async fn read(&self, id: &EffectId) -> Result<Option<EffectHistory>, LedgerError> {
        self.memory.read(id).await
    }

    async fn unsettled(&self, query: &UnsettledQuery) -> Result<UnsettledPage, LedgerError> {
        self.memory.unsettled(query).await
    }

    async fn input(&self, id: &EffectId) -> Result<Option<Payload>, LedgerError> {
        self.memory.input(id).await
    }

    async fn of_run(&self, run: &RunId, page: &RunPage) -> Result<Vec<RunRow>, LedgerError> {
        let piece = self.pieces.fetch_add(1, Ordering::SeqCst);
        if piece >= self.good {
            return Err(LedgerError::new(LedgerErrorKind::Unavailable, "the line was cut"));
        }
        let effect = EffectId::parse(format!("{}/{}", run.tenant(), "ab".repeat(32))).expect("an effect id");
        let row = |at| RunRow {
            effect: effect.clone(),
            node: None,
            invocation: None,
            attempt: 1,
            keying: Keying::BusinessIdentity,
            state: State::Completed,
            at,
            provider_key: "k".to_owned(),
        };
        let from = page.after.map_or(0, |after| after.at);
        Ok((1..=page.rows_max.get()).map(|next| row(from + i64::try_from(next).expect("small"))).collect())
    }

    fn name(&self) -> &'static str {
        "breaks"
    }

    async fn close(&self) {
        self.memory.close().await;
    }
}

/// No reader takes the beginning of a list for the whole of it.
#[tokio::test]
async fn a_list_that_breaks_off_is_no_whole_list() {
    let ledger = Arc::new(Breaks { memory: MemoryLedger::new(), pieces: AtomicUsize::new(0), good: 2 });
    let served = Served::start(ledger.clone()).await;
    let run = RunId::mint(&Tenant::parse("acme").expect("a tenant"));
    served.know(&run);
    let request = Request::get(&format!("/runs/{run}/effects")).bearer(ACME);
    let answer = served.unchecked(request).await;
    assert_eq!((answer.status, answer.is_whole), (200, false));
    assert_eq!(ledger.pieces.load(Ordering::SeqCst), 3);
    assert!(!answer.body.ends_with(b"]}"));
}

/// A reader that does not read, or goes away, is not read for.
#[tokio::test]
async fn a_list_is_read_as_fast_as_its_reader_reads() {
    let ledger =
        Arc::new(Breaks { memory: MemoryLedger::new(), pieces: AtomicUsize::new(0), good: usize::MAX });
    let served = Served::start(ledger.clone()).await;
    let run = served.run();
    let mut stream = served.connect().await;
    let head = format!("GET /runs/{run}/effects HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {ACME}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut some = vec![0; 1 << 12];
    stream.read_exact(&mut some).await.expect("the beginning");
    // Without an end: what is read ahead fits in the buffers of two sockets.
    let mut last = 0;
    effectual_tests::wait::until("the list to stand still", std::time::Duration::from_secs(60), async || {
        let now = ledger.pieces.load(Ordering::SeqCst);
        std::mem::replace(&mut last, now) == now && now > 0
    })
    .await;
    assert!(last < 40, "{last} pieces were read for nobody");
    drop(stream);
}
