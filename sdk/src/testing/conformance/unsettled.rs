//! Effects without an outcome, page by page.

use super::support::{
    LONG_MS, apply, apply_as, claim, end, ended, history, lease_ended, now, request, short, success, token,
    win,
};
use crate::{
    Ledger,
    descriptor::RecoveryClass,
    ledger::{
        Change, Claim, ClaimRequest, EffectRecord, Owner, Payload, Unsettled, UnsettledCursor,
        UnsettledQuery,
        record::{AttemptVerdict, State},
    },
};

/// Everything that the pages list from this effect on, in pages of `limit`.
async fn listed(ledger: &dyn Ledger, due_only: bool, limit: u32, from: &EffectRecord) -> Vec<Unsettled> {
    let mut after = Some(UnsettledCursor { digest: [0; 32], ..UnsettledCursor::of(from) });
    let mut listed = Vec::new();
    loop {
        let query = UnsettledQuery { due_only, after, limit };
        let page = ledger.unsettled(&query).await.expect("a page");
        assert!(
            page.effects.len() <= usize::try_from(limit).expect("a small number"),
            "a page keeps its limit"
        );
        listed.extend(page.effects);
        match page.next {
            Some(next) => {
                assert!(after < Some(next), "a page goes on");
                after = Some(next);
            }
            None => return listed,
        }
    }
}

async fn is_due(ledger: &dyn Ledger, record: &EffectRecord) -> bool {
    listed(ledger, true, 50, record).await.iter().any(|listed| listed.id() == &record.id)
}

async fn is_listed(ledger: &dyn Ledger, record: &EffectRecord) -> bool {
    listed(ledger, false, 50, record).await.iter().any(|listed| listed.id() == &record.id)
}

fn with_input() -> ClaimRequest {
    let input = Some(Payload { codec: "json/1".into(), bytes: vec![0, 159, 255] });
    ClaimRequest { input, ..short(RecoveryClass::Rerun) }
}

/// Pages list each effect without an outcome once, oldest first and as its row is, whatever their size.
pub async fn pages_list_every_unsettled_effect_once(ledger: &dyn Ledger) {
    let mut made = Vec::new();
    for number in 0..7 {
        let class = if number % 2 == 0 { RecoveryClass::Hold } else { RecoveryClass::Rerun };
        let record = win(ledger, &ClaimRequest { class, ..request() }).await;
        // Some in each state without an outcome.
        made.push(match number % 3 {
            0 => record,
            1 => apply(ledger, &record, &end(AttemptVerdict::Unknown)).await,
            _ => apply(ledger, &record, &end(AttemptVerdict::NotPerformed)).await,
        });
    }
    let settled = win(ledger, &request()).await;
    apply(ledger, &settled, &success(b"1")).await;
    made.sort_by_key(UnsettledCursor::of);
    for limit in [1, 3, 100] {
        let all = listed(ledger, false, limit, &made[0]).await;
        let cursors: Vec<_> = all.iter().map(|listed| UnsettledCursor::of(&listed.effect)).collect();
        assert!(cursors.is_sorted_by(|one, next| one < next), "in their order, each once");
        let ours: Vec<_> = all
            .into_iter()
            .map(|listed| listed.effect)
            .filter(|listed| listed.id == settled.id || made.iter().any(|made| made.id == listed.id))
            .collect();
        assert_eq!(ours, made, "in pages of {limit}");
    }
}

/// A claim is due once its lease has ended, a settled effect never.
pub async fn a_claim_is_due_when_its_lease_has_ended(ledger: &dyn Ledger) {
    let live = win(ledger, &request()).await;
    assert!(!is_due(ledger, &live).await && is_listed(ledger, &live).await);
    let left = win(ledger, &short(RecoveryClass::Hold)).await;
    lease_ended(ledger, &left).await;
    assert!(is_due(ledger, &left).await, "also under `hold`: its doubt is to be made visible");
    apply(ledger, &left, &success(b"1")).await;
    assert!(!is_due(ledger, &left).await && !is_listed(ledger, &left).await);
}

