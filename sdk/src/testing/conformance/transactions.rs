//! The class `transactional`: what was not committed with its outcome was not performed. The rules on transactions
//! themselves hold for ledgers that have some.

use std::time::Duration;

use super::support::{
    again, apply, claim, claim_after_lease, end, history, lease_ended, request, short, success, token, win,
    won,
};
use crate::{
    Ledger,
    descriptor::RecoveryClass,
    ledger::{
        Change, Claim, ClaimRequest, EffectTransaction, Owner, Task, TransactionEnd, Transactions,
        record::{AttemptVerdict, State},
    },
};

const LIMIT: Duration = Duration::from_secs(10);

fn transactional() -> ClaimRequest {
    ClaimRequest { class: RecoveryClass::Transactional, ..request() }
}

/// A transaction, from a ledger that has them.
async fn begin(ledger: &dyn Ledger) -> Option<Box<dyn EffectTransaction>> {
    if ledger.transactions() == Transactions::None {
        return None;
    }
    Some(ledger.begin(LIMIT).await.expect("a transaction is opened"))
}

/// A claim whose lease ended without an outcome has not performed: the next caller performs it, without a doubt.
pub async fn what_was_not_committed_is_performed_by_the_next_claim(ledger: &dyn Ledger) {
    let request = short(RecoveryClass::Transactional);
    let first = win(ledger, &request).await;
    let second = won(ledger, claim_after_lease(ledger, &again(&request)).await, Task::Perform).await;
    assert_eq!((second.attempt, second.fence, second.doubt.as_ref()), (2, first.fence + 1, None));
    let closed = history(ledger, &first.id).await.closed;
    let verdicts: Vec<_> = closed.iter().map(|closed| closed.end.verdict).collect();
    assert_eq!(verdicts, [AttemptVerdict::NotPerformed], "behind the raised fence it cannot commit");
}

/// An attempt in doubt before it stays in doubt, and its class counts.
pub async fn a_transactional_attempt_adds_no_doubt_and_ends_none(ledger: &dyn Ledger) {
    for (class, performs) in [(RecoveryClass::Rerun, true), (RecoveryClass::Reconcile, false)] {
        let request = short(RecoveryClass::Rerun);
        let first = win(ledger, &request).await;
        lease_ended(ledger, &first).await;
        let stricter = ClaimRequest { class, token: token(), ..request.clone() };
        let second = won(ledger, claim(ledger, &stricter).await, Task::Perform).await;
        lease_ended(ledger, &second).await;
        let third =
            ClaimRequest { class: RecoveryClass::Transactional, can_look_up: true, ..again(&request) };
        let task = if performs { Task::Perform } else { Task::LookUp };
        let third = won(ledger, claim_after_lease(ledger, &third).await, task).await;
        let doubt = third.doubt.expect("the older attempts are in doubt");
        assert_eq!((doubt.attempt, doubt.class), (1, class));
    }
}

/// Whoever looks at it and cannot perform it releases it: it has not committed, and under the raised fence it no longer can.
pub async fn who_cannot_perform_it_releases_what_was_not_committed(ledger: &dyn Ledger) {
    let request = short(RecoveryClass::Transactional);
    let first = win(ledger, &request).await;
    lease_ended(ledger, &first).await;
    let unable = ClaimRequest { can_perform: false, ..again(&request) };
    let Claim::Released(released) = claim(ledger, &unable).await else { panic!("it is released") };
    assert_eq!(
        (released.state, released.fence, released.doubt.as_ref()),
        (State::Released, first.fence + 1, None)
    );
    assert_eq!(history(ledger, &first.id).await.effect, *released, "and that is stored");
    let verdict = released.end.as_ref().map(|end| end.verdict);
    assert_eq!(verdict, Some(AttemptVerdict::NotPerformed));
    let Some(transaction) = begin(ledger).await else { return };
    let end = transaction.settle(&Owner::of(&first), &success(b"1")).await;
    assert!(matches!(end, TransactionEnd::Stale), "it was said not to have performed it: {end:?}");
    assert_eq!(history(ledger, &first.id).await.effect, *released, "and nothing of it is left");
}

/// A label leaves such a claim to its lease: it may still commit, and nobody else performs it before.
pub async fn a_label_leaves_a_transactional_claim_as_it_is(ledger: &dyn Ledger) {
    let request = transactional();
    let record = win(ledger, &request).await;
    assert_eq!(apply(ledger, &record, &Change::Label).await, record);
    assert!(matches!(claim(ledger, &again(&request)).await, Claim::InFlight { .. }));
    let settled = apply(ledger, &record, &success(b"1")).await;
    assert_eq!(settled.state, State::Completed);
}

/// A settle in a transaction is the outcome, also beside a renewal that came after its owner last looked.
pub async fn a_settle_in_a_transaction_is_the_outcome(ledger: &dyn Ledger) {
    let request = transactional();
    let record = win(ledger, &request).await;
    apply(ledger, &record, &Change::Renew { lease_ms: 1_200_000 }).await;
    let Some(transaction) = begin(ledger).await else { return };
    let end = transaction.settle(&Owner::of(&record), &success(b"1")).await;
    let TransactionEnd::Committed(settled) = end else { panic!("expected to be committed, got {end:?}") };
    assert_eq!(history(ledger, &record.id).await.effect, *settled, "the row is the one that was told of");
    assert!(matches!(claim(ledger, &again(&request)).await, Claim::Settled { .. }));
    // Repeated after a lost acknowledgement.
    let end = begin(ledger).await.expect("a transaction").settle(&Owner::of(&record), &success(b"1")).await;
    assert!(matches!(end, TransactionEnd::Committed(again) if again.outcome == settled.outcome));
}

/// Behind a raised fence nothing is committed, no evidence either: it was not performed.
pub async fn a_stale_settle_in_a_transaction_leaves_nothing(ledger: &dyn Ledger) {
    let request = short(RecoveryClass::Transactional);
    let first = win(ledger, &request).await;
    lease_ended(ledger, &first).await;
    let second = win(ledger, &again(&request)).await;
    let Some(transaction) = begin(ledger).await else { return };
    let end = transaction.settle(&Owner::of(&first), &success(b"1")).await;
    assert!(matches!(end, TransactionEnd::Stale), "{end:?}");
    let known = history(ledger, &first.id).await;
    assert_eq!((&known.effect, known.evidence.len()), (&second, 0));
    apply(ledger, &second, &success(b"2")).await;
}

/// A roll-back leaves the row as it was, and dropping the transaction is one: the owner then ends its attempt.
pub async fn a_transaction_that_is_not_settled_leaves_nothing(ledger: &dyn Ledger) {
    for drops in [false, true] {
        let record = win(ledger, &transactional()).await;
        let Some(transaction) = begin(ledger).await else { return };
        match drops {
            true => drop(transaction),
            false => assert!(transaction.roll_back().await),
        }
        assert_eq!(history(ledger, &record.id).await.effect, record);
        let released = apply(ledger, &record, &end(AttemptVerdict::NotPerformed)).await;
        assert_eq!((released.state, released.doubt.as_ref()), (State::Released, None));
    }
}
