//! What the rules are written with.

use std::{future::poll_fn, pin::Pin, sync::Arc, task::Poll, time::Duration};

use crate::{
    Ledger,
    clock::{self, Moment, Until},
    descriptor::{Keying, RecoveryClass},
    identity::{ArgumentDigest, EffectId, Tenant},
    ledger::{
        Change, Changed, Claim, ClaimRequest, EffectHistory, Owner, Task,
        change::Ended,
        record::{
            AttemptToken, AttemptVerdict, EffectRecord, LedgerTime, OutcomeBody, OutcomeKind, Payload, Place,
        },
    },
};

/// A lease that a rule lets run out.
pub(super) const SHORT_MS: i64 = 40;

/// Longer than any rule takes.
pub(super) const LONG_MS: i64 = 600_000;

/// For how long a rule waits for something that must happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// A claim for an effect of its own, with a long lease and class `hold`.
pub(super) fn request() -> ClaimRequest {
    let tenant = Tenant::parse("conformance").expect("a valid tenant");
    let digest = *blake3::hash(uuid::Uuid::new_v4().as_bytes()).as_bytes();
    ClaimRequest {
        id: EffectId::new(tenant, digest),
        operation: "refund-order".into(),
        keying: Keying::BusinessIdentity,
        key_version: 1,
        identities: crate::ledger::identities::Identities::default(),
        readable: Some("order=…1042".into()),
        provider: None,
        provider_key: uuid::Uuid::new_v4().simple().to_string().into(),
        fingerprints: [argument("amount", 1)].into(),
        input: None,
        class: RecoveryClass::Hold,
        can_perform: true,
        can_look_up: false,
        can_poll: false,
        resend_window_ms: None,
        resend_quiet_ms: None,
        token: token(),
        lease_ms: LONG_MS,
        attempt_timeout_ms: 1_000,
        place: Place::default(),
    }
}

/// The same with another class and a lease that runs out.
pub(super) fn short(class: RecoveryClass) -> ClaimRequest {
    ClaimRequest { class, lease_ms: SHORT_MS, ..request() }
}

/// The same call made by somebody else, with a long lease.
pub(super) fn again(request: &ClaimRequest) -> ClaimRequest {
    ClaimRequest { token: token(), lease_ms: LONG_MS, ..request.clone() }
}

pub(super) fn token() -> AttemptToken {
    AttemptToken(*uuid::Uuid::new_v4().as_bytes())
}

pub(super) fn argument(name: &'static str, value: u8) -> ArgumentDigest {
    ArgumentDigest { name: name.into(), digest: [value; 32], key_id: None }
}

pub(super) fn ended(verdict: AttemptVerdict) -> Ended {
    Ended {
        verdict,
        class: None,
        send_digest: None,
        key_taken: true,
        first_send_ago_ms: Some(1),
        acts_for_ms: 0,
    }
}

pub(super) fn end(verdict: AttemptVerdict) -> Change {
    Change::End { ended: ended(verdict), keep_claim: false, not_before_ms: None }
}

pub(super) fn payload(bytes: &[u8]) -> OutcomeBody {
    OutcomeBody::Payload(Payload { codec: "json/1".into(), bytes: bytes.to_vec() })
}

/// A success with this payload, kept for long.
pub(super) fn success(bytes: &[u8]) -> Change {
    settle(OutcomeKind::Success, payload(bytes), false, LONG_MS)
}

pub(super) fn refusal(conclusive: bool) -> Change {
    settle(OutcomeKind::Refusal, payload(b"\"card declined\""), conclusive, LONG_MS)
}

pub(super) fn settle(kind: OutcomeKind, body: OutcomeBody, conclusive: bool, retain_ms: i64) -> Change {
    let verdict = match kind {
        OutcomeKind::Success => AttemptVerdict::Performed,
        OutcomeKind::Refusal => AttemptVerdict::Refused,
    };
    Change::Settle { ended: ended(verdict), kind, body, provider_replay: false, conclusive, retain_ms }
}

