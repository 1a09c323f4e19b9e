//! Leases without end, over, and by default.

use std::{sync::Arc, time::Duration};

use effectual::{
    EffectContext, Ledger, Never, RecoveryClass, effect,
    ledger::{Claim, ClaimRequest, record::State},
};
use effectual_tests::on_each_ledger;

use crate::{
    claims::{claim, request, win},
    effects::receipted,
};

on_each_ledger![
    f03_a_claim_without_a_deadline_is_no_orphan,
    f15_a_deadline_that_has_passed_is_not_a_missing_one,
    f15_a_call_that_names_no_deadline_gets_the_executors,
];

fn other(request: &ClaimRequest) -> ClaimRequest {
    let token = effectual::ledger::record::AttemptToken(uuid::Uuid::new_v4().into_bytes());
    ClaimRequest { token, ..request.clone() }
}

async fn f03_a_claim_without_a_deadline_is_no_orphan(ledger: Arc<dyn Ledger>) {
    for class in [RecoveryClass::Rerun, RecoveryClass::Hold] {
        let request = request(class, i64::MAX);
        let record = win(&ledger, &request).await;
        assert!(record.lease_until > record.started_at, "{record:?}");
        for _ in 0..3 {
            match claim(&ledger, &other(&request)).await {
                Claim::InFlight { lease_remaining_ms } => assert!(lease_remaining_ms > 0),
                other => panic!("in flight, not {other:?}"),
            }
        }
        let stored = ledger.read(&request.id).await.expect("a read").expect("recorded").effect;
        assert_eq!((stored.state, stored.attempt, stored.fence), (State::Claimed, 1, 1));
    }
}

/// Nothing stays claimed for ever: what is over is taken over, or labelled escaped, by its class.
async fn f15_a_deadline_that_has_passed_is_not_a_missing_one(ledger: Arc<dyn Ledger>) {
    for lease_ms in [0, -1, -600_000] {
        let repeated = request(RecoveryClass::Rerun, lease_ms);
        win(&ledger, &repeated).await;
        let second = win(&ledger, &other(&repeated)).await;
        assert_eq!((second.attempt, second.fence), (2, 2), "{lease_ms}");

        let held = request(RecoveryClass::Hold, lease_ms);
        win(&ledger, &held).await;
        match claim(&ledger, &other(&held)).await {
            Claim::Escaped(record) => assert_eq!(record.attempt, 1, "{lease_ms}"),
            other => panic!("{lease_ms}: escaped, not {other:?}"),
        }
    }
}

#[effect(keying = business_identity)]
async fn says_its_lease(cx: &EffectContext, #[key] order: u64) -> effectual::Result<u64, Never> {
    let _ = order;
    Ok(u64::try_from(cx.remaining_lease().as_millis()).unwrap_or(u64::MAX))
}

async fn f15_a_call_that_names_no_deadline_gets_the_executors(ledger: Arc<dyn Ledger>) {
    let executor = effectual::Executor::builder(ledger.clone()).build().expect("the defaults are in order");
    let (_, scope) = receipted(&executor);
    let left = says_its_lease(&scope, 1).await.expect("performed");
    assert!((1..=60_000).contains(&left), "{left} ms of the default 60 s");
    for lease in [Duration::ZERO, Duration::from_millis(1)] {
        let refused = effectual::Executor::builder(ledger.clone()).lease(lease).build();
        assert!(refused.is_err_and(|error| error.to_string().contains("lease")), "{lease:?}");
    }
}
