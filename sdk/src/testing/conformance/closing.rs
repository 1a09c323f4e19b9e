//! The end of a ledger.

use super::support::{again, request, success, win};
use crate::{
    Ledger,
    ledger::{LedgerErrorKind, Owner},
};

/// A closed ledger says so, to every call and as often as it is closed.
pub async fn a_closed_ledger_says_so(ledger: &dyn Ledger) {
    let request = request();
    let record = win(ledger, &request).await;
    for _ in 0..2 {
        ledger.close().await;
        let kinds = [
            ledger.claim(&again(&request)).await.map(drop).map_err(|error| error.kind()),
            ledger.change(&Owner::of(&record), &success(b"1")).await.map(drop).map_err(|error| error.kind()),
            ledger.read(&request.id).await.map(drop).map_err(|error| error.kind()),
        ];
        assert_eq!(kinds, [Err(LedgerErrorKind::Closed); 3]);
    }
}
