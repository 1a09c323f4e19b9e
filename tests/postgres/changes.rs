//! Changes: judged before the database's time is known, and stored with it.

use std::sync::Arc;

use effectual::{
    Ledger, LedgerErrorKind, RecoveryClass,
    ledger::{
        Change, Changed, Claim, ClaimRequest, Owner,
        record::{AttemptVerdict, OutcomeKind, State},
    },
};
use effectual_tests::wait;
use tokio::task::JoinSet;

use crate::{apply, database, ended, execute, in_run, ledger, number, raw, request, settle, token, win};

fn end(verdict: AttemptVerdict, keep_claim: bool, acts_for_ms: i64) -> Change {
    let ended = effectual::ledger::change::Ended { acts_for_ms, ..ended(verdict) };
    Change::End { ended, keep_claim, not_before_ms: Some(250) }
}

fn open() -> Change {
    Change::Open {
        token: token(),
        class: RecoveryClass::Hold,
        lease_ms: 40_000,
        attempt_timeout_ms: 9_000,
        doubt_cleared: false,
    }
}

#[tokio::test]
async fn every_answer_is_the_row_as_stored() {
    let Some(database) = database("answers as stored").await else { return };
    let ledger = ledger(&database).await;
    let request = in_run("one", "a");
    let mut record = win(&ledger, &request).await;
    let changes = [
        Change::Renew { lease_ms: 90_000 },
        end(AttemptVerdict::Unknown, true, 5_000),
        open(),
        Change::Renew { lease_ms: 50_000 },
        end(AttemptVerdict::NotPerformed, true, 0),
        open(),
        Change::Accept { handle: "job 1".into(), poll_after_ms: 700 },
        settle(b"{\"a\":1}"),
    ];
    for (n, change) in changes.iter().enumerate() {
        let with_hint = Owner::of(&record);
        let owner = if n % 2 == 0 { with_hint } else { Owner { seen: None, ..with_hint } };
        record = apply(&ledger, &owner, change).await;
        let history = ledger.read(&request.id).await.expect("a read").expect("the effect");
        assert_eq!(history.effect, record, "after {change:?}");
        assert_eq!(record.revision, n as i64 + 2);
        assert!(record.lease_until < 1 << 50, "a time of the clock's: {}", record.lease_until);
    }
    let history = ledger.read(&request.id).await.expect("a read").expect("the effect");
    assert_eq!(history.closed.iter().map(|closed| closed.attempt).collect::<Vec<_>>(), [1, 2]);
    let ends: Vec<_> =
        history.closed.iter().map(|closed| (closed.end.verdict, closed.end.send_digest)).collect();
    assert_eq!(
        ends,
        [(AttemptVerdict::Unknown, Some([7; 32])), (AttemptVerdict::NotPerformed, Some([7; 32]))]
    );
    let outcome = record.outcome.expect("an outcome");
    assert_eq!(outcome.retain_until, outcome.settled_at + 86_400_000);
    assert_eq!(record.fingerprints, request.fingerprints);
    assert_eq!(record.first_send_at.map(|at| at <= outcome.settled_at), Some(true));
}

#[tokio::test]
async fn an_owner_that_saw_an_older_row_is_judged_by_the_stored_one() {
    let Some(database) = database("an old hint").await else { return };
    let ledger = ledger(&database).await;
    let old = Owner::of(&win(&ledger, &request("one")).await);
    apply(&ledger, &old, &Change::Accept { handle: "job".into(), poll_after_ms: 5 }).await;
    let settled = apply(&ledger, &old, &settle(b"1")).await;
    assert_eq!((settled.revision, settled.state), (3, State::Completed));
    assert_eq!(settled.accepted.map(|accepted| accepted.handle).as_deref(), Some("job"));
    // The acknowledgement was lost: the same change again finds itself.
    let again = apply(&ledger, &old, &settle(b"1")).await;
    assert_eq!(again.revision, 3);
    // What an old hint would refuse without a look is looked at.
    let settled_hint = Owner::of(&again);
    let Ok(Changed::Applied(record)) = ledger.change(&settled_hint, &settle(b"2")).await else {
        panic!("not ours")
    };
    assert_eq!(*record, again);
}

