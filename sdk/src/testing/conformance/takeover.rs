//! Another executor goes on after a lease.

use super::support::{
    LONG_MS, SHORT_MS, again, apply, claim, claim_after_lease, end, ended, history, lease_ended, payload,
    refusal, request, short, stale, success, token, win, won,
};
use crate::{
    Ledger,
    descriptor::RecoveryClass,
    ledger::{
        Change, Claim, ClaimRequest, Owner, Task,
        record::{AttemptVerdict, EffectRecord, OutcomeBody},
    },
};

/// An attempt that was taken over, and the one that goes on.
async fn taken_over(ledger: &dyn Ledger) -> (ClaimRequest, EffectRecord, EffectRecord) {
    let request = short(RecoveryClass::Rerun);
    let first = win(ledger, &request).await;
    let claim = claim_after_lease(ledger, &again(&request)).await;
    let second = won(ledger, claim, Task::Perform).await;
    (request, first, second)
}

/// A takeover happens only after the lease; it raises fence and attempt and writes the attempt before into the history,
/// where it was not until then.
pub async fn a_takeover_waits_for_the_lease_and_writes_the_history(ledger: &dyn Ledger) {
    let request = short(RecoveryClass::Rerun);
    let first = win(ledger, &request).await;
    lease_ended(ledger, &first).await;
    assert!(history(ledger, &first.id).await.closed.is_empty(), "nothing is written before the takeover");
    let second = won(ledger, claim(ledger, &again(&request)).await, Task::Perform).await;
    assert!(second.started_at >= first.lease_until, "not before the lease ended");
    assert_eq!((second.attempt, second.fence), (2, first.fence + 1));
    assert_eq!(second.doubt.as_ref().map(|doubt| (doubt.attempt, doubt.since)), Some((1, first.started_at)));
    let closed = history(ledger, &first.id).await.closed;
    let [before] = closed.as_slice() else { panic!("one closed attempt, not {closed:?}") };
    assert_eq!((before.attempt, before.fence, before.token), (1, first.fence, first.token));
    assert_eq!((before.lease_until, before.class), (first.lease_until, first.class));
    assert_eq!(before.end.verdict, AttemptVerdict::Unknown);
}

/// A renewal moves the end of the lease, and the claim stays its owner's beyond the first end.
pub async fn a_renewal_extends_the_lease(ledger: &dyn Ledger) {
    let request = ClaimRequest { lease_ms: SHORT_MS * 10, ..short(RecoveryClass::Rerun) };
    let first = win(ledger, &request).await;
    let renewed = apply(ledger, &first, &Change::Renew { lease_ms: LONG_MS }).await;
    assert!(renewed.lease_until > first.lease_until);
    assert_eq!((renewed.fence, renewed.token, renewed.attempt), (first.fence, first.token, first.attempt));
    lease_ended(ledger, &first).await;
    assert!(matches!(claim(ledger, &again(&request)).await, Claim::InFlight { .. }));
}

/// Behind a raised fence no renewal, end, label, handle or next attempt of the owner before changes the row.
pub async fn a_stale_owner_changes_nothing(ledger: &dyn Ledger) {
    let (_, first, second) = taken_over(ledger).await;
    let open = Change::Open {
        token: token(),
        class: RecoveryClass::Hold,
        lease_ms: LONG_MS,
        attempt_timeout_ms: 1,
        doubt_cleared: true,
    };
    let accept = Change::Accept { handle: "job-1".to_owned(), poll_after_ms: 0 };
    let unseen = Owner { seen: None, ..Owner::of(&first) };
    for owner in [Owner::of(&first), unseen] {
        for change in [
            &Change::Renew { lease_ms: 1 },
            &end(AttemptVerdict::NotPerformed),
            &Change::Label,
            &open,
            &accept,
        ] {
            stale(ledger, &owner, change).await;
            assert_eq!(history(ledger, &first.id).await.effect, second, "{change:?}");
        }
    }
}

