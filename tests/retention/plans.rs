//! A sweep reads what is due and nothing else, however much there is.

use std::time::Duration;

use effectual::retention::{RetentionPolicy, sweep};
use effectual_tests::{scripted::Scripted, wait};

use crate::{
    effects::*,
    place::{DAY, Place, TODAY},
};

const LIMIT: Duration = Duration::from_secs(30);

/// 20,000 effects within their retention and 50 past it, each with a touch, an attempt, evidence and an alias.
const FILL: &str = "
    CREATE TEMPORARY TABLE many AS SELECT n, gen_random_uuid() AS head FROM generate_series(1, 20050) n;
    INSERT INTO effectual_effects SELECT (r).* FROM (
        SELECT jsonb_populate_record(e, jsonb_build_object('digest_head', many.head,
            'retain_until', CASE WHEN n <= 50 THEN n ELSE 4000000000000 + n END)) AS r
        FROM effectual_effects e CROSS JOIN many) made;
    INSERT INTO effectual_touches (run, digest_head, at) SELECT 'acme/0123456789abcdef', head, 1 FROM many;
    INSERT INTO effectual_attempts (digest_head, attempt, fence, token, class, started_at, lease_until,
        attempt_timeout_ms, ended_at, verdict, key_taken)
        SELECT head, 1, 1, head, 'hold', 1, 1, 1, 1, 'unknown', true FROM many;
    INSERT INTO effectual_evidence (digest_head, attempt, fence, at, verdict, payload, payload_codec)
        SELECT head, 1, 1, 1, 'performed', '1', 'json/1' FROM many;
    INSERT INTO effectual_effects (digest_head, digest_tail, tenant, alias_of, key_version)
        SELECT gen_random_uuid(), e.digest_tail, 'acme', uuid_send(many.head) || e.digest_tail, 1
        FROM many CROSS JOIN (SELECT digest_tail FROM effectual_effects LIMIT 1) e;
    SELECT pg_stat_reset();";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_reads_no_more_than_what_is_due() {
    for place in Place::all("retention: plans").await {
        if place.file().is_some() {
            // Its plans are tested where its statements are.
            continue;
        }
        let ledger = place.open(TODAY).await;
        let (_, scope) = receipted(&executor(&ledger));
        holding(&scope, "o-1".into(), 5, Scripted::forgetful([])).await.expect("performed");
        ledger.close().await;
        place.execute(FILL).await;

        let ledger = place.open(TODAY).await;
        let policy = RetentionPolicy::default().remove_tombstones_after(DAY * 14).pause(Duration::ZERO);
        let pass = sweep(&*ledger, &policy).await.expect("a pass");
        assert_eq!((pass.forgotten, pass.removed), (50, 50), "on {}", place.name());
        ledger.close().await;

        let by = "SELECT idx_tup_read::text FROM pg_stat_user_indexes WHERE indexrelname = 'effectual_effects_by_retention'
            AND idx_scan > 0";
        wait::until("the database's own count", LIMIT, async || !place.texts(by).await.is_empty()).await;
        let read: i64 = place.texts(by).await[0].parse().expect("a number");
        assert!((50..=120).contains(&read), "{read} entries read for 50 effects on {}", place.name());
        let scanned = "SELECT relname || ': ' || seq_tup_read FROM pg_stat_user_tables
            WHERE relname LIKE 'effectual%' AND relname <> 'effectual_schema' AND seq_tup_read > 100";
        assert_eq!(place.texts(scanned).await, Vec::<String>::new(), "read whole, on {}", place.name());
        let left = "SELECT count(*)::text FROM effectual_effects";
        assert_eq!(place.texts(left).await, ["40001"], "20,000, their aliases, and the first");
    }
}
