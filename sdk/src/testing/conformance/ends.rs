//! How an attempt ends without an outcome, and what may follow.

use super::support::{
    LONG_MS, again, apply, apply_as, claim, end, ended, history, request, short, token, win, won,
};
use crate::{
    Ledger,
    descriptor::RecoveryClass,
    ledger::{
        Change, Claim, Owner, Task,
        change::Ended,
        record::{AttemptVerdict, State},
    },
};

fn not_performed(keep_claim: bool, not_before_ms: Option<i64>) -> Change {
    Change::End { ended: ended(AttemptVerdict::NotPerformed), keep_claim, not_before_ms }
}

fn open() -> Change {
    Change::Open {
        token: token(),
        class: RecoveryClass::Resend,
        lease_ms: LONG_MS,
        attempt_timeout_ms: 2_000,
        doubt_cleared: false,
    }
}

/// Known not to have performed: released at once, and the next caller's attempt has a higher number and fence.
pub async fn a_released_effect_is_claimed_as_a_new_attempt(ledger: &dyn Ledger) {
    let request = request();
    let first = win(ledger, &request).await;
    let released = apply(ledger, &first, &end(AttemptVerdict::NotPerformed)).await;
    assert_eq!((released.state, released.attempt, released.doubt), (State::Released, 1, None));
    assert!(history(ledger, &request.id).await.closed.is_empty(), "its number has not changed yet");
    let second = win(ledger, &again(&request)).await;
    assert_eq!((second.attempt, second.fence), (2, first.fence + 1));
    let closed = history(ledger, &request.id).await.closed;
    assert_eq!(closed.len(), 1);
    assert_eq!((closed[0].attempt, closed[0].end.verdict), (1, AttemptVerdict::NotPerformed));
}

/// For a backoff the attempt is closed and the claim kept; its owner then opens the next attempt under the same fence.
pub async fn an_end_may_keep_the_claim_for_the_next_attempt(ledger: &dyn Ledger) {
    let request = request();
    let first = win(ledger, &request).await;
    let closed = apply(ledger, &first, &not_performed(true, None)).await;
    assert_eq!((closed.state, closed.attempt), (State::Claimed, 1));
    assert!(matches!(claim(ledger, &again(&request)).await, Claim::InFlight { .. }));
    let change = open();
    let second = apply(ledger, &closed, &change).await;
    assert_eq!((second.attempt, second.fence, second.class), (2, first.fence, RecoveryClass::Resend));
    assert_eq!((second.attempt_timeout_ms, second.end.as_ref()), (2_000, None));
    let history = history(ledger, &request.id).await;
    assert_eq!(history.closed.len(), 1);
    assert_eq!((history.closed[0].token, history.closed[0].class), (first.token, first.class));
}

/// An open whose acknowledgement was lost is repeated and answered as the first.
pub async fn an_open_finds_its_own_token(ledger: &dyn Ledger) {
    let first = win(ledger, &request()).await;
    let closed = apply(ledger, &first, &not_performed(true, None)).await;
    let change = open();
    let second = apply(ledger, &closed, &change).await;
    for seen in [closed.clone(), first] {
        assert_eq!(apply(ledger, &seen, &change).await, second, "nothing is written the second time");
    }
    let unseen = Owner { seen: None, ..Owner::of(&closed) };
    assert_eq!(apply_as(ledger, &unseen, &change).await, second);
    assert_eq!(history(ledger, &second.id).await.closed.len(), 1);
}

/// No attempt starts before the delay that an end asked for has passed.
pub async fn a_delay_is_kept_to(ledger: &dyn Ledger) {
    let waiting = request();
    let record = win(ledger, &waiting).await;
    apply(ledger, &record, &not_performed(false, Some(LONG_MS))).await;
    let Claim::NotBefore { delay_ms } = claim(ledger, &again(&waiting)).await else { panic!("too early") };
    assert!((1..=LONG_MS).contains(&delay_ms), "{delay_ms}");

    let passed = request();
    let record = win(ledger, &passed).await;
    apply(ledger, &record, &not_performed(false, Some(0))).await;
    assert_eq!(win(ledger, &again(&passed)).await.attempt, 2);
}

