//! Keeping and forgetting. A ledger that does not sweep owes nothing here.

use std::pin::Pin;

use super::support::{
    LONG_MS, again, apply, argument, claim, end, history, join_all, payload, refusal, request, settle, short,
    stale, success, win,
};
use crate::{
    Ledger, LedgerErrorKind,
    descriptor::RecoveryClass,
    identity::RunId,
    ledger::{
        By, Change, Claim, ClaimRequest, EffectRecord, Forgot, Owner, Sweep, Swept,
        audit::OperatorAction,
        identities::{Further, Identities},
        record::{AbsentReason, AttemptVerdict, OutcomeBody, OutcomeKind, Place, State},
    },
};

/// Longer ago than what a ledger in use has of its own.
const AGES_MS: i64 = 20 * 365 * 86_400_000;

const OUTCOMES: Sweep = Sweep::Outcomes { at_most: 100 };

/// Tombstones of half that age.
const TOMBSTONES: Sweep = Sweep::Tombstones { at_most: 100, kept_ms: AGES_MS / 2 };

fn by() -> By {
    By::new("the privacy job", "asked for by the customer").expect("a name and a reason")
}

/// A success whose retention ended that long ago.
fn long_past(bytes: &[u8], ago_ms: i64) -> Change {
    settle(OutcomeKind::Success, payload(bytes), true, -ago_ms)
}

async fn sweep(ledger: &dyn Ledger, batch: Sweep) -> Swept {
    ledger.sweep(batch).await.expect("a sweep is answered")
}

/// Sweeps until nothing more is due; `false` where the ledger does not sweep.
async fn sweep_all(ledger: &dyn Ledger, batch: Sweep) -> bool {
    loop {
        match ledger.sweep(batch).await {
            Ok(Swept { more: false, .. }) => return true,
            Ok(_) => {}
            Err(error) if error.kind() == LedgerErrorKind::Unsupported => return false,
            Err(error) => panic!("a sweep is answered: {error}"),
        }
    }
}

fn is_tombstone(record: &EffectRecord) -> bool {
    record.outcome.as_ref().is_some_and(|outcome| outcome.body == OutcomeBody::Absent(AbsentReason::Expired))
}

fn settled_at(record: &EffectRecord) -> Option<i64> {
    record.outcome.as_ref().map(|outcome| outcome.settled_at)
}

/// Its content goes, and everything else stays; calls get what they got before the sweep.
pub async fn what_is_past_its_retention_becomes_a_tombstone(ledger: &dyn Ledger) {
    let too_large = OutcomeBody::Absent(AbsentReason::TooLarge);
    let changes = [
        long_past(b"\"secret\"", AGES_MS),
        long_past(b"", 0),
        settle(OutcomeKind::Refusal, payload(b"\"no\""), true, -1),
        settle(OutcomeKind::Success, too_large, true, -1),
    ];
    for change in changes {
        let request = request();
        let before = apply(ledger, &win(ledger, &request).await, &change).await;
        assert!(matches!(claim(ledger, &again(&request)).await, Claim::Expired));
        if !sweep_all(ledger, OUTCOMES).await {
            return;
        }
        let after = history(ledger, &request.id).await.effect;
        let mut expected = EffectRecord { readable: None, revision: before.revision + 1, ..before };
        expected.outcome.iter_mut().for_each(|kept| kept.body = OutcomeBody::Absent(AbsentReason::Expired));
        assert_eq!(after, expected);
        assert!(matches!(claim(ledger, &again(&request)).await, Claim::Expired));
        let other = ClaimRequest { fingerprints: [argument("amount", 2)].into(), ..again(&request) };
        assert!(matches!(claim(ledger, &other).await, Claim::Mismatch { .. }), "it is still compared");
        assert!(sweep_all(ledger, OUTCOMES).await);
        assert_eq!(history(ledger, &request.id).await.effect, after, "once is enough");
    }
}

/// An outcome stays readable until its own retention ends.
pub async fn what_is_within_its_retention_is_kept(ledger: &dyn Ledger) {
    for change in [success(b"1"), refusal(true), settle(OutcomeKind::Success, payload(b"1"), true, i64::MAX)]
    {
        let request = request();
        let settled = apply(ledger, &win(ledger, &request).await, &change).await;
        if !sweep_all(ledger, OUTCOMES).await || !sweep_all(ledger, TOMBSTONES).await {
            return;
        }
        assert_eq!(history(ledger, &request.id).await.effect, settled);
        assert!(matches!(claim(ledger, &again(&request)).await, Claim::Settled { .. }));
    }
}

