//! What the database refuses, and what it swallows.

use effectual::{ErrorKind, ProviderCalled};
use effectual_tests::scripted::Scripted;

use crate::{
    effects::*,
    place::{Place, TODAY},
};

/// What others have put on the ledger's table, and how it goes again.
const SQLITE: [(&str, &str); 2] = [
    (
        "CREATE TRIGGER mine BEFORE INSERT ON effectual_effects BEGIN SELECT RAISE(ABORT, 'not here'); END",
        "DROP TRIGGER mine",
    ),
    // The insert succeeds, and there is no row.
    (
        "CREATE TRIGGER mine BEFORE INSERT ON effectual_effects BEGIN SELECT RAISE(IGNORE); END",
        "DROP TRIGGER mine",
    ),
];

const POSTGRES: [(&str, &str); 4] = [
    (
        "ALTER TABLE effectual_effects ADD COLUMN mine text; ALTER TABLE effectual_effects ADD CHECK (mine IS NOT NULL)",
        "ALTER TABLE effectual_effects DROP COLUMN mine",
    ),
    (
        "ALTER TABLE effectual_effects ADD COLUMN mine text NOT NULL",
        "ALTER TABLE effectual_effects DROP COLUMN mine",
    ),
    (
        "CREATE TABLE tenants (name text PRIMARY KEY);
         ALTER TABLE effectual_effects ADD CONSTRAINT mine FOREIGN KEY (tenant) REFERENCES tenants",
        "DROP TABLE tenants CASCADE",
    ),
    (
        "CREATE FUNCTION mine() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
         CREATE TRIGGER mine BEFORE INSERT ON effectual_effects FOR EACH ROW EXECUTE FUNCTION mine()",
        "DROP FUNCTION mine CASCADE",
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f62_a_claim_that_the_database_refuses_or_swallows_starts_nothing() {
    for place in Place::all("field cases: refused claims").await {
        let ledger = place.open(TODAY).await;
        let provider = Scripted::forgetful([]);
        let executor = executor(&ledger);
        let (_, scope) = receipted(&executor);
        let cases = if place.file().is_some() { SQLITE.as_slice() } else { POSTGRES.as_slice() };
        for (put, take) in cases {
            place.execute(put).await;
            let error = holding(&scope, "o-1".into(), 5, provider.clone()).await.expect_err(put);
            assert_eq!(
                (error.kind(), error.provider_called()),
                (ErrorKind::Ledger, ProviderCalled::No),
                "{put} on {}: {error}",
                place.name()
            );
            assert_eq!(provider.keys().len(), 0, "{put} on {}", place.name());
            place.execute(take).await;
        }
        holding(&scope, "o-1".into(), 5, provider.clone()).await.expect("nothing is in the way any more");
        assert_eq!(provider.performed(), 1);
    }
}

/// The lease is written with the claim, and no row can be without one: no crash leaves a claim that never ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f61_no_claim_is_without_its_lease() {
    for place in Place::all("field cases: a lease with each claim").await {
        let ledger = place.open(TODAY).await;
        let (receipt, scope) = receipted(&executor(&ledger));
        holding(&scope, "o-1".into(), 5, Scripted::forgetful([])).await.expect("performed");
        let record = ledger.read(&receipt.effect_id().expect("an identity")).await.expect("an answer");
        let record = record.expect("recorded").effect;
        assert!(record.lease_until >= record.started_at);
        for column in ["lease_until", "attempt_timeout_ms", "started_at", "token", "fence"] {
            let sql = format!("UPDATE effectual_effects SET {column} = NULL");
            assert!(place.try_execute(&sql).await.is_err(), "{column} may be null on {}", place.name());
        }
    }
}