pub(super) async fn claim(ledger: &dyn Ledger, request: &ClaimRequest) -> Claim {
    ledger.claim(request).await.expect("a claim is answered")
}

/// Claims, wins, and finds the row that it was told of.
pub(super) async fn win(ledger: &dyn Ledger, request: &ClaimRequest) -> EffectRecord {
    won(ledger, claim(ledger, request).await, Task::Perform).await
}

/// The row of a claim that won `expected`, as told and as stored.
pub(super) async fn won(ledger: &dyn Ledger, claim: Claim, expected: Task) -> EffectRecord {
    let Claim::Won { record, task } = claim else { panic!("expected to win, got {claim:?}") };
    assert_eq!(task, expected, "the winner's task");
    assert_eq!(history(ledger, &record.id).await.effect, *record, "the row is the one that was told of");
    Arc::unwrap_or_clone(record)
}

/// Claims until the answer is not "in flight" any more.
pub(super) async fn claim_after_lease(ledger: &dyn Ledger, request: &ClaimRequest) -> Claim {
    let patience = Until::new(Moment::now(), PATIENCE);
    loop {
        match claim(ledger, request).await {
            Claim::InFlight { .. } if !patience.is_past() => clock::sleep(Duration::from_millis(5)).await,
            claim => return claim,
        }
    }
}

/// Waits until the lease of this row has ended on the ledger's clock, without a claim of its effect.
pub(super) async fn lease_ended(ledger: &dyn Ledger, record: &EffectRecord) {
    let patience = Until::new(Moment::now(), PATIENCE);
    while now(ledger).await <= record.lease_until {
        assert!(!patience.is_past(), "the ledger's clock does not reach the end of the lease");
        clock::sleep(Duration::from_millis(5)).await;
    }
}

/// The ledger's clock, by a claim of something else.
pub(super) async fn now(ledger: &dyn Ledger) -> LedgerTime {
    win(ledger, &request()).await.started_at
}

/// Makes a change as the owner of `record`, and finds the row that it was told of.
pub(super) async fn apply(ledger: &dyn Ledger, record: &EffectRecord, change: &Change) -> EffectRecord {
    apply_as(ledger, &Owner::of(record), change).await
}

pub(super) async fn apply_as(ledger: &dyn Ledger, owner: &Owner, change: &Change) -> EffectRecord {
    match ledger.change(owner, change).await.expect("a change is answered") {
        Changed::Applied(record) => {
            assert_eq!(
                history(ledger, &record.id).await.effect,
                *record,
                "the row is the one that was told of"
            );
            Arc::unwrap_or_clone(record)
        }
        changed => panic!("expected to be applied, got {changed:?}"),
    }
}

/// Makes a change that comes too late.
pub(super) async fn stale(ledger: &dyn Ledger, owner: &Owner, change: &Change) {
    match ledger.change(owner, change).await.expect("a change is answered") {
        Changed::Stale(Some(record)) => assert_eq!(record.id, owner.id),
        changed => panic!("expected to be stale, got {changed:?}"),
    }
}

pub(super) async fn history(ledger: &dyn Ledger, id: &EffectId) -> EffectHistory {
    ledger.read(id).await.expect("a read is answered").expect("the effect is known")
}

/// Polls all of them at once and waits for the last one.
pub(super) async fn join_all<'a, T>(futures: Vec<Pin<Box<dyn Future<Output = T> + Send + 'a>>>) -> Vec<T> {
    let mut running: Vec<_> = futures.into_iter().map(Some).collect();
    let mut results: Vec<Option<T>> = running.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, result) in running.iter_mut().zip(&mut results) {
            if let Some(polled) = future
                && let Poll::Ready(value) = polled.as_mut().poll(context)
            {
                *result = Some(value);
                *future = None;
            }
        }
        if running.iter().all(Option::is_none) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    results.into_iter().flatten().collect()
}
