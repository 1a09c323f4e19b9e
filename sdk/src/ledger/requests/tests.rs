use super::{
    Absence, Begin, Begun, Change, Changed, Owner, RecordKey, RequestRecord, RequestState, StoredResponse,
    judge::{Write, begin, change, look},
};
use crate::identity::Tenant;

const LEASE: i64 = 100;
const RETENTION: i64 = 10_000;

fn request(token: u8, fingerprint: u8) -> Begin {
    let tenant = Tenant::parse("acme").expect("a tenant");
    Begin {
        key: RecordKey::new(tenant, "POST /runs", b"key"),
        fingerprint: [fingerprint; 32],
        principal: None,
        token: [token; 16],
        lease_ms: LEASE,
        retention_ms: RETENTION,
    }
}

/// Stores what is written, as a store does.
fn store(held: &mut Option<RequestRecord>, write: Option<Write>) {
    match write {
        Some(Write::Put(record)) => *held = Some(*record),
        Some(Write::Drop) => *held = None,
        None => {}
    }
}

fn begun(held: &mut Option<RequestRecord>, request: &Begin, now: i64) -> Begun {
    let judgement = begin(held.as_ref(), request, now);
    store(held, judgement.write);
    judgement.reply
}

fn running(held: &mut Option<RequestRecord>, request: &Begin, now: i64) -> Owner {
    match begun(held, request, now) {
        Begun::Run(owner) => owner,
        other => panic!("not to run: {other:?}"),
    }
}

fn changed(held: &mut Option<RequestRecord>, owner: &Owner, what: &Change, now: i64) -> Changed {
    let judgement = change(held.as_ref(), owner, what, now);
    store(held, judgement.write);
    judgement.reply
}

fn answer() -> StoredResponse {
    StoredResponse { status: 201, headers: Vec::new(), body: b"made".to_vec() }
}

fn complete() -> Change {
    Change::Complete { answer: Ok(answer()), retention_ms: RETENTION }
}

fn fail(keep_digest: bool) -> Change {
    Change::Fail { keep_digest, retention_ms: RETENTION }
}

#[test]
fn an_equal_request_waits_and_then_gets_the_answer() {
    let mut held = None;
    let owner = running(&mut held, &request(1, 7), 0);
    assert_eq!(begun(&mut held, &request(2, 7), 50), Begun::InFlight);
    assert_eq!(changed(&mut held, &owner, &complete(), 60), Changed::Done);
    assert_eq!(begun(&mut held, &request(2, 7), 70), Begun::Replay(answer()));
    assert_eq!(held.as_ref().map(|held| held.retain_until), Some(60 + RETENTION));
}

#[test]
fn another_request_is_a_mismatch_in_every_state() {
    let mut held = None;
    let owner = running(&mut held, &request(1, 7), 0);
    assert_eq!(begun(&mut held, &request(2, 8), 1), Begun::Mismatch, "pending");
    assert_eq!(begun(&mut held, &request(2, 8), LEASE), Begun::Mismatch, "its lease ended");
    changed(&mut held, &owner, &fail(true), 2);
    assert_eq!(begun(&mut held, &request(2, 8), 3), Begun::Mismatch, "retryable");
    let owner = running(&mut held, &request(3, 7), 4);
    changed(&mut held, &owner, &complete(), 5);
    assert_eq!(begun(&mut held, &request(2, 8), 6), Begun::Mismatch, "final");
}

#[test]
fn only_an_ended_lease_is_taken_over_and_the_old_owner_loses() {
    let mut held = None;
    let old = running(&mut held, &request(1, 7), 0);
    assert_eq!(changed(&mut held, &old, &Change::Renew { lease_ms: LEASE }, 90), Changed::Done);
    assert_eq!(begun(&mut held, &request(2, 7), LEASE + 50), Begun::InFlight, "it was renewed");
    let new = running(&mut held, &request(2, 7), 90 + LEASE);
    assert!(new.fence > old.fence);
    for what in [complete(), fail(true), fail(false), Change::Renew { lease_ms: LEASE }] {
        assert_eq!(changed(&mut held, &old, &what, 200), Changed::Stale);
    }
    assert_eq!(changed(&mut held, &new, &complete(), 201), Changed::Done);
    assert_eq!(changed(&mut held, &new, &fail(true), 202), Changed::Settled, "a final answer stays");
}

