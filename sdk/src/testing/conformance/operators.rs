//! What operators decide: judged like every other write, and audited in the same one.

use std::{sync::Arc, time::Duration};

use super::support::{
    LONG_MS, SHORT_MS, again, apply, claim, end, ended, history, join_all, lease_ended, payload, refusal,
    request, short, stale, success, token, win, won,
};
use crate::{
    Ledger, clock,
    descriptor::RecoveryClass,
    ledger::{
        Change, Claim, ClaimRequest, Owner, ResolutionReply, ResolutionRequest, Task,
        audit::OperatorAction,
        record::{AttemptVerdict, EffectRecord, OutcomeBody, OutcomeKind, Payload, State},
        resolution::{Action, By, REASON_CODEC, Seen},
    },
};

fn by() -> By {
    By::new("ana (o'bé)", "looked at the provider: \"re_1\" 🙂").expect("who and why")
}

/// A request for what this row shows.
fn ask(record: &EffectRecord, action: Action) -> ResolutionRequest {
    let seen = Seen { fence: record.fence, attempt: record.attempt };
    ResolutionRequest { id: record.id.clone(), seen, token: token(), by: by(), action }
}

fn done() -> Action {
    Action::Done { body: payload(b"\"re_1\""), retain_ms: LONG_MS }
}

fn refused() -> Action {
    let reason = Payload { codec: REASON_CODEC.into(), bytes: b"no such card".to_vec() };
    Action::Refused { reason, settle_delay_ms: 0, retain_ms: LONG_MS, despite_evidence: false }
}

fn never_happened() -> Action {
    Action::NeverHappened { settle_delay_ms: 0, despite_evidence: false }
}

async fn resolve(ledger: &dyn Ledger, request: &ResolutionRequest) -> ResolutionReply {
    ledger.resolve(request).await.expect("a resolution is answered")
}

/// Resolves once that may be, and finds the row that it was told of.
async fn resolved(ledger: &dyn Ledger, request: &ResolutionRequest) -> EffectRecord {
    let mut reply = resolve(ledger, request).await;
    while let ResolutionReply::NotYet { delay_ms: 1 } = reply {
        clock::sleep(Duration::from_millis(1)).await;
        reply = resolve(ledger, request).await;
    }
    match reply {
        ResolutionReply::Applied(record) => {
            let stored = history(ledger, &record.id).await.effect;
            assert_eq!(stored, *record, "the row is the one that was told of");
            Arc::unwrap_or_clone(record)
        }
        reply => panic!("expected to be applied, got {reply:?}"),
    }
}

async fn actions(ledger: &dyn Ledger, record: &EffectRecord) -> Vec<OperatorAction> {
    history(ledger, &record.id).await.audit.iter().map(|entry| entry.action).collect()
}

/// An effect under `hold` whose attempt ended unknown, and cannot act any more.
async fn in_doubt(ledger: &dyn Ledger) -> (ClaimRequest, EffectRecord, EffectRecord) {
    let request = request();
    let record = win(ledger, &request).await;
    let escaped = apply(ledger, &record, &end(AttemptVerdict::Unknown)).await;
    assert_eq!(escaped.state, State::Escaped);
    (request, record, escaped)
}

/// "Done" is the outcome: it raises the fence and ends the doubt, every call replays it, and who, why, before and after are
/// in the audit.
pub async fn a_resolution_as_done_is_the_outcome(ledger: &dyn Ledger) {
    let (request, first, escaped) = in_doubt(ledger).await;
    let done = resolved(ledger, &ask(&escaped, done())).await;
    assert_eq!((done.state, done.fence, done.attempt), (State::Completed, first.fence + 1, 1));
    assert_eq!((done.doubt.as_ref(), done.double_suspected), (None, false));
    assert_eq!(
        done.end.as_ref().map(|end| (end.verdict, end.key_taken)),
        Some((AttemptVerdict::Performed, true))
    );
    let Claim::Settled { record: replay, .. } = claim(ledger, &again(&request)).await else {
        panic!("it is stored")
    };
    let outcome = replay.outcome.clone().expect("an outcome");
    assert_eq!((outcome.kind, outcome.body), (OutcomeKind::Success, payload(b"\"re_1\"")));
    let audit = history(ledger, &request.id).await.audit;
    let [entry] = audit.as_slice() else { panic!("one entry, not {audit:?}") };
    assert_eq!((&*entry.who, &*entry.why), ("ana (o'bé)", "looked at the provider: \"re_1\" 🙂"));
    assert_eq!((entry.action, entry.at), (OperatorAction::Done, outcome.settled_at));
    let before = (entry.before.state, entry.before.doubted_attempt, entry.before.doubt_class);
    assert_eq!(before, (State::Escaped, Some(1), Some(RecoveryClass::Hold)));
    assert_eq!((entry.after.state, entry.after.outcome), (State::Completed, Some(OutcomeKind::Success)));
}

