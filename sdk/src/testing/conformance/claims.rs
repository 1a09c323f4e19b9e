//! Winning a claim, losing it, and finding the outcome.

use super::support::{LONG_MS, again, argument, claim, history, payload, request, settle, success, win};
use crate::{
    Ledger,
    descriptor::{Keying, RecoveryClass},
    identity::{ArgumentDigest, InvocationId, NodeId, RunId},
    ledger::{
        Change, Changed, Claim, ClaimRequest, Owner, Task,
        record::{OutcomeKind, Place, State},
    },
};

fn place() -> Place {
    Place {
        run: Some(RunId::parse("conformance/0123456789abcdef").expect("a valid run")),
        node: Some(NodeId::parse("charge:1").expect("a valid node")),
        invocation: Some(InvocationId::parse("i-1").expect("a valid invocation")),
    }
}

/// The first claim of an effect wins: attempt 1, fence 1, an authority of the asked length.
pub async fn a_first_claim_wins(ledger: &dyn Ledger) {
    let request = request();
    let record = win(ledger, &request).await;
    assert_eq!((record.state, record.attempt, record.fence), (State::Claimed, 1, 1));
    assert_eq!(record.lease_until - record.started_at, request.lease_ms);
    assert_eq!((record.end.as_ref(), record.doubt.as_ref(), record.outcome.as_ref()), (None, None, None));
    assert!(history(ledger, &request.id).await.closed.is_empty(), "an open attempt is not in the history");
}

/// Whatever a claim carries comes back as it was, in every script and with every option.
pub async fn everything_of_a_claim_is_kept(ledger: &dyn Ledger) {
    let keyed = ArgumentDigest { name: "card".into(), digest: [7; 32], key_id: Some("k-1".into()) };
    let request = ClaimRequest {
        operation: "Rückzahlung → 返金 \u{1f4b8}\0'\"--".into(),
        keying: Keying::ActivityRecipe,
        key_version: 3,
        provider: Some("stripe".into()),
        fingerprints: [argument("amount", 255), keyed, argument("Größe", 0)].into(),
        class: RecoveryClass::Reconcile,
        place: place(),
        ..request()
    };
    let record = win(ledger, &request).await;
    let told = (&record.operation, record.keying, record.key_version, &record.provider, &record.provider_key);
    let asked =
        (&request.operation, request.keying, request.key_version, &request.provider, &request.provider_key);
    assert_eq!(told, asked);
    assert_eq!((&record.fingerprints, &record.place), (&request.fingerprints, &request.place));
    assert_eq!((record.class, record.token), (request.class, request.token));
    assert_eq!(record.attempt_timeout_ms, request.attempt_timeout_ms);
}

/// A claim whose acknowledgement was lost is repeated with the same token, and is still the owner's.
pub async fn a_claim_finds_its_own_token(ledger: &dyn Ledger) {
    let request = request();
    let first = win(ledger, &request).await;
    assert_eq!(win(ledger, &request).await, first, "nothing is written the second time");
}

/// Whoever comes while the lease runs is told for how much longer.
pub async fn a_second_claim_is_told_how_long_the_lease_runs(ledger: &dyn Ledger) {
    let request = request();
    win(ledger, &request).await;
    let Claim::InFlight { lease_remaining_ms } = claim(ledger, &again(&request)).await else {
        panic!("somebody else may act")
    };
    assert!((1..=LONG_MS).contains(&lease_remaining_ms), "{lease_remaining_ms}");
}

/// A stored outcome is answered to everybody, from any run, and nothing of the row changes.
pub async fn a_stored_outcome_is_replayed(ledger: &dyn Ledger) {
    let request = request();
    let record = win(ledger, &request).await;
    let settled = super::support::apply(ledger, &record, &success(b"42")).await;
    assert_eq!(settled.state, State::Completed);
    for caller in [again(&request), ClaimRequest { place: place(), ..again(&request) }, request] {
        let Claim::Settled { record: replay, .. } = claim(ledger, &caller).await else {
            panic!("the outcome is stored")
        };
        assert_eq!(*replay, settled);
        assert_eq!(history(ledger, &caller.id).await.effect, settled);
    }
}

/// The provider key of the first claim is presented for the effect's whole life.
pub async fn the_stored_provider_key_stays(ledger: &dyn Ledger) {
    let request = ClaimRequest { class: RecoveryClass::Rerun, lease_ms: 1, ..request() };
    let first = win(ledger, &request).await;
    let other = ClaimRequest { provider_key: "another".into(), ..again(&request) };
    let claim = super::support::claim_after_lease(ledger, &other).await;
    let second = super::support::won(ledger, claim, Task::Perform).await;
    assert_eq!((&second.provider_key, second.attempt), (&first.provider_key, 2));
}

/// After its retention an outcome is answered as expired, swept or not, and the effect is not performed again.
pub async fn an_outcome_past_its_retention_is_expired(ledger: &dyn Ledger) {
    let request = request();
    let record = win(ledger, &request).await;
    super::support::apply(ledger, &record, &settle(OutcomeKind::Success, payload(b"1"), false, 0)).await;
    for _ in 0..2 {
        assert!(matches!(claim(ledger, &again(&request)).await, Claim::Expired));
    }
}

/// An effect that nobody claimed is unknown, and a change of it is stale.
pub async fn what_was_never_claimed_is_unknown(ledger: &dyn Ledger) {
    let request = request();
    assert!(ledger.read(&request.id).await.expect("a read is answered").is_none());
    let owner = Owner { id: request.id.clone(), fence: 1, token: request.token, attempt: 1, seen: None };
    for change in [success(b"1"), Change::Renew { lease_ms: 1 }, Change::Label] {
        let changed = ledger.change(&owner, &change).await.expect("a change is answered");
        assert!(matches!(changed, Changed::Stale(None)), "{changed:?}");
    }
    assert!(ledger.read(&request.id).await.expect("a read is answered").is_none());
}
