//! The same effect asked for with other arguments.

use super::support::{
    LONG_MS, again, apply, argument, claim, claim_after_lease, end, ended, payload, request, settle, short,
    success, win,
};
use crate::{
    Ledger,
    descriptor::RecoveryClass,
    ledger::{
        Change, Claim, ClaimRequest,
        record::{AttemptVerdict, EffectRecord, OutcomeKind},
    },
};

/// Asks for the same effect with another amount, which is refused and changes nothing.
async fn refused(ledger: &dyn Ledger, request: &ClaimRequest, state: &str) {
    let before = ledger.read(&request.id).await.expect("a read is answered");
    let other = ClaimRequest { fingerprints: [argument("amount", 2)].into(), ..again(request) };
    match claim(ledger, &other).await {
        Claim::Mismatch { arguments } => assert_eq!(arguments, ["amount"], "{state}"),
        claim => panic!("{state}: expected a mismatch, got {claim:?}"),
    }
    assert_eq!(ledger.read(&request.id).await.expect("a read is answered"), before, "{state}");
}

async fn changed(ledger: &dyn Ledger, change: Change, state: &str) -> EffectRecord {
    let request = request();
    let record = win(ledger, &request).await;
    let record = apply(ledger, &record, &change).await;
    refused(ledger, &request, state).await;
    record
}

/// Other arguments are told apart before anything else is said of the effect: whatever its state, and also when its
/// lease has ended, its outcome has expired or it may start only later.
pub async fn a_mismatch_is_judged_before_every_state(ledger: &dyn Ledger) {
    let in_flight = request();
    win(ledger, &in_flight).await;
    refused(ledger, &in_flight, "in flight").await;

    changed(ledger, success(b"1"), "completed").await;
    changed(ledger, settle(OutcomeKind::Success, payload(b"1"), false, 0), "expired").await;
    changed(ledger, end(AttemptVerdict::NotPerformed), "released").await;
    let later = Change::End {
        ended: ended(AttemptVerdict::NotPerformed),
        keep_claim: false,
        not_before_ms: Some(LONG_MS),
    };
    changed(ledger, later, "not before").await;
    changed(ledger, end(AttemptVerdict::Unknown), "escaped").await;
    let accept = Change::Accept { handle: "job-1".to_owned(), poll_after_ms: 0 };
    changed(ledger, accept, "accepted").await;

    let held = short(RecoveryClass::Hold);
    let record = win(ledger, &held).await;
    super::support::lease_ended(ledger, &record).await;
    refused(ledger, &held, "lease ended").await;
    assert!(matches!(claim_after_lease(ledger, &again(&held)).await, Claim::Escaped(_)));
    refused(ledger, &held, "labelled").await;
}

/// An argument that an older or newer program does not have proves nothing, and neither does a digest under a key that
/// the other side does not use.
pub async fn an_argument_that_one_side_lacks_proves_nothing(ledger: &dyn Ledger) {
    let request = request();
    let record = win(ledger, &request).await;
    apply(ledger, &record, &success(b"1")).await;
    let mut keyed = argument("amount", 9);
    keyed.key_id = Some("k-2".into());
    for fingerprints in
        [vec![], vec![argument("memo", 9)], vec![argument("amount", 1), argument("memo", 9)], vec![keyed]]
    {
        let other = ClaimRequest { fingerprints: fingerprints.into(), ..again(&request) };
        assert!(matches!(claim(ledger, &other).await, Claim::Settled { .. }));
    }
}