/// "Refused" is a refusal with the operator's reason.
pub async fn a_resolution_as_refused_is_the_outcome(ledger: &dyn Ledger) {
    let (request, _, escaped) = in_doubt(ledger).await;
    let refused = resolved(ledger, &ask(&escaped, refused())).await;
    assert_eq!(refused.end.map(|end| end.verdict), Some(AttemptVerdict::Refused));
    let Claim::Settled { record: replay, .. } = claim(ledger, &again(&request)).await else {
        panic!("it is stored")
    };
    let outcome = replay.outcome.clone().expect("an outcome");
    let OutcomeBody::Payload(reason) = outcome.body else { panic!("the reason is stored") };
    assert_eq!((outcome.kind, &*reason.codec), (OutcomeKind::Refusal, REASON_CODEC));
    assert_eq!(reason.bytes, b"no such card");
}

/// "Never happened" releases the effect: the next claim performs it as a new attempt under the same provider key.
pub async fn what_never_happened_is_performed_by_the_next_claim(ledger: &dyn Ledger) {
    let (request, first, escaped) = in_doubt(ledger).await;
    let released = resolved(ledger, &ask(&escaped, never_happened())).await;
    assert_eq!(
        (released.state, released.fence, released.doubt.as_ref()),
        (State::Released, first.fence + 1, None)
    );
    let other_key = ClaimRequest { provider_key: "another".into(), ..again(&request) };
    let second = won(ledger, claim(ledger, &other_key).await, Task::Perform).await;
    assert_eq!((second.attempt, second.fence), (2, first.fence + 2));
    assert_eq!(second.provider_key, first.provider_key);
    let closed = history(ledger, &request.id).await.closed;
    assert_eq!(
        closed.iter().map(|closed| closed.end.verdict).collect::<Vec<_>>(),
        [AttemptVerdict::NotPerformed]
    );
    assert_eq!(actions(ledger, &first).await, [OperatorAction::NeverHappened]);
}

/// "Never happened" waits until no request of an attempt in doubt can arrive, and for the provider's settle delay; so does
/// "refused", which may be opened again.
pub async fn never_happened_waits_until_nothing_can_arrive(ledger: &dyn Ledger) {
    let record = win(ledger, &request()).await;
    let ended = crate::ledger::change::Ended { acts_for_ms: LONG_MS, ..ended(AttemptVerdict::Unknown) };
    let change = Change::End { ended, keep_claim: false, not_before_ms: None };
    let acting = apply(ledger, &record, &change).await;
    let (_, _, quiet) = in_doubt(ledger).await;
    let late = Action::NeverHappened { settle_delay_ms: LONG_MS, despite_evidence: true };
    for (record, action) in [(&acting, never_happened()), (&acting, refused()), (&quiet, late)] {
        let reply = resolve(ledger, &ask(record, action)).await;
        let ResolutionReply::NotYet { delay_ms } = reply else { panic!("not yet, got {reply:?}") };
        assert!((1..=LONG_MS + 1).contains(&delay_ms), "{delay_ms}");
        assert_eq!(history(ledger, &record.id).await.effect, *record, "nothing was changed");
    }
    let crashed = win(ledger, &short(RecoveryClass::Hold)).await;
    lease_ended(ledger, &crashed).await;
    let reply = resolve(ledger, &ask(&crashed, never_happened())).await;
    let ResolutionReply::NotYet { delay_ms } = reply else { panic!("its timeout runs, got {reply:?}") };
    assert!((1..=crashed.attempt_timeout_ms + 1).contains(&delay_ms), "{delay_ms}");
}