/// Once the provider's handle is stored, callers get the handle and no new submission is authorised, whatever the class.
pub async fn an_accepted_effect_gives_its_handle(ledger: &dyn Ledger) {
    let request = short(RecoveryClass::Rerun);
    let record = win(ledger, &request).await;
    let accept = Change::Accept { handle: "job-1/ö".to_owned(), poll_after_ms: LONG_MS };
    let accepted = apply(ledger, &record, &accept).await;
    assert_eq!(accepted.accepted.as_ref().map(|accepted| accepted.handle.as_str()), Some("job-1/ö"));
    apply(ledger, &record, &end(AttemptVerdict::Unknown)).await;
    let Claim::Accepted { handle, delay_ms } = claim(ledger, &again(&request)).await else {
        panic!("the handle is stored")
    };
    assert_eq!(handle, "job-1/ö");
    assert!((1..=LONG_MS).contains(&delay_ms), "{delay_ms}");
}

/// Once the provider's handle is stored, the claim that stored it opens no further attempt either.
pub async fn an_accepted_effect_is_not_submitted_again(ledger: &dyn Ledger) {
    for seen in [true, false] {
        let request = request();
        let record = win(ledger, &request).await;
        let accept = Change::Accept { handle: "job-2".to_owned(), poll_after_ms: LONG_MS };
        let accepted = apply(ledger, &record, &accept).await;
        let closed = apply(ledger, &accepted, &not_performed(true, None)).await;
        let owner = Owner { seen: Owner::of(&closed).seen.filter(|_| seen), ..Owner::of(&closed) };
        super::support::stale(ledger, &owner, &open()).await;
        let known = history(ledger, &record.id).await;
        assert_eq!((known.effect.attempt, known.closed.len()), (1, 0));
        assert!(matches!(claim(ledger, &again(&request)).await, Claim::Accepted { .. }));
    }
}

/// An end that nobody knows leaves a doubt with what was sent, when, and the class that the attempt turned out to have.
pub async fn an_unknown_end_escapes_and_keeps_what_was_sent(ledger: &dyn Ledger) {
    let request = short(RecoveryClass::Resend);
    let record = win(ledger, &request).await;
    let ended = Ended {
        class: Some(RecoveryClass::Hold),
        send_digest: Some([3; 32]),
        key_taken: false,
        first_send_ago_ms: Some(5),
        acts_for_ms: LONG_MS,
        ..ended(AttemptVerdict::Unknown)
    };
    let escaped =
        apply(ledger, &record, &Change::End { ended, keep_claim: false, not_before_ms: None }).await;
    assert_eq!((escaped.state, escaped.class), (State::Escaped, RecoveryClass::Hold));
    let end = escaped.end.as_ref().expect("an end");
    assert_eq!(
        (end.verdict, end.send_digest, end.key_taken),
        (AttemptVerdict::Unknown, Some([3; 32]), false)
    );
    let doubt = escaped.doubt.as_ref().expect("a doubt");
    assert_eq!((doubt.attempt, doubt.class, doubt.send_digest), (1, RecoveryClass::Hold, Some([3; 32])));
    assert_eq!((doubt.since, doubt.acts_until), (record.started_at, end.at + LONG_MS));
    assert_eq!(escaped.first_send_at, Some(end.at - 5));
    assert!(matches!(claim(ledger, &again(&request)).await, Claim::Escaped(_)));
}

/// An owner's label marks the open attempt as escaped and leaves the lease: no class takes over before it ends.
pub async fn a_labelled_claim_keeps_its_lease(ledger: &dyn Ledger) {
    let request = super::support::short(RecoveryClass::Rerun);
    let record = win(ledger, &request).await;
    let long = apply(ledger, &record, &Change::Renew { lease_ms: LONG_MS }).await;
    let labelled = apply(ledger, &long, &Change::Label).await;
    assert_eq!((labelled.state, labelled.fence), (State::Escaped, record.fence));
    assert_eq!(labelled.lease_until, long.lease_until);
    assert!(matches!(claim(ledger, &again(&request)).await, Claim::InFlight { .. }));

    let short = short(RecoveryClass::Rerun);
    let record = win(ledger, &short).await;
    apply(ledger, &record, &Change::Label).await;
    let claim = super::support::claim_after_lease(ledger, &again(&short)).await;
    assert_eq!(won(ledger, claim, Task::Perform).await.attempt, 2);
}
