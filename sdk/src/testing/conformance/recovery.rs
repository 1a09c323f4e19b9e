//! What an unknown outcome leads to, by the class stored with the attempt.

use std::sync::Arc;

use super::support::{
    LONG_MS, again, apply, claim, claim_after_lease, end, history, lease_ended, short, stale, success, token,
    win, won,
};
use crate::{
    Ledger,
    descriptor::RecoveryClass,
    ledger::{
        Change, Claim, ClaimRequest, Owner, Task,
        record::{AttemptVerdict, EffectRecord, State},
    },
};

/// A short claim of this class whose lease has ended.
async fn left_behind(ledger: &dyn Ledger, class: RecoveryClass) -> (ClaimRequest, EffectRecord) {
    let request = short(class);
    let record = win(ledger, &request).await;
    lease_ended(ledger, &record).await;
    (request, record)
}

async fn escaped(ledger: &dyn Ledger, request: &ClaimRequest) -> EffectRecord {
    match claim(ledger, request).await {
        Claim::Escaped(record) => {
            assert_eq!(history(ledger, &record.id).await.effect, *record, "the label is stored");
            Arc::unwrap_or_clone(record)
        }
        claim => panic!("expected escaped, got {claim:?}"),
    }
}

/// `hold`: nobody performs it again; the doubt is labelled, the fence stays, and a caller that can look up is no
/// exception.
pub async fn hold_is_never_performed_again(ledger: &dyn Ledger) {
    let (request, record) = left_behind(ledger, RecoveryClass::Hold).await;
    let labelled = escaped(ledger, &again(&request)).await;
    assert_eq!((labelled.state, labelled.fence, labelled.attempt), (State::Escaped, record.fence, 1));
    let doubt = labelled.doubt.as_ref().expect("a doubt");
    assert_eq!((doubt.attempt, doubt.since, doubt.class), (1, record.started_at, RecoveryClass::Hold));
    let curious = ClaimRequest { can_look_up: true, resend_window_ms: Some(LONG_MS), ..again(&request) };
    assert_eq!(escaped(ledger, &curious).await, labelled, "and nothing more is written");
    let laxer = ClaimRequest { class: RecoveryClass::Rerun, ..again(&request) };
    assert_eq!(escaped(ledger, &laxer).await, labelled, "the class stored with the attempt counts");
}

/// `rerun`: performed again, as a new attempt.
pub async fn rerun_is_performed_again(ledger: &dyn Ledger) {
    let (request, _) = left_behind(ledger, RecoveryClass::Rerun).await;
    let second = won(ledger, claim(ledger, &again(&request)).await, Task::Perform).await;
    assert_eq!((second.attempt, second.state), (2, State::Claimed));
}

/// `resend`: sent again under the stored key while the provider's window lasts.
pub async fn resend_is_sent_again_within_its_window(ledger: &dyn Ledger) {
    let (request, first) = left_behind(ledger, RecoveryClass::Resend).await;
    let other =
        ClaimRequest { resend_window_ms: Some(LONG_MS), provider_key: "another".into(), ..again(&request) };
    let second = won(ledger, claim(ledger, &other).await, Task::Perform).await;
    assert_eq!((second.attempt, &second.provider_key), (2, &first.provider_key));
}

/// `resend` after its window, which counts from the start of the first attempt in doubt: looked up where that is
/// possible, held where it is not.
pub async fn resend_outside_its_window_is_held_or_looked_up(ledger: &dyn Ledger) {
    let (request, _) = left_behind(ledger, RecoveryClass::Resend).await;
    for window in [None, Some(1)] {
        escaped(ledger, &ClaimRequest { resend_window_ms: window, ..again(&request) }).await;
    }
    let curious = ClaimRequest { can_look_up: true, resend_window_ms: Some(1), ..again(&request) };
    won(ledger, claim(ledger, &curious).await, Task::LookUp).await;
}

/// Where the provider does not say what it does with a key in flight, a re-send waits until the attempt in doubt can no
/// longer act.
pub async fn resend_waits_until_the_doubtful_attempt_cannot_act(ledger: &dyn Ledger) {
    let (request, _) = left_behind(ledger, RecoveryClass::Resend).await;
    let window = ClaimRequest { resend_window_ms: Some(LONG_MS), ..request };
    let quiet = ClaimRequest { resend_quiet_ms: Some(LONG_MS), ..again(&window) };
    let Claim::NotBefore { delay_ms } = claim(ledger, &quiet).await else { panic!("it is too early") };
    assert!((1..=LONG_MS + window.attempt_timeout_ms).contains(&delay_ms), "{delay_ms}");
    won(ledger, claim(ledger, &again(&window)).await, Task::Perform).await;
}

