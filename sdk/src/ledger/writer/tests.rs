use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use super::{
    intake::BATCH_MAX,
    room::{Limits, WhenFull},
    *,
};
use crate::{
    descriptor::{Keying, RecoveryClass},
    identity::Tenant,
    ledger::{
        identities::Identities,
        record::{AttemptToken, Place},
    },
};

fn id(tenant: &str, effect: u32) -> EffectId {
    let tenant = Tenant::parse(tenant).expect("a valid tenant");
    let mut digest = [0; 32];
    digest[..4].copy_from_slice(&effect.to_be_bytes());
    digest[4..][..tenant.as_str().len()].copy_from_slice(tenant.as_str().as_bytes());
    EffectId::new(tenant, digest)
}

fn number(id: &EffectId) -> u32 {
    u32::from_be_bytes(id.digest()[..4].try_into().expect("four bytes"))
}

fn request(tenant: &str, effect: u32) -> ClaimRequest {
    ClaimRequest {
        id: id(tenant, effect),
        operation: "order".into(),
        keying: Keying::BusinessIdentity,
        key_version: 1,
        identities: Identities::default(),
        readable: None,
        provider: None,
        provider_key: "key".into(),
        fingerprints: Arc::default(),
        input: None,
        class: RecoveryClass::Hold,
        can_perform: true,
        can_look_up: false,
        can_poll: false,
        resend_window_ms: None,
        resend_quiet_ms: None,
        token: AttemptToken([1; 16]),
        lease_ms: 1_000,
        attempt_timeout_ms: 1_000,
        place: Place::default(),
    }
}

fn waiting(command: Command) -> Waiting {
    let (reply, _) = oneshot::channel();
    Waiting { command, reply, _room: None }
}

fn claim(tenant: &str, effect: u32) -> Waiting {
    waiting(Command::Claim(Box::new(request(tenant, effect))))
}

fn change(tenant: &str, effect: u32, attempt: u32) -> Waiting {
    let token = AttemptToken([1; 16]);
    let owner = Owner { id: id(tenant, effect), fence: 1, token, attempt, seen: None };
    waiting(Command::Change(Box::new(owner), Box::new(Change::Label)))
}

fn put(queue: &Queue, waiting: Waiting) {
    queue.line.0.push(waiting).expect("an open queue");
}

async fn next(intake: &Intake) -> Vec<Waiting> {
    intake.next_batch().await.expect("a batch")
}

fn claims(batch: &[Waiting]) -> usize {
    batch.iter().filter(|waiting| matches!(waiting.command, Command::Claim(_))).count()
}

/// Whether a future is ready when it is polled once.
fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn many_commands_for_one_effect_keep_nobody_out_and_keep_their_order() {
    let (queue, intake) = queue(Limits::default());
    (1..=600).for_each(|attempt| put(&queue, change("acme", 1, attempt)));
    (2..=9).for_each(|effect| put(&queue, change("acme", effect, 1)));
    let described = |batch: &[Waiting]| -> Vec<(u32, u32)> {
        let of = |waiting: &Waiting| match &waiting.command {
            Command::Change(owner, _) => (number(&owner.id), owner.attempt),
            _ => (0, 0),
        };
        batch.iter().map(of).collect()
    };
    let others = (2..=9).map(|effect| (effect, 1));
    assert_eq!(described(&next(&intake).await), [(1, 1)].into_iter().chain(others).collect::<Vec<_>>());
    for attempt in 2..=600 {
        assert_eq!(described(&next(&intake).await), [(1, attempt)]);
    }
}

/// A lease must not end because 1,000 claims stand before its renewal; nor do changes without end keep claims out.
#[tokio::test]
async fn changes_go_first_and_leave_claims_a_share() {
    let (queue, intake) = queue(Limits::default());
    (0..1_000).for_each(|effect| put(&queue, claim("acme", effect)));
    put(&queue, change("acme", 5_000, 1));
    let first = next(&intake).await;
    assert!(matches!(first[0].command, Command::Change(..)));
    assert_eq!((first.len(), claims(&first)), (BATCH_MAX, BATCH_MAX - 1));
    (6_000..7_000).for_each(|effect| put(&queue, change("acme", effect, 1)));
    for _ in 0..3 {
        let batch = next(&intake).await;
        assert_eq!((batch.len(), claims(&batch)), (BATCH_MAX, BATCH_MAX / 4));
    }
}

/// A change and a claim of one effect do not meet in a batch, whichever came first.
#[tokio::test]
async fn a_change_passes_a_claim_of_its_effect() {
    let (queue, intake) = queue(Limits::default());
    put(&queue, claim("acme", 1));
    put(&queue, change("acme", 1, 1));
    let (first, second) = (next(&intake).await, next(&intake).await);
    assert_eq!([(first.len(), claims(&first)), (second.len(), claims(&second))], [(1, 0), (1, 1)]);
}

#[tokio::test]
async fn a_tenants_flood_delays_no_other_tenant_by_more_than_a_batch() {
    let (queue, intake) = queue(Limits::default());
    (0..2_000).for_each(|effect| put(&queue, claim("acme", effect)));
    put(&queue, claim("bolt", 1));
    (2_000..4_000).for_each(|effect| put(&queue, claim("acme", effect)));
    let first = next(&intake).await;
    let of_others = |batch: &[Waiting]| {
        batch.iter().filter(|waiting| waiting.command.id().tenant().as_str() != "acme").count()
    };
    assert_eq!((first.len(), of_others(&first)), (BATCH_MAX, 1));
    // Two floods share.
    (0..2_000).for_each(|effect| put(&queue, claim("bolt", 10 + effect)));
    assert_eq!(of_others(&next(&intake).await), BATCH_MAX / 2);
}