/// Nothing is resolved that is not in doubt, and no claim that may still act.
pub async fn only_what_is_in_doubt_is_resolved(ledger: &dyn Ledger) {
    let unknown = request();
    let live = win(ledger, &request()).await;
    let absent = EffectRecord { id: unknown.id, ..live.clone() };
    let labelled = win(ledger, &request()).await;
    let labelled = apply(ledger, &labelled, &Change::Label).await;
    let released = win(ledger, &request()).await;
    let released = apply(ledger, &released, &end(AttemptVerdict::NotPerformed)).await;
    let completed = win(ledger, &request()).await;
    let completed = apply(ledger, &completed, &refusal(true)).await;
    for action in [done(), refused(), never_happened()] {
        let reply = resolve(ledger, &ask(&absent, action.clone())).await;
        assert!(matches!(reply, ResolutionReply::Unknown), "{reply:?}");
        for record in [&live, &labelled] {
            let reply = resolve(ledger, &ask(record, action.clone())).await;
            let ResolutionReply::InFlight { lease_remaining_ms } = reply else {
                panic!("in flight: {reply:?}")
            };
            assert!((1..=LONG_MS).contains(&lease_remaining_ms), "{lease_remaining_ms}");
        }
        let reply = resolve(ledger, &ask(&released, action.clone())).await;
        assert!(matches!(reply, ResolutionReply::NotInDoubt), "{reply:?}");
        let reply = resolve(ledger, &ask(&completed, action)).await;
        assert!(matches!(reply, ResolutionReply::Settled), "{reply:?}");
    }
    for record in [&live, &labelled, &released, &completed] {
        let known = history(ledger, &record.id).await;
        assert_eq!((&known.effect, known.audit.len()), (record, 0), "nothing was changed");
    }
}

/// A claim whose executor is gone is resolved once its lease has ended, labelled or not; the executor's own answer is then
/// evidence.
pub async fn a_claim_whose_lease_ended_is_resolved(ledger: &dyn Ledger) {
    let record = win(ledger, &short(RecoveryClass::Reconcile)).await;
    lease_ended(ledger, &record).await;
    let done = resolved(ledger, &ask(&record, done())).await;
    assert_eq!((done.state, done.fence), (State::Completed, record.fence + 1));
    stale(ledger, &Owner::of(&record), &refusal(true)).await;
    let known = history(ledger, &record.id).await;
    assert_eq!((known.effect.outcome, known.evidence.len()), (done.outcome, 1));
}

/// What the provider accepted is resolved like what is in doubt; "never happened" forgets the handle.
pub async fn an_accepted_effect_is_resolved(ledger: &dyn Ledger) {
    for action in [done(), refused(), never_happened()] {
        let request = request();
        let record = win(ledger, &request).await;
        let accept = Change::Accept { handle: "job-1".to_owned(), poll_after_ms: LONG_MS };
        let accepted = apply(ledger, &record, &accept).await;
        let escaped = apply(ledger, &accepted, &end(AttemptVerdict::Unknown)).await;
        assert!(matches!(claim(ledger, &again(&request)).await, Claim::Accepted { .. }));
        let resolved = resolved(ledger, &ask(&escaped, action)).await;
        let next = claim(ledger, &again(&request)).await;
        if resolved.state == State::Released {
            assert_eq!(won(ledger, next, Task::Perform).await.accepted, None);
        } else {
            assert!(matches!(next, Claim::Settled { .. }), "{next:?}");
        }
        assert!(history(ledger, &record.id).await.audit[0].before.accepted);
    }
}

/// A request that is repeated after a lost acknowledgement finds its own token; one that judged an older row changes
/// nothing.
pub async fn a_resolution_finds_its_own_token(ledger: &dyn Ledger) {
    let (request, _, escaped) = in_doubt(ledger).await;
    let mine = ask(&escaped, never_happened());
    let released = resolved(ledger, &mine).await;
    assert_eq!(resolved(ledger, &mine).await, released, "the same answer, and nothing stored");
    let second = win(ledger, &again(&request)).await;
    let again_in_doubt = apply(ledger, &second, &end(AttemptVerdict::Unknown)).await;
    for stale in [&mine, &ask(&escaped, done())] {
        let reply = resolve(ledger, stale).await;
        assert!(matches!(reply, ResolutionReply::Moved), "{reply:?}");
    }
    assert_eq!(history(ledger, &request.id).await.effect, again_in_doubt);
    assert_eq!(actions(ledger, &escaped).await, [OperatorAction::NeverHappened]);
}

