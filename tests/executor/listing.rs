//! What an operator looks through, and the count of it.

use std::{sync::Arc, time::Duration};

use effectual::{By, Ledger, Listing, Resolution, Tenant, ledger::record::State};
use effectual_tests::{
    on_each_ledger,
    scripted::{Act, Scripted},
};

use crate::effects::*;

on_each_ledger![
    f38_the_census_counts_what_has_no_outcome_and_the_age_of_the_oldest_rises,
    a_listing_is_paged_and_filtered,
];

/// A call that ends as `act` says.
async fn called(ledger: &Arc<dyn Ledger>, order: &str, act: Act) -> effectual::EffectId {
    let executor = builder(ledger).retry(quick().attempts_max(1)).build().expect("a valid set-up");
    let (receipt, scope) = receipted(&executor);
    drop(holding(&scope, order.into(), 5, Scripted::forgetful([act])).await);
    receipt.effect_id().expect("an identity")
}

async fn f38_the_census_counts_what_has_no_outcome_and_the_age_of_the_oldest_rises(ledger: Arc<dyn Ledger>) {
    let executor = executor(&ledger);
    let empty = executor.census().await.expect("an answer");
    assert_eq!((empty.oldest, empty.is_complete), (None, true));
    called(&ledger, "done", Act::Perform).await;
    let stuck = called(&ledger, "stuck", Act::PerformAndLose).await;
    called(&ledger, "busy", Act::NoConnection).await;
    let census = executor.census().await.expect("an answer");
    assert_eq!((census.claimed, census.released, census.escaped, census.held), (0, 1, 1, 1));
    let first = census.oldest_escaped.expect("one is stuck");
    let rises = async || executor.census().await.expect("an answer").oldest_escaped > Some(first);
    effectual_tests::wait::until("the age to rise", Duration::from_secs(10), rises).await;
    let by = By::new("ana", "it is there").expect("who and why");
    executor.resolve(&stuck, Resolution::done(&1), &by).await.expect("resolved");
    let census = executor.census().await.expect("an answer");
    assert_eq!((census.escaped, census.held, census.oldest_escaped), (0, 0, None));
    assert_eq!((census.released, census.oldest.is_some()), (1, true));
}

async fn a_listing_is_paged_and_filtered(ledger: Arc<dyn Ledger>) {
    let executor = executor(&ledger);
    let mut expected = Vec::new();
    for number in 0..5 {
        expected.push(called(&ledger, &format!("p-{number}"), Act::LoseOnly).await);
        called(&ledger, &format!("r-{number}"), Act::NoConnection).await;
        called(&ledger, &format!("d-{number}"), Act::Perform).await;
    }
    let escaped = Listing::all().state(State::Escaped).operation("holding");
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = after.into_iter().fold(escaped.clone().at_most(2), |listing, after| listing.after(after));
        let page = executor.unsettled(&page).await.expect("an answer");
        assert!(page.effects.len() <= 2);
        listed.extend(page.effects.into_iter().map(|found| found.effect.id));
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    listed.sort_unstable_by_key(|id| *id.digest());
    expected.sort_unstable_by_key(|id| *id.digest());
    assert_eq!(listed, expected, "each once");
    let all = executor.unsettled(&Listing::all()).await.expect("an answer");
    assert_eq!((all.effects.len(), all.next), (10, None));
    assert!(all.effects.is_sorted_by_key(|found| found.effect.created_at), "the oldest first");
    let other = Tenant::parse("globex").expect("a tenant");
    for none in [
        Listing::all().operation("resending"),
        Listing::all().tenant(other),
        Listing::all().state(State::Claimed),
        Listing::all().older_than(Duration::from_secs(3600)),
    ] {
        assert!(executor.unsettled(&none).await.expect("an answer").effects.is_empty(), "{none:?}");
    }
}