/// The fence stays when a claim opens its next attempt: what the attempt before had to say comes too late all the same.
pub async fn an_earlier_attempt_of_the_same_claim_changes_nothing(ledger: &dyn Ledger) {
    let first = win(ledger, &request()).await;
    let closed =
        Change::End { ended: ended(AttemptVerdict::NotPerformed), keep_claim: true, not_before_ms: None };
    let closed = apply(ledger, &first, &closed).await;
    let open = Change::Open {
        token: token(),
        class: RecoveryClass::Hold,
        lease_ms: LONG_MS,
        attempt_timeout_ms: 1,
        doubt_cleared: false,
    };
    let second = apply(ledger, &closed, &open).await;
    assert_eq!((second.fence, second.attempt), (first.fence, 2));
    let unseen = Owner { seen: None, ..Owner::of(&first) };
    for owner in [Owner::of(&first), unseen] {
        for change in [&Change::Renew { lease_ms: 1 }, &end(AttemptVerdict::NotPerformed), &Change::Label] {
            stale(ledger, &owner, change).await;
            assert_eq!(history(ledger, &first.id).await.effect, second, "{change:?}");
        }
    }
    stale(ledger, &Owner::of(&first), &success(b"late")).await;
    assert_eq!(history(ledger, &first.id).await.effect.outcome, None);
}

/// An answer that comes behind a raised fence is not the outcome and is kept.
pub async fn a_stale_answer_is_kept_as_evidence(ledger: &dyn Ledger) {
    let (_, first, second) = taken_over(ledger).await;
    stale(ledger, &Owner::of(&first), &success(b"late")).await;
    // Once more, as after a lost acknowledgement.
    stale(ledger, &Owner::of(&first), &success(b"late")).await;
    let kept = history(ledger, &first.id).await;
    let revision = kept.effect.revision;
    assert_eq!(kept.effect, EffectRecord { revision, late_success: true, ..second.clone() });
    let [evidence] = kept.evidence.as_slice() else { panic!("one evidence, not {:?}", kept.evidence) };
    assert_eq!(
        (evidence.attempt, evidence.fence, evidence.verdict),
        (1, first.fence, AttemptVerdict::Performed)
    );
    assert_eq!(evidence.payload.clone().map(OutcomeBody::Payload), Some(payload(b"late")));
    let settled = apply(ledger, &second, &refusal(true)).await;
    assert!(!settled.double_suspected, "a refusal beside a success is not two successes");
}

/// Evidence of success beside another attempt's success is marked, for somebody to look at.
pub async fn two_successes_are_marked(ledger: &dyn Ledger) {
    let (request, first, second) = taken_over(ledger).await;
    let settled = apply(ledger, &second, &success(b"2")).await;
    assert!(!settled.double_suspected);
    stale(ledger, &Owner::of(&first), &success(b"1")).await;
    let Claim::Settled { record: replay, .. } = claim(ledger, &again(&request)).await else {
        panic!("it is stored")
    };
    assert!(replay.double_suspected);
    assert_eq!(replay.outcome, settled.outcome, "the outcome stays the second attempt's");

    let (_, first, second) = taken_over(ledger).await;
    stale(ledger, &Owner::of(&first), &success(b"1")).await;
    let settled = apply(ledger, &second, &success(b"2")).await;
    assert!(settled.double_suspected, "also if the late one comes first");
}

/// What an owner says it saw is only a hint: outdated, it is neither stored on top of nor answered from.
pub async fn an_outdated_view_of_the_row_is_not_believed(ledger: &dyn Ledger) {
    let record = win(ledger, &request()).await;
    let renewed = apply(ledger, &record, &Change::Renew { lease_ms: LONG_MS * 2 }).await;
    let settled = apply(ledger, &record, &success(b"1")).await;
    assert_eq!(settled.revision, renewed.revision + 1, "the settle went on top of the renewal");
    let forged = EffectRecord { fence: 9, ..record.clone() };
    stale(ledger, &Owner::of(&forged), &Change::Renew { lease_ms: 1 }).await;
}
