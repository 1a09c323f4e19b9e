//! What must hold of each row and of each step.

use crate::ledger::record::{AttemptVerdict, Doubt, EffectHistory, EffectRecord, OutcomeKind, State};

/// The CHECK constraints of the databases: a row that breaks one can never be stored.
pub(crate) fn row(row: &EffectRecord) {
    let doubt = row.doubt.as_ref();
    assert!(row.fence >= 1 && row.attempt >= 1 && row.revision >= 1 && row.attempt_timeout_ms > 0, "{row:?}");
    assert!(
        doubt.is_none_or(|doubt| (1..=row.attempt).contains(&doubt.attempt)),
        "doubt of no attempt: {row:?}"
    );
    match (row.state, &row.outcome) {
        (State::Completed, Some(outcome)) => {
            let verdict = match outcome.kind {
                OutcomeKind::Success => AttemptVerdict::Performed,
                OutcomeKind::Refusal => AttemptVerdict::Refused,
            };
            assert_eq!(row.end.as_ref().map(|end| end.verdict), Some(verdict), "{row:?}");
            assert!(doubt.is_none(), "completed and in doubt: {row:?}");
        }
        (State::Completed, None) => panic!("completed without an outcome: {row:?}"),
        (_, Some(_)) => panic!("an outcome of what is not completed: {row:?}"),
        (State::Released, None) => assert!(row.end.is_some() && doubt.is_none(), "released: {row:?}"),
        (State::Escaped, None) => assert!(doubt.is_some(), "escaped without a doubt: {row:?}"),
        (State::Claimed, None) => {}
    }
}

/// What no step may take back.
pub(crate) fn step(before: Option<&EffectHistory>, after: &EffectHistory) {
    row(&after.effect);
    let numbers: Vec<_> = after.closed.iter().map(|attempt| attempt.attempt).collect();
    let expected: Vec<_> = (1..after.effect.attempt).collect();
    assert_eq!(numbers, expected, "every attempt before the current one is in the history, once");
    let Some(before) = before else { return };
    let (old, new) = (&before.effect, &after.effect);
    if old == new {
        return;
    }
    assert_eq!(new.revision, old.revision + 1, "a write raises the revision by one");
    assert!((old.fence..=old.fence + 1).contains(&new.fence), "{old:?} to {new:?}");
    assert!((old.attempt..=old.attempt + 1).contains(&new.attempt), "{old:?} to {new:?}");
    assert_eq!((&new.id, &new.provider_key, new.created_at), (&old.id, &old.provider_key, old.created_at));
    assert!(new.late_success >= old.late_success && new.double_suspected >= old.double_suspected);
    if let Some(outcome) = &old.outcome {
        assert!(
            new.state == State::Completed && new.outcome.as_ref() == Some(outcome),
            "an outcome changed: {old:?} to {new:?}"
        );
    }
    if old.accepted.is_some() {
        assert_eq!(new.attempt, old.attempt, "an accepted effect was submitted again");
    }
}

/// What an operator's decision may change, and that it is audited.
pub(super) fn step_by_operator(before: &EffectHistory, after: &EffectHistory) {
    let (old, new) = (&before.effect, &after.effect);
    row(new);
    assert_eq!((new.revision, new.fence, new.attempt), (old.revision + 1, old.fence + 1, old.attempt));
    assert!(old.outcome.as_ref().is_none_or(|outcome| outcome.kind == OutcomeKind::Refusal), "{old:?}");
    assert!(matches!(new.state, State::Completed | State::Released), "{new:?}");
    assert_eq!(after.audit.len(), before.audit.len() + 1, "every decision is audited");
    assert_eq!(after.closed, before.closed);
}

/// A doubt stays, and grows no weaker, unless `may_end` says that this step may end it.
pub(crate) fn doubt(before: &EffectRecord, after: &EffectRecord, may_end: bool) {
    let Some(old) = &before.doubt else { return };
    let kept = after.doubt.as_ref().is_some_and(|new: &Doubt| {
        (new.attempt, new.since) == (old.attempt, old.since)
            && new.class >= old.class
            && new.acts_until >= old.acts_until
            && old.send_digest.is_none_or(|digest| new.send_digest == Some(digest))
    });
    assert!(kept || (after.doubt.is_none() && may_end), "a doubt was erased: {before:?} to {after:?}");
}
