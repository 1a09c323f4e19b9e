//! A value on its way to the ledger, and what the call that stored it returns.

use super::{
    claimed::Claimed,
    drive::stored,
    erased::{has_secret, withheld},
    perform::Next,
};
use crate::ledger::record::OutcomeBody;

impl Claimed<'_> {
    /// What is stored of a value, and the value itself where that is not it: a secret that nothing seals.
    pub(super) fn to_store(&self, body: OutcomeBody) -> (OutcomeBody, Option<OutcomeBody>) {
        if has_secret(&body) && !self.call.scope.core.defaults().seals {
            return (withheld(), Some(body));
        }
        (body, None)
    }

    /// The end of the call whose outcome is stored: with that, or with the value that was kept back from it.
    pub(super) fn settled(&self, kept_back: Option<OutcomeBody>) -> Next {
        self.over();
        let end = stored(&self.record(), false);
        Next::Over(match kept_back {
            Some(value) => end.with_body(value),
            None => end,
        })
    }
}
