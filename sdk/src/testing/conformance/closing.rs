//! The end of a ledger.

use super::support::{again, request, success, token, win};
use crate::{
    Ledger,
    ledger::{
        LedgerErrorKind, Owner, ResolutionRequest,
        resolution::{Action, By, Seen},
    },
};

/// A closed ledger says so, to every call and as often as it is closed.
pub async fn a_closed_ledger_says_so(ledger: &dyn Ledger) {
    let request = request();
    let record = win(ledger, &request).await;
    let resolution = ResolutionRequest {
        id: record.id.clone(),
        seen: Seen { fence: record.fence, attempt: record.attempt },
        token: token(),
        by: By::new("ana", "the end").expect("who and why"),
        action: Action::Reopen,
    };
    for _ in 0..2 {
        ledger.close().await;
        let kinds = [
            ledger.claim(&again(&request)).await.map(drop).map_err(|error| error.kind()),
            ledger.change(&Owner::of(&record), &success(b"1")).await.map(drop).map_err(|error| error.kind()),
            ledger.resolve(&resolution).await.map(drop).map_err(|error| error.kind()),
            ledger.read(&request.id).await.map(drop).map_err(|error| error.kind()),
        ];
        assert_eq!(kinds, [Err(LedgerErrorKind::Closed); 4]);
    }
}