/// Claimed, released, escaped: however long ago, nobody but a call may end it.
pub async fn an_effect_without_an_outcome_is_never_swept(ledger: &dyn Ledger) {
    let claimed = win(ledger, &short(RecoveryClass::Hold)).await;
    let released = win(ledger, &request()).await;
    let released = apply(ledger, &released, &end(AttemptVerdict::NotPerformed)).await;
    let escaped = win(ledger, &request()).await;
    let escaped = apply(ledger, &escaped, &end(AttemptVerdict::Unknown)).await;
    for batch in [OUTCOMES, TOMBSTONES, Sweep::Tombstones { at_most: 100, kept_ms: AGES_MS }] {
        if !sweep_all(ledger, batch).await {
            return;
        }
    }
    for (record, state) in [(claimed, State::Claimed), (released, State::Released), (escaped, State::Escaped)]
    {
        assert_eq!(record.state, state);
        assert_eq!(history(ledger, &record.id).await.effect, record);
        let forgot = ledger.forget(&record.id, &by()).await;
        assert_eq!(forgot.expect("an answer"), Forgot::Unsettled);
        assert_eq!(history(ledger, &record.id).await.effect, record);
    }
}

/// A batch is bounded, and says whether there is more.
pub async fn a_batch_takes_no_more_than_it_may_and_the_oldest_first(ledger: &dyn Ledger) {
    if !sweep_all(ledger, OUTCOMES).await {
        return;
    }
    let mut ids = Vec::new();
    for year in 0..3 {
        let record = win(ledger, &request()).await;
        apply(ledger, &record, &long_past(b"1", AGES_MS - year)).await;
        ids.push(record.id);
    }
    let one = Sweep::Outcomes { at_most: 1 };
    for swept in 1..=3 {
        let done = sweep(ledger, one).await;
        assert_eq!((done.effects, done.more || swept == 3), (1, true));
        let mut tombstones = Vec::new();
        for id in &ids {
            tombstones.push(is_tombstone(&history(ledger, id).await.effect));
        }
        let expected: Vec<_> = (0..3).map(|place| place < swept).collect();
        assert_eq!(tombstones, expected, "after {swept} batches of one");
    }
}

/// The payload of evidence is content too, also where it comes after the forgetting.
pub async fn evidence_is_forgotten_with_its_effect_and_does_not_come_back(ledger: &dyn Ledger) {
    let request = short(RecoveryClass::Rerun);
    let first = win(ledger, &request).await;
    let Claim::Won { record: second, .. } = super::support::claim_after_lease(ledger, &again(&request)).await
    else {
        panic!("taken over")
    };
    apply(ledger, &second, &long_past(b"2", AGES_MS)).await;
    stale(ledger, &Owner::of(&first), &success(b"1")).await;
    assert!(history(ledger, &first.id).await.evidence[0].payload.is_some());
    if !sweep_all(ledger, OUTCOMES).await {
        return;
    }
    stale(ledger, &Owner { seen: None, ..Owner::of(&first) }, &refusal(false)).await;
    let evidence = history(ledger, &first.id).await.evidence;
    let kept: Vec<_> = evidence.iter().map(|evidence| (evidence.verdict, evidence.payload.clone())).collect();
    assert_eq!(kept, [(AttemptVerdict::Performed, None), (AttemptVerdict::Refused, None)]);
}

/// An effect with everything that can hang on it: attempts, a touch, evidence, an alias, an audited tombstone.
async fn with_everything(ledger: &dyn Ledger) -> Option<(ClaimRequest, ClaimRequest)> {
    let mut first = short(RecoveryClass::Rerun);
    first.fingerprints = [argument("order", 1), argument("line", 1)].into();
    let attempt = win(ledger, &first).await;
    let place = Place { run: RunId::parse("conformance/run-of-the-second").ok(), ..Place::default() };
    let Claim::Won { record, .. } = super::support::claim_after_lease(ledger, &again(&first)).await else {
        panic!("taken over")
    };
    apply(ledger, &record, &long_past(b"2", AGES_MS)).await;
    stale(ledger, &Owner::of(&attempt), &success(b"1")).await;
    let further = vec![Further { id: first.id.clone(), key_version: 1 }];
    let key_fields = vec!["order".to_owned(), "line".to_owned()];
    let second = ClaimRequest {
        key_version: 2,
        identities: Identities { further, key_fields },
        fingerprints: first.fingerprints.clone(),
        place,
        ..request()
    };
    assert!(matches!(claim(ledger, &second).await, Claim::Expired));
    match ledger.forget(&second.id, &by()).await {
        Ok(forgot) => assert_eq!(forgot, Forgot::Forgotten, "found by its further identity"),
        Err(error) if error.kind() == LedgerErrorKind::Unsupported => return None,
        Err(error) => panic!("forgetting is answered: {error}"),
    }
    Some((first, second))
}

/// A removed tombstone is as if its effect had never been, under each of its identities.
pub async fn a_removed_tombstone_leaves_nothing_behind(ledger: &dyn Ledger) {
    for under in [0, 1] {
        let Some((first, second)) = with_everything(ledger).await else { return };
        assert!(sweep_all(ledger, TOMBSTONES).await);
        for id in [&first.id, &second.id] {
            assert_eq!(ledger.read(id).await.expect("an answer"), None);
        }
        let anew = [again(&first), again(&second)][under].clone();
        let record = win(ledger, &anew).await;
        assert_eq!((record.attempt, record.fence, record.revision), (1, 1, 1));
        let kept = history(ledger, &record.id).await;
        assert_eq!((kept.closed.len(), kept.evidence.len()), (0, 0));
    }
}