#[tokio::test]
async fn a_later_doubt_never_ends_an_older_one_sooner() {
    let Some(database) = database("two doubts").await else { return };
    let ledger = ledger(&database).await;
    let first = win(&ledger, &request("one")).await;
    let ended = apply(&ledger, &Owner::of(&first), &end(AttemptVerdict::Unknown, true, 3_600_000)).await;
    let acts_until = ended.doubt.as_ref().map(|doubt| doubt.acts_until).expect("a doubt");
    let second = apply(&ledger, &Owner::of(&ended), &open()).await;
    let ended = apply(&ledger, &Owner::of(&second), &end(AttemptVerdict::Unknown, false, 1_000)).await;
    let doubt = ended.doubt.expect("a doubt");
    assert_eq!((doubt.acts_until, doubt.attempt, doubt.class), (acts_until, 1, RecoveryClass::Hold));
}

#[tokio::test]
async fn an_answer_behind_a_raised_fence_is_kept_once() {
    let Some(database) = database("evidence").await else { return };
    let ledger = ledger(&database).await;
    let later = effectual::PostgresLedger::builder(database.url()).clock_offset_ms(3_600_000).connect().await;
    let later = later.expect("a ledger");
    let stale = Owner::of(&win(&ledger, &request("one")).await);
    let owner = Owner::of(&win(&later, &request("one")).await);
    apply(&ledger, &owner, &settle(b"2")).await;
    for _ in 0..2 {
        let Ok(Changed::Stale(Some(record))) = ledger.change(&stale, &settle(b"1")).await else {
            panic!("not stale")
        };
        assert_eq!(record.fence, 2);
    }
    let history = ledger.read(&stale.id).await.expect("a read").expect("the effect");
    assert!(history.effect.double_suspected);
    let [evidence] = &history.evidence[..] else { panic!("{:?}", history.evidence) };
    assert_eq!((evidence.attempt, evidence.fence, evidence.verdict), (1, 1, AttemptVerdict::Performed));
    assert_eq!(evidence.payload.as_ref().map(|payload| payload.bytes.as_slice()), Some(&b"1"[..]));
}

#[tokio::test]
async fn a_change_of_an_effect_that_was_never_claimed_is_stale() {
    let Some(database) = database("an unknown effect").await else { return };
    let ledger = ledger(&database).await;
    let record = win(&ledger, &request("one")).await;
    let owner = Owner { id: crate::id("two"), ..Owner::of(&record) };
    assert!(matches!(ledger.change(&owner, &settle(b"1")).await, Ok(Changed::Stale(None))));
    assert!(ledger.read(&crate::id("two")).await.expect("a read").is_none());
}

#[tokio::test]
async fn crowds_are_stored_in_batches_and_each_gets_its_own_answer() {
    let Some(database) = database("a crowd").await else { return };
    let ledger = Arc::new(ledger(&database).await);
    let mut crowd = JoinSet::new();
    for n in 0..600 {
        let ledger = Arc::clone(&ledger);
        crowd.spawn(async move {
            let record = win(&ledger, &request(&n.to_string())).await;
            let settled = apply(&ledger, &Owner::of(&record), &settle(n.to_string().as_bytes())).await;
            let Ok(Claim::Settled { record: replayed, .. }) = ledger.claim(&request(&n.to_string())).await
            else {
                panic!("unsettled")
            };
            assert_eq!(*replayed, settled);
            assert_eq!(*settled.provider_key, *format!("key of {n}"));
        });
    }
    crowd.join_all().await;
    let count = "SELECT count(*) FROM effectual_effects WHERE state = 'completed' AND revision = 2";
    assert_eq!(number(&mut raw(&database).await, count).await, 600);
}

