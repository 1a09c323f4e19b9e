//! Whose effect it is: a tenant's, and neither a credential's nor an endpoint's.

use std::{collections::HashSet, sync::Arc};

use effectual::{Ledger, Receipt};
use effectual_tests::{on_each_ledger, scripted::Scripted};

use crate::effects::*;

on_each_ledger![
    f33_one_key_of_two_tenants_is_two_effects,
    f33_one_key_under_two_operations_is_two_effects,
    f34_a_rotated_credential_of_one_tenant_replays,
];

async fn f33_one_key_of_two_tenants_is_two_effects(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::deduplicating([]);
    let executor = executor(&ledger);
    let mut ids = HashSet::new();
    for tenant in ["acme", "globex", "anon:acme"] {
        let receipt = Receipt::new();
        let scope = executor.tenant(tenant).expect("a tenant").with_receipt(&receipt);
        for replayed in [false, true] {
            let done = resending(&scope, "o-1".into(), 5, provider.clone()).await.expect("performed");
            assert_eq!((done.number as usize, receipt.replayed()), (ids.len() + 1, replayed), "{tenant}");
        }
        ids.insert(receipt.effect_id().expect("an identity"));
        // Another amount is a mismatch within one tenant, and nobody else's business.
        resending(&scope, "o-1".into(), 6, provider.clone()).await.expect_err("other arguments");
    }
    assert_eq!(ids.len(), 3);
    assert_eq!(HashSet::<String>::from_iter(provider.keys()).len(), 3, "nor do they share a provider key");
    assert!(executor.tenant("").is_err(), "there is no bucket for those without a name");
}

async fn f33_one_key_under_two_operations_is_two_effects(ledger: Arc<dyn Ledger>) {
    let provider = Scripted::deduplicating([]);
    let executor = executor(&ledger);
    let (receipt, scope) = receipted(&executor);
    holding(&scope, "o-1".into(), 5, provider.clone()).await.expect("performed");
    let one = receipt.effect_id();
    rerunning(&scope, "o-1".into(), 5, provider.clone()).await.expect("performed");
    assert_ne!(one, receipt.effect_id());
    assert_eq!(HashSet::<String>::from_iter(provider.keys()).len(), 2);
}

/// The client holds the credential, and is a skipped argument.
async fn f34_a_rotated_credential_of_one_tenant_replays(ledger: Arc<dyn Ledger>) {
    let (before, after) = (Scripted::forgetful([]), Scripted::forgetful([]));
    let first = {
        let (_, scope) = receipted(&executor(&ledger));
        holding(&scope, "o-1".into(), 5, before.clone()).await.expect("performed")
    };
    // Another process, with another key for provider and ledger alike.
    let (receipt, scope) = receipted(&executor(&ledger));
    let again = holding(&scope, "o-1".into(), 5, after.clone()).await.expect("replayed");
    assert_eq!((again, receipt.replayed()), (first, true));
    assert_eq!((before.performed(), after.performed()), (1, 0));
}