/// A doubt under `hold` waits for an operator, any other is due: not before its lease ends, nor before a delay.
pub async fn a_doubt_is_due_unless_it_is_held(ledger: &dyn Ledger) {
    let held = win(ledger, &request()).await;
    let held = apply(ledger, &held, &end(AttemptVerdict::Unknown)).await;
    assert!(!is_due(ledger, &held).await && is_listed(ledger, &held).await);
    let asked = win(ledger, &ClaimRequest { class: RecoveryClass::Reconcile, ..request() }).await;
    let labelled = apply(ledger, &asked, &Change::Label).await;
    assert!(!is_due(ledger, &labelled).await, "its lease still runs");
    let ended_now = apply(ledger, &asked, &end(AttemptVerdict::Unknown)).await;
    assert!(is_due(ledger, &ended_now).await);
    let waits = win(ledger, &ClaimRequest { class: RecoveryClass::Reconcile, ..request() }).await;
    let later = Change::End {
        ended: ended(AttemptVerdict::Unknown),
        keep_claim: false,
        not_before_ms: Some(LONG_MS),
    };
    let waits = apply(ledger, &waits, &later).await;
    assert!(!is_due(ledger, &waits).await && is_listed(ledger, &waits).await);
}

/// A released effect is due where its arguments are stored; they come back as they were.
pub async fn a_released_effect_is_due_where_its_arguments_are_stored(ledger: &dyn Ledger) {
    for asked in [with_input(), request()] {
        let record = win(ledger, &asked).await;
        let record = apply(ledger, &record, &end(AttemptVerdict::NotPerformed)).await;
        assert_eq!(is_due(ledger, &record).await, asked.input.is_some());
        let all = listed(ledger, false, 50, &record).await;
        let listed = all.iter().find(|listed| listed.id() == &record.id).expect("it is listed");
        assert_eq!((&listed.effect, listed.has_input), (&record, asked.input.is_some()));
        assert_eq!(ledger.input(&record.id).await.expect("an answer"), asked.input);
        let other = ClaimRequest { token: token(), input: None, ..asked.clone() };
        let Claim::Won { .. } = claim(ledger, &other).await else { panic!("released") };
        assert_eq!(ledger.input(&record.id).await.expect("an answer"), asked.input, "kept by later attempts");
    }
    assert_eq!(ledger.input(&request().id).await.expect("an answer"), None);
}

/// An accepted effect is due when it is worth asking, whatever its class.
pub async fn an_accepted_effect_is_due_when_it_is_to_be_asked(ledger: &dyn Ledger) {
    for (poll_after_ms, due) in [(0, true), (LONG_MS, false)] {
        let record = win(ledger, &request()).await;
        let accept = Change::Accept { handle: "job-1".to_owned(), poll_after_ms };
        let record = apply(ledger, &record, &accept).await;
        let record = apply(ledger, &record, &end(AttemptVerdict::Unknown)).await;
        assert_eq!((record.state, record.class), (State::Escaped, RecoveryClass::Hold));
        assert_eq!(is_due(ledger, &record).await, due);
        assert!(is_listed(ledger, &record).await);
    }
}

/// Who cannot perform an effect opens no attempt: what became of it is labelled, and a doubt is looked up where it can be.
pub async fn who_cannot_perform_opens_no_attempt(ledger: &dyn Ledger) {
    let cannot = |request: &ClaimRequest| ClaimRequest {
        can_perform: false,
        resend_window_ms: Some(LONG_MS),
        token: token(),
        lease_ms: LONG_MS,
        ..request.clone()
    };
    for class in [RecoveryClass::Rerun, RecoveryClass::Resend, RecoveryClass::Reconcile] {
        let request = short(class);
        let record = win(ledger, &request).await;
        lease_ended(ledger, &record).await;
        let Claim::Escaped(labelled) = claim(ledger, &cannot(&request)).await else { panic!("{class:?}") };
        assert_eq!((labelled.state, labelled.attempt, labelled.fence), (State::Escaped, 1, 1), "{class:?}");
    }
    let request = short(RecoveryClass::Resend);
    let record = win(ledger, &request).await;
    lease_ended(ledger, &record).await;
    let curious = ClaimRequest { can_look_up: true, ..cannot(&request) };
    let Claim::Won { record, task } = claim(ledger, &curious).await else {
        panic!("a look-up is no sending")
    };
    assert_eq!((task, record.attempt), (crate::ledger::Task::LookUp, 1));
    // A closed attempt that is known not to have performed it.
    let request = short(RecoveryClass::Hold);
    let record = win(ledger, &request).await;
    let closed =
        Change::End { ended: ended(AttemptVerdict::NotPerformed), keep_claim: true, not_before_ms: None };
    let record = apply(ledger, &record, &closed).await;
    lease_ended(ledger, &record).await;
    let Claim::Released(released) = claim(ledger, &cannot(&request)).await else { panic!("not performed") };
    assert_eq!((released.state, released.attempt), (State::Released, 1));
    assert_eq!(history(ledger, &record.id).await.effect, *released, "the label is stored");
}