#[tokio::test]
async fn what_cannot_be_stored_fails_alone() {
    let Some(database) = database("an offender").await else { return };
    let ledger = Arc::new(ledger(&database).await);
    let mut crowd = JoinSet::new();
    for n in 0..40 {
        let ledger = Arc::clone(&ledger);
        crowd.spawn(async move {
            let (operation, attempt_timeout_ms) = if n == 17 { ("canary", 0) } else { ("refund", 10_000) };
            (
                n,
                ledger
                    .claim(&ClaimRequest {
                        operation: operation.into(),
                        attempt_timeout_ms,
                        ..request(&n.to_string())
                    })
                    .await,
            )
        });
    }
    for (n, answer) in crowd.join_all().await {
        match answer {
            Ok(Claim::Won { .. }) => assert_ne!(n, 17),
            Err(error) => {
                assert_eq!((n, error.kind()), (17, LedgerErrorKind::Corrupt));
                assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
            }
            other => panic!("{n}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn an_error_tells_nothing_of_what_was_to_be_stored() {
    let Some(database) = database("a refused write").await else { return };
    let ledger = ledger(&database).await;
    let owner = Owner::of(&win(&ledger, &request("one")).await);
    let deny = "ALTER TABLE effectual_effects ADD CONSTRAINT deny CHECK (state <> 'completed')";
    execute(&mut raw(&database).await, deny).await;
    let error = ledger.change(&owner, &settle(b"canary")).await.expect_err("refused");
    assert_eq!(error.kind(), LedgerErrorKind::Corrupt);
    let source = std::error::Error::source(&error).map(|source| format!("{source} {source:?}"));
    let text = format!("{error} {error:?} {source:?}");
    assert!(text.contains("deny") && text.contains("127.0.0.1"), "{text}");
    assert!(
        !text.contains("canary") && !text.contains("key of one") && !text.contains("63616e617279"),
        "{text}"
    );
}

#[tokio::test]
async fn a_refusal_beside_an_older_doubt_is_evidence() {
    let Some(database) = database("a doubted refusal").await else { return };
    let ledger = ledger(&database).await;
    let first = win(&ledger, &request("one")).await;
    let closed = apply(&ledger, &Owner::of(&first), &end(AttemptVerdict::Unknown, true, 1_000)).await;
    let second = apply(&ledger, &Owner::of(&closed), &open()).await;
    let Change::Settle { body, retain_ms, .. } = settle(b"no") else { unreachable!("a settle") };
    let refusal = Change::Settle {
        ended: ended(AttemptVerdict::Refused),
        kind: OutcomeKind::Refusal,
        body,
        provider_replay: false,
        conclusive: false,
        retain_ms,
    };
    let record = apply(&ledger, &Owner::of(&second), &refusal).await;
    assert_eq!((record.state, record.outcome.is_none()), (State::Escaped, true));
    let history = ledger.read(&record.id).await.expect("a read").expect("the effect");
    assert_eq!(history.effect, record);
    assert_eq!(
        history.evidence.iter().map(|kept| kept.verdict).collect::<Vec<_>>(),
        [AttemptVerdict::Refused]
    );
}

#[tokio::test]
async fn no_statement_reads_a_whole_table() {
    let Some(database) = database("index scans").await else { return };
    let ledger = Arc::new(ledger(&database).await);
    let mut crowd = JoinSet::new();
    for n in 0..300 {
        let ledger = Arc::clone(&ledger);
        crowd.spawn(async move {
            let record = win(&ledger, &in_run(&n.to_string(), "a")).await;
            let record =
                apply(&ledger, &Owner::of(&record), &end(AttemptVerdict::NotPerformed, true, 0)).await;
            let record = apply(&ledger, &Owner::of(&record), &open()).await;
            let owner = Owner { seen: None, ..Owner::of(&record) };
            apply(&ledger, &owner, &settle(b"1")).await;
            assert!(matches!(ledger.claim(&in_run(&n.to_string(), "b")).await, Ok(Claim::Settled { .. })));
            assert!(ledger.read(&record.id).await.expect("a read").is_some());
        });
    }
    crowd.join_all().await;
    // A connection reports what it read when it ends.
    ledger.close().await;
    const READ: &str = "SELECT sum(seq_tup_read)::bigint FROM pg_stat_user_tables WHERE relname IN
        ('effectual_effects', 'effectual_attempts', 'effectual_touches', 'effectual_evidence')";
    const WRITTEN: &str = "SELECT coalesce(sum(n_tup_ins), 0)::bigint FROM pg_stat_user_tables WHERE relname LIKE 'effectual%s'";
    let mut observer = raw(&database).await;
    let limit = std::time::Duration::from_secs(30);
    wait::until("the statistics", limit, async || number(&mut observer, WRITTEN).await == 900).await;
    assert_eq!(number(&mut observer, READ).await, 0);
}
