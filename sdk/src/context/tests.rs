//! When nothing may be sent.

use std::time::Duration;

use super::*;
use crate::{
    MemoryLedger, Tenant,
    clock::Moment,
    descriptor::{Keying, RecoveryClass},
    ledger::{
        Claim, ClaimRequest, claim,
        identities::Identities,
        record::{AttemptToken, Place},
    },
};

fn held(lease: Duration) -> Arc<Held> {
    let request = ClaimRequest {
        id: EffectId::new(Tenant::parse("acme").expect("a tenant"), [1; 32]),
        operation: "refund-order".into(),
        keying: Keying::BusinessIdentity,
        key_version: 1,
        identities: Identities::default(),
        readable: None,
        provider: None,
        provider_key: "key".into(),
        fingerprints: Arc::default(),
        class: RecoveryClass::Hold,
        can_look_up: false,
        can_poll: false,
        can_perform: true,
        input: None,
        resend_window_ms: None,
        resend_quiet_ms: None,
        token: AttemptToken([1; 16]),
        lease_ms: 60_000,
        attempt_timeout_ms: 1_000,
        place: Place::default(),
    };
    let Claim::Won { record, .. } = claim::judge(None, &request, 0).reply else { panic!("a first claim") };
    let reserve = Duration::from_secs(2);
    Arc::new(Held::new(Arc::new(MemoryLedger::new()), record, Moment::now(), lease, reserve))
}

fn attempt() -> Attempt {
    Attempt::new(held(Duration::from_secs(60)), 1, "key".into())
}

#[test]
fn an_attempt_sends_one_request() {
    let attempt = attempt();
    assert!(attempt.permit(Some([1; 32])).is_ok());
    for digest in [[1; 32], [2; 32]] {
        assert_eq!(attempt.permit(Some(digest)).err(), Some(SendRefused::SecondSend));
    }
}

#[test]
fn a_resend_is_the_request_that_was_sent() {
    let mut attempt = attempt();
    attempt.sent_before = Some([1; 32]);
    assert_eq!(attempt.permit(Some([2; 32])).err(), Some(SendRefused::ChangedRequest));
    assert!(attempt.permit(Some([1; 32])).is_ok());
}

#[test]
fn a_look_up_sends_nothing() {
    let mut attempt = attempt();
    attempt.look_up = true;
    assert_eq!(attempt.permit(None).err(), Some(SendRefused::LookUp));
}

#[test]
fn nothing_is_sent_past_the_providers_window() {
    let mut attempt = attempt();
    attempt.resend_until = Some(Until::new(Moment::now(), Duration::ZERO));
    assert_eq!(attempt.permit(None).err(), Some(SendRefused::WindowOver));
}

#[test]
fn nothing_is_sent_into_the_end_of_a_lease() {
    let attempt = Attempt::new(held(Duration::from_secs(2)), 1, "key".into());
    assert_eq!(attempt.permit(None).err(), Some(SendRefused::LeaseTooShort));
}

#[test]
fn nothing_is_sent_past_the_drain_deadline() {
    let attempt = attempt();
    attempt.held.revoke();
    assert_eq!(attempt.permit(None).err(), Some(SendRefused::Draining));
}