/// The tombstone's own retention counts from the end of the outcome's.
pub async fn a_tombstone_is_kept_for_as_long_as_is_said(ledger: &dyn Ledger) {
    let request = request();
    apply(ledger, &win(ledger, &request).await, &long_past(b"1", AGES_MS)).await;
    // What is not swept yet is no tombstone, however old.
    if !sweep_all(ledger, TOMBSTONES).await {
        return;
    }
    assert!(!is_tombstone(&history(ledger, &request.id).await.effect));
    assert!(sweep_all(ledger, OUTCOMES).await);
    assert!(sweep_all(ledger, Sweep::Tombstones { at_most: 100, kept_ms: AGES_MS + LONG_MS }).await);
    assert!(is_tombstone(&history(ledger, &request.id).await.effect), "not yet");
    assert!(sweep_all(ledger, Sweep::Tombstones { at_most: 100, kept_ms: AGES_MS }).await);
    assert_eq!(ledger.read(&request.id).await.expect("an answer"), None);
}

/// Forgetting one effect answers what it came to, and later calls are told `Expired`.
pub async fn one_effect_is_forgotten_before_its_time(ledger: &dyn Ledger) {
    let request = request();
    let by = by();
    let forget = || ledger.forget(&request.id, &by);
    match forget().await {
        Ok(forgot) => assert_eq!(forgot, Forgot::NotFound),
        Err(error) if error.kind() == LedgerErrorKind::Unsupported => return,
        Err(error) => panic!("forgetting is answered: {error}"),
    }
    let won = win(ledger, &request).await;
    assert_eq!(forget().await.expect("an answer"), Forgot::Unsettled);
    let settled = apply(ledger, &won, &success(b"\"secret\"")).await;
    assert_eq!(forget().await.expect("an answer"), Forgot::Forgotten);
    let kept = history(ledger, &request.id).await;
    let audit = &kept.audit[0];
    assert_eq!((audit.who.as_str(), audit.action), ("the privacy job", OperatorAction::Forgotten));
    assert_eq!((audit.before.state, audit.before.outcome), (State::Completed, Some(OutcomeKind::Success)));
    let row = kept.effect;
    assert!(is_tombstone(&row) && row.readable.is_none());
    assert_eq!((&row.fingerprints, settled_at(&row)), (&settled.fingerprints, settled_at(&settled)));
    assert_eq!(forget().await.expect("an answer"), Forgot::Already);
    assert!(matches!(claim(ledger, &again(&request)).await, Claim::Expired));
    // Its owner did not hear of its settle: the answer is gone, and nothing is performed.
    let repeated = apply(ledger, &won, &success(b"\"secret\"")).await;
    assert!(is_tombstone(&repeated));
}

type Doing<'a> = Pin<Box<dyn Future<Output = Option<State>> + Send + 'a>>;

/// Sweeps beside claims and settles: each effect is claimed, settled, swept and removed, and never performed twice by one claim.
pub async fn sweeps_and_claims_at_once_disturb_nobody(ledger: &dyn Ledger) {
    if !sweep_all(ledger, OUTCOMES).await {
        return;
    }
    let requests: Vec<_> = (0..24).map(|_| request()).collect();
    let lives = requests.iter().map(|request| {
        Box::pin(async move {
            let record = win(ledger, request).await;
            let settled = ledger.change(&Owner::of(&record), &long_past(b"1", AGES_MS)).await;
            settled.expect("a settle is answered");
            match claim(ledger, &again(request)).await {
                Claim::Expired => Some(State::Completed),
                // Removed by then, and so claimed anew.
                Claim::Won { record, .. } if record.attempt == 1 && record.fence == 1 => Some(record.state),
                other => panic!("neither expired nor new: {other:?}"),
            }
        }) as Doing<'_>
    });
    let sweeps = (0..16).map(|number| {
        Box::pin(async move {
            let batch = if number % 2 == 0 { OUTCOMES } else { TOMBSTONES };
            sweep(ledger, batch).await;
            None
        }) as Doing<'_>
    });
    let ended = join_all(lives.chain(sweeps).collect()).await;
    assert_eq!(ended.iter().flatten().count(), requests.len());
    assert!(sweep_all(ledger, OUTCOMES).await && sweep_all(ledger, TOMBSTONES).await);
    for (request, ended) in requests.iter().zip(ended.into_iter().flatten()) {
        let row = ledger.read(&request.id).await.expect("an answer");
        assert_eq!(row.is_some(), ended == State::Claimed, "only what was claimed anew is still there");
    }
}