/// An attempt that says later that it performed is believed more than an operator who said that it never happened: the
/// effect is in doubt again, and only who says so opens it against the evidence.
pub async fn a_late_success_outweighs_never_happened(ledger: &dyn Ledger) {
    let (request, first, escaped) = in_doubt(ledger).await;
    resolved(ledger, &ask(&escaped, never_happened())).await;
    stale(ledger, &Owner::of(&first), &success(b"late")).await;
    let Claim::Escaped(doubted) = claim(ledger, &again(&request)).await else {
        panic!("it is not performed again")
    };
    assert!(doubted.late_success && doubted.doubt.is_some());
    for action in [never_happened(), refused()] {
        let reply = resolve(ledger, &ask(&doubted, action)).await;
        assert!(matches!(reply, ResolutionReply::AgainstEvidence), "{reply:?}");
    }
    let insisting = Action::NeverHappened { settle_delay_ms: 0, despite_evidence: true };
    resolved(ledger, &ask(&doubted, insisting)).await;
    let second = win(ledger, &again(&request)).await;
    let settled = apply(ledger, &second, &success(b"again")).await;
    assert!(settled.double_suspected, "two attempts say that they performed");
    let expected = [OperatorAction::NeverHappened, OperatorAction::NeverHappenedDespiteEvidence];
    assert_eq!(actions(ledger, &first).await, expected);
}

/// It also keeps an attempt that has begun in the meantime from passing for the only one.
pub async fn a_late_success_during_the_next_attempt_is_not_forgotten(ledger: &dyn Ledger) {
    let (request, first, escaped) = in_doubt(ledger).await;
    resolved(ledger, &ask(&escaped, never_happened())).await;
    let second = win(ledger, &again(&request)).await;
    stale(ledger, &Owner::of(&first), &success(b"late")).await;
    let ended = apply(ledger, &second, &end(AttemptVerdict::NotPerformed)).await;
    assert_eq!((ended.state, ended.doubt.map(|doubt| doubt.attempt)), (State::Escaped, Some(1)));
}

/// The late success of the attempt that an operator resolved as done is the same success, and not a second one.
pub async fn a_late_success_beside_done_is_the_same_success(ledger: &dyn Ledger) {
    let (_, first, escaped) = in_doubt(ledger).await;
    let done = resolved(ledger, &ask(&escaped, done())).await;
    stale(ledger, &Owner::of(&first), &success(b"late")).await;
    let known = history(ledger, &first.id).await.effect;
    assert_eq!((known.late_success, known.double_suspected, known.outcome), (true, false, done.outcome));
}

/// A stored refusal, the provider's or an operator's, is opened again and kept as evidence; a success never is.
pub async fn a_refusal_is_opened_again(ledger: &dyn Ledger) {
    let request = request();
    let first = win(ledger, &request).await;
    let declined = apply(ledger, &first, &refusal(true)).await;
    let reopened = resolved(ledger, &ask(&declined, Action::Reopen)).await;
    assert_eq!((reopened.state, reopened.outcome.as_ref()), (State::Released, None));
    let known = history(ledger, &request.id).await;
    let kept = known.evidence[0].payload.clone().map(OutcomeBody::Payload);
    assert_eq!(kept, declined.outcome.map(|outcome| outcome.body), "the refusal is kept");
    let second = won(ledger, claim(ledger, &again(&request)).await, Task::Perform).await;
    assert_eq!((second.attempt, &second.provider_key), (2, &first.provider_key));
    let performed = apply(ledger, &second, &success(b"1")).await;
    for record in [&performed, &win(ledger, &super::support::request()).await] {
        let reply = resolve(ledger, &ask(record, Action::Reopen)).await;
        assert!(matches!(reply, ResolutionReply::NotARefusal), "{reply:?}");
    }
    assert_eq!(actions(ledger, &first).await, [OperatorAction::Reopened]);
}

/// Of many operators at once one resolves, and there is one entry in the audit; of an operator and a caller one is first.
pub async fn of_16_resolutions_at_once_one_is_stored(ledger: &dyn Ledger) {
    let (_, _, escaped) = in_doubt(ledger).await;
    let requests: Vec<_> = (0..16).map(|_| ask(&escaped, done())).collect();
    let replies = join_all(requests.iter().map(|request| ledger.resolve(request)).collect()).await;
    let applied = |reply: &&Result<ResolutionReply, _>| matches!(reply, Ok(ResolutionReply::Applied(_)));
    assert_eq!(replies.iter().filter(applied).count(), 1, "{replies:?}");
    assert_eq!(actions(ledger, &escaped).await.len(), 1);

    let request = ClaimRequest { lease_ms: SHORT_MS, ..short(RecoveryClass::Rerun) };
    let first = win(ledger, &request).await;
    lease_ended(ledger, &first).await;
    let (asked, caller) = (ask(&first, done()), again(&request));
    let (reply, claim) = tokio::join!(ledger.resolve(&asked), ledger.claim(&caller));
    let resolved = matches!(reply, Ok(ResolutionReply::Applied(_)));
    let taken_over = matches!(claim, Ok(Claim::Won { .. }));
    assert!(resolved != taken_over, "one of {reply:?} and {claim:?}");
}
