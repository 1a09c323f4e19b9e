//! A truthful operator, who decides by what the provider shows at that moment.

use super::{World, checks};
use crate::ledger::{
    ResolutionReply, ResolutionRequest,
    record::{AbsentReason, OutcomeBody, OutcomeKind, Payload, State},
    resolution::{self, Action, By, REASON_CODEC, Seen},
};

impl World {
    /// Resolves what is in doubt, or opens a refusal again.
    pub(super) fn operate(&mut self) {
        let Some(row) = self.row().cloned() else { return };
        let refusal = row.outcome.as_ref().is_some_and(|outcome| outcome.kind == OutcomeKind::Refusal);
        let action = match self.random.below(4) {
            _ if refusal => Action::Reopen,
            0 => Action::Refused {
                reason: Payload { codec: REASON_CODEC.into(), bytes: b"no".to_vec() },
                settle_delay_ms: 0,
                retain_ms: 1_000_000,
                despite_evidence: false,
            },
            _ if self.performed > 0 => {
                Action::Done { body: OutcomeBody::Absent(AbsentReason::Unencodable), retain_ms: 1_000_000 }
            }
            _ => Action::NeverHappened { settle_delay_ms: 0, despite_evidence: false },
        };
        let reopens = matches!(action, Action::Reopen);
        // A refusal is the end of it: who gives it knows that nothing was performed.
        if self.performed > 0 && (reopens || matches!(action, Action::Refused { .. })) {
            return;
        }
        let by = By::new("ana", "the model").expect("who and why");
        let (id, token) = (self.id.clone(), self.token());
        let request = ResolutionRequest { id, seen: Seen::of(&row), token, by, action };
        let before = self.kept.history(&self.id).expect("it has a row");
        let judged = resolution::judge(Some(&row), &request, self.now);
        let reply = self.kept.store(judged);
        let after = self.kept.history(&self.id).expect("it has a row");
        let ResolutionReply::Applied(stored) = reply else {
            assert_eq!(before, after, "a request that is not applied changes nothing: {reply:?}");
            return;
        };
        checks::step_by_operator(&before, &after);
        assert_eq!(after.effect, *stored, "the operator is told what is stored");
        assert!(
            row.state == State::Released || reopens || row.lease_until <= self.now,
            "during the lease: {row:?}"
        );
        self.resolved = true;
    }
}
