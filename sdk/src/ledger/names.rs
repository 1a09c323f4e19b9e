//! The names under which a database keeps the states, verdicts and kinds: the same as in JSON, in one place.

use super::audit::OperatorAction;
use super::record::{AbsentReason, AttemptVerdict, OutcomeKind, State};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::descriptor::{Keying, RecoveryClass};

/// `as_str` for an enum, and `parse` back for the backends that read it.
macro_rules! names {
    ($kind:ident { $($variant:ident = $name:literal),+ $(,)? }) => {
        impl $kind {
            /// The name that the ledger keeps.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }
        parse!($kind { $($variant),+ });
    };
}

/// `parse` for an enum that has an `as_str`.
macro_rules! parse {
    ($kind:ident { $($variant:ident),+ $(,)? }) => {
        #[cfg(any(feature = "sqlite", feature = "postgres"))]
        impl $kind {
            /// Reads [`as_str`](Self::as_str) back; `None` for any other text.
            pub(crate) fn parse(name: &str) -> Option<Self> {
                [$(Self::$variant),+].into_iter().find(|value| value.as_str() == name)
            }
        }
    };
}

names!(State { Claimed = "claimed", Completed = "completed", Released = "released", Escaped = "escaped" });
names!(OperatorAction {
    Done = "done",
    Refused = "refused",
    RefusedDespiteEvidence = "refused_despite_evidence",
    NeverHappened = "never_happened",
    NeverHappenedDespiteEvidence = "never_happened_despite_evidence",
    Reopened = "reopened",
    Forgotten = "forgotten",
});
names!(AttemptVerdict {
    Performed = "performed",
    Refused = "refused",
    NotPerformed = "not_performed",
    Unknown = "unknown",
});
names!(OutcomeKind { Success = "success", Refusal = "refusal" });
names!(AbsentReason { Expired = "expired", Unencodable = "unencodable", TooLarge = "too_large" });
parse!(Keying { BusinessIdentity, ActivityRecipe });
parse!(RecoveryClass { Rerun, Resend, Reconcile, Transactional, Hold });

#[cfg(all(test, any(feature = "sqlite", feature = "postgres")))]
mod tests {
    use super::*;

    /// Every name is the one that serde writes, and reads back.
    macro_rules! check {
        ($kind:ident: $($variant:ident),+) => {$(
            let name = $kind::$variant.as_str();
            assert_eq!(serde_json::to_value($kind::$variant).ok(), Some(name.into()));
            assert_eq!($kind::parse(name), Some($kind::$variant));
        )+};
    }

    #[test]
    fn names_are_those_of_json_and_read_back() {
        check!(State: Claimed, Completed, Released, Escaped);
        check!(AttemptVerdict: Performed, Refused, NotPerformed, Unknown);
        check!(OutcomeKind: Success, Refusal);
        check!(AbsentReason: Expired, Unencodable, TooLarge);
        check!(Keying: BusinessIdentity, ActivityRecipe);
        check!(RecoveryClass: Rerun, Resend, Reconcile, Transactional, Hold);
        check!(OperatorAction: Done, Refused, RefusedDespiteEvidence, NeverHappened, NeverHappenedDespiteEvidence, Reopened, Forgotten);
        assert_eq!(State::parse("Claimed"), None);
    }
}
