//! Acknowledgements that are lost and connections that break in the middle of a statement, for each write of a call.

use std::{sync::Arc, time::Duration};

use effectual::{
    EffectContext, ErrorKind, ProviderCalled, effect,
    ledger::record::{AttemptVerdict, State},
};
use effectual_tests::{
    pg_proxy::{Fault, PgProxy},
    scripted::{Act, Done, Scripted, ScriptedError},
    wait::{until, until_true},
};
use sqlx::{Connection, PgConnection};

use crate::{CHANGE, CLAIM, LIMIT, Wired, effects::*, on_both_wires};

on_both_wires![
    f04_a_claim_whose_commit_is_not_acknowledged_is_ours,
    f04_each_write_of_a_call_may_be_cut_off,
    f04_a_renewal_that_is_cut_off_costs_nothing,
    f35_a_ledger_that_cannot_be_reached_starts_nothing,
    f35_a_ledger_that_goes_away_during_the_effect_gets_the_outcome_when_it_is_back,
    a_claim_that_arrives_after_its_caller_gave_up_is_given_back,
    f01_cuts_leave_no_transaction_open,
];

/// Soon renewed.
const RENEWING_LEASE: Duration = Duration::from_millis(2_400);

const FAULTS: [Fault; 3] = [Fault::LoseReply, Fault::CutBefore, Fault::CutAmid];

async fn f04_a_claim_whose_commit_is_not_acknowledged_is_ours(wired: Wired) {
    let executor = executor(&wired.ledger);
    for (number, fault) in (1..).zip(FAULTS) {
        let (receipt, scope) = receipted(&executor);
        let provider = Scripted::forgetful([]);
        wired.proxy.arm(CLAIM, fault);
        let done = holding(&scope, format!("{fault:?}"), 5, provider.clone()).await.expect("performed");
        assert_eq!((done.number, provider.performed(), wired.proxy.faults()), (1, 1, number), "{fault:?}");
        let known = history(&executor, &receipt).await;
        let row = (known.effect.state, known.effect.attempt, known.effect.fence);
        assert_eq!((row, known.closed.len()), ((State::Completed, 1, 1), 0), "{fault:?}");
    }
}

/// A call with a second attempt: it claims, closes, opens and settles.
async fn f04_each_write_of_a_call_may_be_cut_off(wired: Wired) {
    let executor = executor(&wired.ledger);
    let mut faults = 0;
    for fault in FAULTS {
        for (passes, write) in ["the end", "the opening", "the settle"].into_iter().enumerate() {
            let (receipt, scope) = receipted(&executor);
            let provider = Scripted::deduplicating([Act::NoConnection]);
            wired.proxy.arm_after(u32::try_from(passes).expect("few"), CHANGE, fault);
            let order = format!("{fault:?} at {write}");
            let done = resending(&scope, order.clone(), 5, provider.clone()).await.expect("performed");
            faults += 1;
            assert_eq!((done.number, provider.performed(), wired.proxy.faults()), (1, 1, faults), "{order}");
            let known = history(&executor, &receipt).await;
            assert_eq!((known.effect.state, known.evidence.len()), (State::Completed, 0), "{order}");
            let ends: Vec<_> = known.attempts().map(|(_, end)| end.map(|end| end.verdict)).collect();
            let expected = [AttemptVerdict::NotPerformed, AttemptVerdict::Performed].map(Some);
            assert_eq!(ends, expected, "{order}");
            let again = resending(&scope, order.clone(), 5, provider.clone()).await.expect("replayed");
            assert_eq!((again, receipt.replayed()), (done, true), "{order}");
        }
    }
}

/// Acts, and answers once its lease was renewed after a fault.
#[effect(keying = business_identity)]
async fn long(
    cx: &EffectContext,
    #[key] order: String,
    #[skip] provider: Scripted,
    #[skip] proxy: Arc<PgProxy>,
    #[skip] faults: u64,
) -> effectual::Result<Done, ScriptedError> {
    let done = provider.send(cx, &order).await?;
    proxy.wait_for_faults(faults).await;
    // A third of the lease had passed, or no renewal would have been cut off.
    until_true(|| cx.remaining_lease() > RENEWING_LEASE * 3 / 4).await;
    Ok(done)
}

async fn f04_a_renewal_that_is_cut_off_costs_nothing(wired: Wired) {
    let executor = builder(&wired.ledger)
        .attempt_timeout(Duration::from_secs(2))
        .lease(RENEWING_LEASE)
        .build()
        .expect("a valid set-up");
    for (faults, fault) in (1..).zip(FAULTS) {
        let (receipt, scope) = receipted(&executor);
        let provider = Scripted::forgetful([]);
        // The claim is the one write before the renewal, and no such statement.
        wired.proxy.arm(CHANGE, fault);
        let call = long(&scope, format!("{fault:?}"), provider.clone(), wired.proxy.clone(), faults);
        assert_eq!(call.await.expect("performed").number, 1, "{fault:?}");
        let known = history(&executor, &receipt).await;
        let row = (known.effect.state, known.effect.attempt, known.effect.fence);
        assert_eq!((row, provider.performed()), ((State::Completed, 1, 1), 1), "{fault:?}");
    }
}