#[test]
fn an_owner_whose_lease_ended_and_whom_nobody_replaced_completes() {
    let mut held = None;
    let owner = running(&mut held, &request(1, 7), 0);
    assert_eq!(changed(&mut held, &owner, &complete(), LEASE * 5), Changed::Done);
}

#[test]
fn lost_acknowledgements_are_recognised() {
    let mut held = None;
    let first = request(1, 7);
    let owner = running(&mut held, &first, 0);
    assert_eq!(begun(&mut held, &first, 1), Begun::Run(owner.clone()));
    changed(&mut held, &owner, &complete(), 2);
    assert_eq!(changed(&mut held, &owner, &complete(), 3), Changed::Settled);
    assert_eq!(begun(&mut held, &first, 4), Begun::Replay(answer()));
}

#[test]
fn what_is_not_kept_leaves_no_record_but_for_an_earlier_runs_digest() {
    let mut held = None;
    let owner = running(&mut held, &request(1, 7), 0);
    changed(&mut held, &owner, &fail(false), 1);
    assert_eq!(held, None);
    let owner = running(&mut held, &request(2, 8), 2);
    changed(&mut held, &owner, &fail(true), 3);
    let owner = running(&mut held, &request(3, 8), 4);
    changed(&mut held, &owner, &fail(false), 5);
    assert_eq!(begun(&mut held, &request(4, 9), 6), Begun::Mismatch, "the first run may have acted");
    running(&mut held, &request(5, 8), 7);
}

#[test]
fn another_principal_gets_no_answer() {
    let mut held = None;
    let with = |token, principal| Begin { principal: Some([principal; 32]), ..request(token, 7) };
    let owner = running(&mut held, &with(1, 1), 0);
    changed(&mut held, &owner, &complete(), 1);
    assert_eq!(begun(&mut held, &with(2, 2), 2), Begun::Unavailable(Absence::OtherPrincipal));
    assert_eq!(begun(&mut held, &with(3, 1), 3), Begun::Replay(answer()));
}

#[test]
fn an_answer_without_a_body_is_not_run_again() {
    let mut held = None;
    let owner = running(&mut held, &request(1, 7), 0);
    let what = Change::Complete { answer: Err(Absence::Streamed), retention_ms: RETENTION };
    changed(&mut held, &owner, &what, 1);
    assert_eq!(begun(&mut held, &request(2, 7), 2), Begun::Unavailable(Absence::Streamed));
}

#[test]
fn after_its_retention_a_record_counts_as_absent() {
    let mut held = None;
    let owner = running(&mut held, &request(1, 7), 0);
    changed(&mut held, &owner, &complete(), 0);
    assert!(matches!(begun(&mut held, &request(2, 7), RETENTION - 1), Begun::Replay(_)));
    let other = running(&mut held, &request(3, 9), RETENTION);
    assert!(other.fence > owner.fence && held.as_ref().is_some_and(|held| !held.ran_before));
}

#[test]
fn a_waiter_looks_and_never_runs() {
    let mut held = None;
    let owner = running(&mut held, &request(1, 7), 0);
    changed(&mut held, &owner, &fail(true), 1);
    assert_eq!(look(held.as_ref().expect("a record"), &request(2, 7)), None);
    assert_eq!(held.map(|held| held.state), Some(RequestState::Retryable));
}

#[test]
fn records_of_other_tenants_endpoints_and_keys_are_other_records() {
    let key = |tenant: &str, endpoint: &str, key: &[u8]| {
        *RecordKey::new(Tenant::parse(tenant).expect("a tenant"), endpoint, key).digest()
    };
    let one = key("a", "POST /x", b"k");
    for other in [
        key("b", "POST /x", b"k"),
        key("a", "POST /y", b"k"),
        key("a", "POST /x", b"l"),
        key("a", "POST /", b"xk"),
    ] {
        assert_ne!(one, other);
    }
}
