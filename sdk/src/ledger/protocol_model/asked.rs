//! What the model's workers ask of the judges.

use crate::{
    descriptor::{Keying, RecoveryClass},
    identity::{EffectId, Tenant},
    ledger::{
        Change, ClaimRequest,
        change::Ended,
        identities::Identities,
        record::{AbsentReason, AttemptToken, AttemptVerdict, OutcomeBody, OutcomeKind, Place},
    },
};

/// How many ticks a lease and an attempt have, and for how long the provider of a re-send remembers a key.
pub(super) const LEASE: i64 = 2;
pub(super) const TIMEOUT: i64 = 1;
pub(super) const WINDOW: i64 = 4;

pub(super) fn settle(kind: OutcomeKind, conclusive: bool) -> Change {
    let verdict = match kind {
        OutcomeKind::Success => AttemptVerdict::Performed,
        OutcomeKind::Refusal => AttemptVerdict::Refused,
    };
    let body = OutcomeBody::Absent(AbsentReason::Unencodable);
    let ended = Ended::found(verdict);
    Change::Settle { ended, kind, body, provider_replay: false, conclusive, retain_ms: 1_000_000 }
}

pub(super) fn request(class: RecoveryClass, token: u8) -> ClaimRequest {
    let tenant = Tenant::parse("model").expect("a valid tenant");
    ClaimRequest {
        id: EffectId::new(tenant, [7; 32]),
        operation: "refund-order".into(),
        keying: Keying::BusinessIdentity,
        key_version: 1,
        identities: Identities::default(),
        readable: None,
        provider: None,
        provider_key: "key".into(),
        fingerprints: [].into(),
        class,
        can_look_up: class == RecoveryClass::Reconcile,
        can_poll: false,
        can_perform: true,
        input: None,
        resend_window_ms: (class == RecoveryClass::Resend).then_some(WINDOW - TIMEOUT),
        resend_quiet_ms: None,
        token: AttemptToken([token; 16]),
        lease_ms: LEASE,
        attempt_timeout_ms: TIMEOUT,
        place: Place::default(),
    }
}