/// `reconcile`: whoever can ask the provider asks first, on the attempt in doubt; whoever cannot is told.
pub async fn reconcile_is_looked_up_first(ledger: &dyn Ledger) {
    let (request, first) = left_behind(ledger, RecoveryClass::Reconcile).await;
    let labelled = escaped(ledger, &again(&request)).await;
    assert_eq!(labelled.doubt.map(|doubt| doubt.class), Some(RecoveryClass::Reconcile));
    let curious = ClaimRequest { can_look_up: true, ..again(&request) };
    let asked = won(ledger, claim(ledger, &curious).await, Task::LookUp).await;
    assert_eq!((asked.attempt, asked.fence), (1, first.fence + 1), "no new attempt, but a new owner");
    assert_eq!(asked.end.as_ref().map(|end| end.verdict), Some(AttemptVerdict::Unknown));
    won(ledger, claim(ledger, &curious).await, Task::LookUp).await;
    let settled = apply(ledger, &asked, &success(b"found")).await;
    assert_eq!((settled.state, settled.doubt), (State::Completed, None));
    assert!(history(ledger, &settled.id).await.closed.is_empty());
}

/// A look-up that truthfully found nothing clears the doubt and goes on with the next attempt; one that does not know
/// leaves the effect escaped.
pub async fn a_look_up_that_finds_nothing_opens_the_next_attempt(ledger: &dyn Ledger) {
    let (request, _) = left_behind(ledger, RecoveryClass::Reconcile).await;
    let curious = || ClaimRequest { can_look_up: true, ..again(&request) };
    let asked = won(ledger, claim(ledger, &curious()).await, Task::LookUp).await;
    let unsure = apply(ledger, &asked, &end(AttemptVerdict::Unknown)).await;
    assert_eq!(unsure.state, State::Escaped);
    let asked = won(ledger, claim(ledger, &curious()).await, Task::LookUp).await;
    let open = Change::Open {
        token: token(),
        class: RecoveryClass::Reconcile,
        lease_ms: LONG_MS,
        attempt_timeout_ms: 1_000,
        doubt_cleared: true,
    };
    let second = apply(ledger, &asked, &open).await;
    assert_eq!((second.attempt, second.doubt.as_ref(), second.end.as_ref()), (2, None, None));
    let closed = history(ledger, &second.id).await.closed;
    assert_eq!(closed.iter().map(|closed| closed.attempt).collect::<Vec<_>>(), [1]);
}

/// An attempt that was taken for lost and then says that it performed is believed more than a look-up that found nothing:
/// no further attempt is opened.
pub async fn a_look_up_does_not_outweigh_a_late_success(ledger: &dyn Ledger) {
    let (request, first) = left_behind(ledger, RecoveryClass::Reconcile).await;
    let curious = ClaimRequest { can_look_up: true, ..again(&request) };
    let asked = won(ledger, claim(ledger, &curious).await, Task::LookUp).await;
    stale(ledger, &Owner::of(&first), &success(b"late")).await;
    let open = Change::Open {
        token: token(),
        class: RecoveryClass::Reconcile,
        lease_ms: LONG_MS,
        attempt_timeout_ms: 1_000,
        doubt_cleared: true,
    };
    stale(ledger, &Owner::of(&asked), &open).await;
    let known = history(ledger, &first.id).await;
    assert_eq!((known.effect.state, known.effect.attempt), (State::Escaped, 1));
    assert!(known.effect.doubt.is_some() && known.effect.late_success && known.closed.is_empty());
    let asked = won(ledger, claim(ledger, &again(&curious)).await, Task::LookUp).await;
    assert_eq!(apply(ledger, &asked, &success(b"found")).await.state, State::Completed);
}

/// Several attempts in doubt are judged by the strictest of their classes, and the doubt names the first.
pub async fn several_attempts_in_doubt_are_judged_by_the_strictest(ledger: &dyn Ledger) {
    let (request, first) = left_behind(ledger, RecoveryClass::Rerun).await;
    let stricter = ClaimRequest { token: token(), class: RecoveryClass::Reconcile, ..request.clone() };
    let second = won(ledger, claim(ledger, &stricter).await, Task::Perform).await;
    assert_eq!(second.class, RecoveryClass::Reconcile);
    lease_ended(ledger, &second).await;
    let laxest = ClaimRequest { class: RecoveryClass::Rerun, ..again(&request) };
    assert!(matches!(claim_after_lease(ledger, &laxest).await, Claim::Escaped(_)));
    let doubt = history(ledger, &first.id).await.effect.doubt.expect("a doubt");
    assert_eq!((doubt.attempt, doubt.since, doubt.class), (1, first.started_at, RecoveryClass::Reconcile));
}