/// Every one of very many tenants has its turn, in the order in which they came.
#[tokio::test]
async fn no_tenant_waits_for_ever() {
    let (queue, intake) = queue(Limits::default());
    for round in 0..2 {
        (0..1_000).for_each(|tenant| put(&queue, claim(&format!("t{tenant}"), round)));
    }
    for batch in 0..8 {
        let rounds: Vec<_> = next(&intake).await.iter().map(|waiting| number(waiting.command.id())).collect();
        let of_the_first = rounds.iter().filter(|round| **round == 0).count();
        let expected = if batch < 3 { 256 } else { [232, 0, 0, 0, 0][batch - 3] };
        assert_eq!(of_the_first, expected, "batch {batch}");
    }
}

#[tokio::test]
async fn a_claim_without_room_is_refused_and_a_change_is_not() {
    let limits = Limits { waiting_max: 2, when_full: WhenFull::Refuse };
    let (queue, intake) = queue(limits);
    let (first, second) = (request("acme", 1), request("acme", 2));
    let mut handed_in = (pin!(queue.claim(&first)), pin!(queue.claim(&second)));
    assert!(poll(handed_in.0.as_mut()).is_pending() && poll(handed_in.1.as_mut()).is_pending());
    let third = request("bolt", 3);
    let Poll::Ready(Err(error)) = poll(queue.claim(&third)) else { panic!("there is no room") };
    assert_eq!((error.kind(), error.is_transient()), (LedgerErrorKind::Overloaded, true));
    for needed in ["nothing was started", "not called", "safe to call again", "waiting_max"] {
        assert!(error.to_string().contains(needed), "{error}");
    }
    let owner = Owner { id: id("acme", 9), fence: 1, token: AttemptToken([1; 16]), attempt: 1, seen: None };
    assert!(poll(queue.change(&owner, &Change::Label)).is_pending());
    let batch = next(&intake).await;
    assert_eq!((batch.len(), claims(&batch)), (3, 2));
    drop(batch);
    assert!(poll(queue.claim(&third)).is_pending(), "there is room again");
}

/// Who waits at the door is let in by turns, and who goes away from it takes no room along.
#[tokio::test]
async fn a_claim_waits_for_room_and_tenants_take_turns_at_the_door() {
    let limits = Limits { waiting_max: 4, when_full: WhenFull::Wait };
    let (queue, intake) = queue(limits);
    let flood: Vec<_> = (0..100).map(|effect| request("acme", effect)).collect();
    let mut flood: Vec<_> = flood.iter().map(|request| Box::pin(queue.claim(request))).collect();
    let lone = request("bolt", 1);
    let mut lone = Box::pin(queue.claim(&lone));
    for call in &mut flood {
        assert!(poll(call.as_mut()).is_pending());
    }
    assert!(poll(lone.as_mut()).is_pending());
    assert_eq!(next(&intake).await.len(), 4);
    // Those of the flood that are let in are gone.
    flood.drain(4..90);
    assert!(poll(lone.as_mut()).is_pending());
    let mut batches = Vec::new();
    while !flood.is_empty() {
        flood.retain_mut(|call| poll(call.as_mut()).is_pending());
        let Poll::Ready(Some(batch)) = poll(intake.next_batch()) else { break };
        batches.push(
            batch.iter().map(|waiting| waiting.command.id().tenant().as_str().len()).collect::<Vec<_>>(),
        );
        let of_bolt = batch.iter().any(|waiting| waiting.command.id().tenant().as_str() == "bolt");
        assert!(of_bolt == (batches.len() == 1), "its turn comes with the first room");
    }
    assert_eq!(batches.iter().map(Vec::len).sum::<usize>(), 11, "{batches:?}");
}

#[tokio::test]
async fn writers_end_with_the_last_caller_and_callers_with_the_last_writer() {
    let (queue, intake) = queue(Limits::default());
    let other = queue.clone();
    put(&queue, claim("acme", 1));
    drop(queue);
    assert_eq!(next(&intake).await.len(), 1);
    assert!(poll(intake.next_batch()).is_pending());
    let first = request("acme", 2);
    let mut handed_in = Box::pin(other.claim(&first));
    assert!(poll(handed_in.as_mut()).is_pending());
    drop(intake);
    let Poll::Ready(Err(error)) = poll(handed_in.as_mut()) else { panic!("nobody stores it") };
    assert_eq!(error.kind(), LedgerErrorKind::Closed);
    let Poll::Ready(Err(error)) = poll(other.claim(&first)) else { panic!("nobody stores it") };
    assert_eq!(error.kind(), LedgerErrorKind::Closed);
    let (queue, intake) = super::queue(Limits::default());
    let mut waits = Box::pin(intake.next_batch());
    assert!(poll(waits.as_mut()).is_pending());
    drop(queue);
    assert!(matches!(poll(waits.as_mut()), Poll::Ready(None)));
}