async fn f35_a_ledger_that_cannot_be_reached_starts_nothing(wired: Wired) {
    let executor = executor(&wired.ledger);
    let (_, scope) = receipted(&executor);
    let provider = Scripted::forgetful([]);
    wired.proxy.refuse(true);
    wired.proxy.arm(CLAIM, Fault::CutBefore);
    let error = holding(&scope, "o-1".into(), 5, provider.clone()).await.expect_err("not started");
    assert_eq!((error.kind(), error.provider_called()), (ErrorKind::Ledger, ProviderCalled::No));
    assert_eq!(provider.keys().len(), 0);
    wired.proxy.refuse(false);
    holding(&scope, "o-1".into(), 5, provider.clone()).await.expect("once it is back");
    assert_eq!(provider.performed(), 1);
}

/// Acts, and takes the ledger's server away before it answers.
#[effect(keying = business_identity)]
async fn cutting_off(
    cx: &EffectContext,
    #[key] order: u64,
    #[skip] provider: Scripted,
    #[skip] proxy: Arc<PgProxy>,
) -> effectual::Result<Done, ScriptedError> {
    let done = provider.send(cx, &order.to_string()).await?;
    proxy.refuse(true);
    proxy.arm(CHANGE, Fault::CutBefore);
    Ok(done)
}

async fn f35_a_ledger_that_goes_away_during_the_effect_gets_the_outcome_when_it_is_back(wired: Wired) {
    let executor = executor(&wired.ledger);
    let (receipt, scope) = receipted(&executor);
    let provider = Scripted::forgetful([]);
    let call = tokio::spawn(cutting_off(&scope, 1, provider.clone(), wired.proxy.clone()));
    wired.proxy.wait_for_faults(1).await;
    assert!(!call.is_finished(), "an outcome is stored before it is returned");
    wired.proxy.refuse(false);
    assert_eq!(call.await.expect("no panic").expect("stored at last").number, 1);
    let known = history(&executor, &receipt).await;
    assert_eq!((known.effect.state, known.effect.attempt, known.evidence.len()), (State::Completed, 1, 0));
    assert_eq!(provider.performed(), 1);
}

/// The statement hangs on the wire for longer than the ledger's patience, and is stored when nobody wants it any more: no
/// claim is left without an owner.
async fn a_claim_that_arrives_after_its_caller_gave_up_is_given_back(wired: Wired) {
    let executor = executor(&wired.ledger);
    let (receipt, scope) = receipted(&executor);
    let provider = Scripted::forgetful([]);
    wired.proxy.refuse(true);
    wired.proxy.arm(CLAIM, Fault::Stall);
    let error = holding(&scope, "o-1".into(), 5, provider.clone()).await.expect_err("not started");
    assert_eq!((error.kind(), provider.keys().len()), (ErrorKind::Ledger, 0));
    wired.proxy.refuse(false);
    wired.proxy.release();
    let done = effectual_tests::wait::for_value(LIMIT, async || {
        holding(&scope, "o-1".into(), 5, provider.clone()).await.ok()
    });
    assert_eq!(done.await.expect("performed then").number, 1);
    assert_eq!((provider.performed(), state(&executor, &receipt).await), (1, State::Completed));
}

async fn f01_cuts_leave_no_transaction_open(wired: Wired) {
    const CUTS: u64 = 120;
    let executor = executor(&wired.ledger);
    let mut observer = PgConnection::connect(&wired.database.url()).await.expect("a connection");
    for number in 0..CUTS {
        let fault = FAULTS[usize::try_from(number % 3).expect("small")];
        wired.proxy.arm(if number % 2 == 0 { CLAIM } else { CHANGE }, fault);
        let (_, scope) = receipted(&executor);
        let call = holding(&scope, format!("o-{number}"), 5, Scripted::forgetful([]));
        call.await.expect("performed");
    }
    assert_eq!(wired.proxy.faults(), CUTS);
    let count = async |connection: &mut PgConnection, sql: &'static str| -> i64 {
        sqlx::query_scalar(sql).fetch_one(connection).await.expect("a count")
    };
    let rows = "SELECT count(*) FROM effectual_effects WHERE state = 'completed' AND fence = 1";
    assert_eq!(count(&mut observer, rows).await, i64::try_from(CUTS).expect("small"));
    let idle = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'";
    until("no backend to be idle in a transaction", LIMIT, async || count(&mut observer, idle).await == 0)
        .await;
}