/// A truthful look-up by who cannot perform it releases the effect, unless a late success says otherwise.
pub async fn what_is_found_absent_is_released(ledger: &dyn Ledger) {
    for late_success in [false, true] {
        let request = short(RecoveryClass::Reconcile);
        let first = win(ledger, &request).await;
        lease_ended(ledger, &first).await;
        let asks = ClaimRequest { token: token(), can_look_up: true, lease_ms: LONG_MS, ..request };
        let Claim::Won { record, .. } = claim(ledger, &asks).await else { panic!("to be looked up") };
        if late_success {
            drop(ledger.change(&Owner::of(&first), &success(b"1")).await.expect("kept as evidence"));
        }
        let changed = ledger.change(&Owner::of(&record), &Change::Clear).await.expect("an answer");
        let after = history(ledger, &record.id).await.effect;
        let expected = if late_success { State::Escaped } else { State::Released };
        assert_eq!((after.state, after.doubt.is_some()), (expected, late_success), "{changed:?}");
        assert!(after.lease_until <= now(ledger).await);
        if !late_success {
            let owner = Owner { seen: None, ..Owner::of(&record) };
            assert_eq!(apply_as(ledger, &owner, &Change::Clear).await, after, "its own change is recognised");
        }
    }
}

/// An accepted effect is asked about by one at a time, under a fence; when to ask again is stored.
pub async fn a_poll_is_a_claim(ledger: &dyn Ledger) {
    let request = ClaimRequest { can_poll: true, can_look_up: true, ..short(RecoveryClass::Rerun) };
    let first = win(ledger, &request).await;
    apply(ledger, &first, &Change::Accept { handle: "job-1".to_owned(), poll_after_ms: 0 }).await;
    lease_ended(ledger, &first).await;
    let asks = |lease_ms| ClaimRequest { token: token(), lease_ms, ..request.clone() };
    let blind = ClaimRequest { can_poll: false, ..asks(LONG_MS) };
    let Claim::Accepted { handle, delay_ms: 0 } = claim(ledger, &blind).await else { panic!("cannot ask") };
    assert_eq!(handle, "job-1");
    let poller = asks(LONG_MS);
    let Claim::Won { record, task: crate::ledger::Task::Poll } = claim(ledger, &poller).await else {
        panic!("to be asked")
    };
    assert_eq!((record.attempt, record.fence), (1, 2), "nothing is submitted again");
    let Claim::InFlight { .. } = claim(ledger, &asks(LONG_MS)).await else { panic!("one at a time") };
    let Claim::Won { task: crate::ledger::Task::Poll, .. } = claim(ledger, &poller).await else {
        panic!("its own token is recognised")
    };
    let later = apply(ledger, &record, &Change::Polled { poll_after_ms: LONG_MS }).await;
    assert_eq!(later.state, State::Escaped);
    let again = Owner { seen: None, ..Owner::of(&record) };
    assert_eq!(apply_as(ledger, &again, &Change::Polled { poll_after_ms: 0 }).await, later, "stored once");
    let Claim::Accepted { delay_ms, .. } = claim(ledger, &asks(LONG_MS)).await else { panic!("not yet") };
    assert!((1..=LONG_MS).contains(&delay_ms), "{delay_ms}");
    // Whoever answers for the handle settles, once.
    let settled = apply(ledger, &later, &success(b"7")).await;
    assert_eq!((settled.state, settled.doubt), (State::Completed, None));
}
