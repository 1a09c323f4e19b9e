//! Claims and settles at the ledger itself.

use effectual::{
    EffectId, Keying, RecoveryClass,
    ledger::{
        Change, ClaimRequest,
        change::Ended,
        identities::Identities,
        record::{AttemptToken, AttemptVerdict, OutcomeBody, OutcomeKind, Payload, Place},
    },
};

/// A claim that is over at once, of an effect that may be repeated.
pub(crate) fn request(number: u64, token: u8) -> ClaimRequest {
    ClaimRequest {
        id: EffectId::parse(format!("acme/{number:016x}{:048}", 0)).expect("an identity"),
        operation: "refund-order".into(),
        keying: Keying::BusinessIdentity,
        key_version: 1,
        identities: Identities::default(),
        readable: None,
        provider: None,
        provider_key: format!("key-{number}").into(),
        fingerprints: [].into(),
        input: None,
        can_perform: true,
        can_poll: false,
        class: RecoveryClass::Rerun,
        can_look_up: false,
        resend_window_ms: None,
        resend_quiet_ms: None,
        token: AttemptToken([token; 16]),
        lease_ms: 0,
        attempt_timeout_ms: 1_000,
        place: Place::default(),
    }
}

pub(crate) fn settle() -> Change {
    let bytes = b"1".to_vec();
    Change::Settle {
        ended: Ended::found(AttemptVerdict::Performed),
        kind: OutcomeKind::Success,
        body: OutcomeBody::Payload(Payload { codec: "json/1".into(), bytes }),
        provider_replay: false,
        conclusive: false,
        retain_ms: 600_000,
    }
}
