//! Storing the outcome.

use super::support::{
    LONG_MS, again, apply, apply_as, claim, claim_after_lease, end, history, lease_ended, payload, refusal,
    request, settle, short, success, win,
};
use crate::{
    Ledger,
    descriptor::RecoveryClass,
    ledger::{
        Change, Claim, Owner,
        record::{AbsentReason, AttemptVerdict, OutcomeBody, OutcomeKind, State},
    },
};

/// A claim whose lease ended and that nobody took over still settles.
pub async fn a_settle_is_judged_by_fence_and_token_and_not_by_time(ledger: &dyn Ledger) {
    let record = win(ledger, &short(RecoveryClass::Rerun)).await;
    lease_ended(ledger, &record).await;
    let settled = apply(ledger, &record, &success(b"1")).await;
    assert_eq!((settled.state, settled.doubt), (State::Completed, None));
}

/// Another caller's label does not raise the fence: the attempt's own late outcome is the outcome.
pub async fn a_settle_after_a_label_still_counts(ledger: &dyn Ledger) {
    let request = short(RecoveryClass::Hold);
    let record = win(ledger, &request).await;
    assert!(matches!(claim_after_lease(ledger, &again(&request)).await, Claim::Escaped(_)));
    let settled = apply(ledger, &record, &success(b"1")).await;
    assert_eq!((settled.state, settled.doubt), (State::Completed, None));
    assert!(matches!(claim(ledger, &again(&request)).await, Claim::Settled { .. }));
}

/// A settle whose acknowledgement was lost is repeated and answered as the first, with the row as its owner last saw it
/// and without.
pub async fn a_settle_finds_its_own_outcome(ledger: &dyn Ledger) {
    let record = win(ledger, &request()).await;
    let first = apply(ledger, &record, &success(b"1")).await;
    assert_eq!(apply(ledger, &record, &success(b"1")).await, first);
    let unseen = Owner { seen: None, ..Owner::of(&record) };
    assert_eq!(apply_as(ledger, &unseen, &success(b"1")).await, first);
    assert!(history(ledger, &record.id).await.evidence.is_empty(), "it is not evidence against itself");
}

/// An answer says what the ledger's clock is, so that its caller knows how long the outcome is kept.
pub async fn a_replay_says_what_the_clock_is(ledger: &dyn Ledger) {
    let request = request();
    let settled = apply(ledger, &win(ledger, &request).await, &success(b"1")).await;
    let settled_at = settled.outcome.map_or(i64::MAX, |outcome| outcome.settled_at);
    let mut earlier = settled_at;
    for _ in 0..2 {
        let Claim::Settled { now, .. } = claim(ledger, &again(&request)).await else {
            panic!("it is stored")
        };
        assert!(now >= earlier && now - settled_at < LONG_MS, "settled at {settled_at}, and it is {now}");
        earlier = now;
    }
}

/// A payload is bytes: empty, with NUL, not UTF-8, a mebibyte.
pub async fn any_bytes_come_back_as_they_were(ledger: &dyn Ledger) {
    let every: Vec<u8> = (0..=u8::MAX).collect();
    let large: Vec<u8> = every.iter().copied().cycle().take(1 << 20).collect();
    for bytes in [vec![], vec![0], every, large] {
        let request = request();
        let record = win(ledger, &request).await;
        apply(ledger, &record, &success(&bytes)).await;
        let Claim::Settled { record: replay, .. } = claim(ledger, &again(&request)).await else {
            panic!("it is stored")
        };
        let body = replay.outcome.clone().map(|outcome| outcome.body);
        // Not `assert_eq`, which would print a mebibyte.
        assert!(body == Some(payload(&bytes)), "{} bytes come back", bytes.len());
    }
}

/// An outcome without a payload says why there is none.
pub async fn an_absent_payload_keeps_its_reason(ledger: &dyn Ledger) {
    for reason in [AbsentReason::Unencodable, AbsentReason::TooLarge] {
        let request = request();
        let record = win(ledger, &request).await;
        let change = settle(OutcomeKind::Success, OutcomeBody::Absent(reason), false, LONG_MS);
        apply(ledger, &record, &change).await;
        let Claim::Settled { record: replay, .. } = claim(ledger, &again(&request)).await else {
            panic!("it is stored")
        };
        assert_eq!(replay.outcome.clone().map(|outcome| outcome.body), Some(OutcomeBody::Absent(reason)));
    }
    let request = request();
    let record = win(ledger, &request).await;
    let dropped = settle(OutcomeKind::Success, OutcomeBody::Absent(AbsentReason::Expired), false, LONG_MS);
    apply(ledger, &record, &dropped).await;
    assert!(matches!(claim(ledger, &again(&request)).await, Claim::Expired));
}

/// The provider's final refusal is stored and replayed like a success, with its mark of a provider's replay.
pub async fn a_refusal_is_an_outcome(ledger: &dyn Ledger) {
    let request = request();
    let record = win(ledger, &request).await;
    let Change::Settle { ended, kind, body, conclusive, retain_ms, .. } = refusal(false) else {
        unreachable!()
    };
    let change = Change::Settle { ended, kind, body, provider_replay: true, conclusive, retain_ms };
    apply(ledger, &record, &change).await;
    let Claim::Settled { record: replay, .. } = claim(ledger, &again(&request)).await else {
        panic!("it is stored")
    };
    let outcome = replay.outcome.clone().expect("an outcome");
    assert_eq!((outcome.kind, outcome.provider_replay), (OutcomeKind::Refusal, true));
    assert_eq!(replay.end.as_ref().map(|end| end.verdict), Some(AttemptVerdict::Refused));
}

/// Once stored, an outcome stays: no later end, label, handle, renewal or other answer of its owner changes it.
pub async fn an_outcome_is_not_changed_by_what_comes_later(ledger: &dyn Ledger) {
    let record = win(ledger, &request()).await;
    let settled = apply(ledger, &record, &success(b"1")).await;
    let later = [
        success(b"2"),
        refusal(true),
        end(AttemptVerdict::NotPerformed),
        Change::Label,
        Change::Renew { lease_ms: LONG_MS },
        Change::Accept { handle: "job-1".to_owned(), poll_after_ms: 0 },
    ];
    for owner in [Owner::of(&record), Owner::of(&settled)] {
        for change in &later {
            ledger.change(&owner, change).await.expect("a change is answered");
            assert_eq!(history(ledger, &record.id).await.effect, settled, "{change:?}");
        }
    }
}

/// An outcome that is to be kept for ever is kept, and does not reach beyond the end of time.
pub async fn an_outcome_may_be_kept_for_ever(ledger: &dyn Ledger) {
    let request = request();
    let record = win(ledger, &request).await;
    let settled = apply(ledger, &record, &settle(OutcomeKind::Success, payload(b"1"), false, i64::MAX)).await;
    assert_eq!(settled.outcome.map(|outcome| outcome.retain_until), Some(i64::MAX));
    assert!(matches!(claim(ledger, &again(&request)).await, Claim::Settled { .. }));
}
