//! A doubt stays until something truthful ends it.

use super::support::{
    again, apply, claim, claim_after_lease, end, ended, history, refusal, short, stale, success, win, won,
};
use crate::{
    Ledger,
    descriptor::RecoveryClass,
    ledger::{
        Change, Claim, ClaimRequest, Owner, Task,
        record::{AttemptVerdict, EffectRecord, State},
    },
};

/// A second attempt under the doubt that the first one left.
async fn second_attempt(ledger: &dyn Ledger) -> (ClaimRequest, EffectRecord, EffectRecord) {
    let request = short(RecoveryClass::Rerun);
    let first = win(ledger, &request).await;
    let second = won(ledger, claim_after_lease(ledger, &again(&request)).await, Task::Perform).await;
    (request, first, second)
}

/// An attempt that another caller labelled after its lease.
async fn labelled(ledger: &dyn Ledger) -> (ClaimRequest, EffectRecord) {
    let request = short(RecoveryClass::Hold);
    let record = win(ledger, &request).await;
    assert!(matches!(claim_after_lease(ledger, &again(&request)).await, Claim::Escaped(_)));
    (request, record)
}

/// An attempt that did not perform says nothing of the one before: the effect stays escaped.
pub async fn a_later_not_performed_does_not_erase_a_doubt(ledger: &dyn Ledger) {
    let (request, first, second) = second_attempt(ledger).await;
    let ended = apply(ledger, &second, &end(AttemptVerdict::NotPerformed)).await;
    assert_eq!(ended.state, State::Escaped);
    assert_eq!(ended.doubt.as_ref().map(|doubt| (doubt.attempt, doubt.since)), Some((1, first.started_at)));
    let third = won(ledger, claim(ledger, &again(&request)).await, Task::Perform).await;
    assert_eq!((third.attempt, third.doubt), (3, ended.doubt), "and the next attempt knows of it");
}

/// The labelled attempt's own late "not performed" clears the doubt that names it.
pub async fn a_labelled_attempts_own_not_performed_clears_its_doubt(ledger: &dyn Ledger) {
    let (request, record) = labelled(ledger).await;
    let ended = apply(ledger, &record, &end(AttemptVerdict::NotPerformed)).await;
    assert_eq!((ended.state, ended.doubt), (State::Released, None));
    let next = won(ledger, claim(ledger, &again(&request)).await, Task::Perform).await;
    assert_eq!(next.attempt, 2);
}

/// A labelled attempt has no claim left to keep: its own "not performed" releases the effect, also where its owner meant
/// to go on.
pub async fn a_labelled_attempt_that_would_keep_its_claim_is_released(ledger: &dyn Ledger) {
    let (_, record) = labelled(ledger).await;
    let ended =
        Change::End { ended: ended(AttemptVerdict::NotPerformed), keep_claim: true, not_before_ms: None };
    let ended = apply(ledger, &record, &ended).await;
    assert_eq!((ended.state, ended.doubt), (State::Released, None));
}

/// Behind a raised fence "not performed" clears nothing.
pub async fn a_not_performed_behind_a_raised_fence_clears_nothing(ledger: &dyn Ledger) {
    let (_, first, second) = second_attempt(ledger).await;
    stale(ledger, &Owner::of(&first), &end(AttemptVerdict::NotPerformed)).await;
    assert_eq!(history(ledger, &first.id).await.effect, second);
}

/// A refusal answers its own attempt; while an earlier one may have performed the effect it is evidence and not the
/// outcome.
pub async fn a_refusal_under_an_older_doubt_is_evidence(ledger: &dyn Ledger) {
    let (_, _, second) = second_attempt(ledger).await;
    let refused = apply(ledger, &second, &refusal(false)).await;
    assert_eq!((refused.state, refused.outcome.as_ref()), (State::Escaped, None));
    assert_eq!(refused.doubt.as_ref().map(|doubt| doubt.attempt), Some(1));
    let kept = history(ledger, &second.id).await.evidence;
    let verdicts: Vec<_> = kept.iter().map(|evidence| (evidence.attempt, evidence.verdict)).collect();
    assert_eq!(verdicts, [(2, AttemptVerdict::Refused)]);
}

/// A refusal that answers the effect, being the provider's stored answer to our key or what a look-up found, is the
/// outcome.
pub async fn a_conclusive_refusal_ends_a_doubt(ledger: &dyn Ledger) {
    let (_, _, second) = second_attempt(ledger).await;
    let refused = apply(ledger, &second, &refusal(true)).await;
    assert_eq!((refused.state, refused.doubt), (State::Completed, None));
    assert!(history(ledger, &second.id).await.evidence.is_empty());
}

/// A performed answer ends a doubt, whatever came before.
pub async fn a_success_ends_a_doubt(ledger: &dyn Ledger) {
    let (request, _, second) = second_attempt(ledger).await;
    let settled = apply(ledger, &second, &success(b"1")).await;
    assert_eq!((settled.state, settled.doubt), (State::Completed, None));
    assert!(matches!(claim(ledger, &again(&request)).await, Claim::Settled { .. }));
}
