//! Outcomes that are kept in memory, and the end of their retention.

use std::{sync::Arc, time::Duration};

use effectual::{ErrorKind, Ledger, OutcomeCache};
use effectual_tests::{counting::Counting, scripted::Scripted, wait::until};

use crate::{
    effects::*,
    place::{DAY, Place, TODAY},
};

/// Far longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(30);

/// The ledger's clock counts, however far it is from this process' own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f18_a_kept_outcome_is_not_answered_past_its_retention() {
    for place in Place::all("retention: kept in memory").await {
        let provider = Scripted::forgetful([]);
        let (_, scope) = receipted(&executor(&place.open(TODAY).await));
        holding(&scope, "o-1".into(), 5, provider.clone()).await.expect("performed");

        let counting = Counting::new(&place.open(DAY * 30 - Duration::from_secs(4)).await);
        let shared: Arc<dyn Ledger> = Arc::new(counting.clone());
        let cache = OutcomeCache::new().kept_for(Duration::from_secs(3600));
        let keeping = builder(&shared).outcome_cache(cache).build().expect("a valid set-up");
        let (receipt, scope) = receipted(&keeping);
        let mut calls = 0;
        until("its retention is over", LIMIT, async || {
            calls += 1;
            match holding(&scope, "o-1".into(), 5, provider.clone()).await {
                Ok(done) => assert!(done.number == 1 && receipt.replayed()),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Expired),
            }
            !receipt.replayed()
        })
        .await;
        // Asked once for the outcome, and at the end, when it may be over and then is.
        let asked = counting.claims();
        assert!(calls > 20 && (2..10).contains(&asked), "{asked} of {calls} on {}", place.name());
        assert_eq!(provider.performed(), 1);
    }
}
