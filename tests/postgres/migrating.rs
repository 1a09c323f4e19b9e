//! From version 4, where every row went to the rules of the domain, to this one.

use effectual::{Ledger, ledger::Owner};

use crate::{apply, database, execute, ledger, number, raw, request, settle, win};

/// What version 4 had in place of this one's.
const BACK: &str = "BEGIN;
    ALTER TABLE effectual_effects DROP CONSTRAINT is_an_effect,
        ADD CONSTRAINT is_an_effect CHECK (num_nulls(effectual_effects::effectual_effect) = 0);
    DROP FUNCTION effectual_is_an_effect(effectual_effects, effectual_effect[]);
    UPDATE effectual_schema SET version = 4;
    COMMIT";

/// Whoever is connected keeps its session, its prepared statements and its claims.
#[tokio::test]
async fn who_is_connected_goes_on_through_the_migration() {
    let Some(database) = database("a migration under way").await else { return };
    let mut connection = raw(&database).await;
    let before = ledger(&database).await;
    execute(&mut connection, BACK).await;
    let held = win(&before, &request("one")).await;
    let after = ledger(&database).await;
    let version = "SELECT version::bigint FROM effectual_schema";
    assert_eq!(number(&mut connection, version).await, 5, "migrated when it was opened");
    apply(&before, &Owner::of(&held), &settle(b"1")).await;
    let held = win(&before, &request("two")).await;
    apply(&after, &Owner::of(&held), &settle(b"2")).await;
    let completed = "SELECT count(*) FROM effectual_effects WHERE state = 'completed'";
    assert_eq!(number(&mut connection, completed).await, 2);
    for name in ["one", "two"] {
        let read = before.read(&request(name).id).await.expect("an answer").expect("a row");
        assert!(read.effect.outcome.is_some(), "{name}");
    }
}

/// The rules are found by whoever writes, also where no search path leads to them, as when a dump is loaded.
#[tokio::test]
async fn the_rules_are_found_without_a_search_path() {
    let Some(database) = database("rules without a search path").await else { return };
    win(&ledger(&database).await, &request("one")).await;
    let mut connection = raw(&database).await;
    execute(&mut connection, "SET search_path = ''").await;
    let release =
        "UPDATE public.effectual_effects SET state = 'released', ended_at = 1, verdict = 'not_performed',
        key_taken = false";
    execute(&mut connection, release).await;
    let escape = "UPDATE public.effectual_effects SET state = 'escaped'";
    let refused = sqlx::raw_sql(escape).execute(&mut connection).await.expect_err("nothing is in doubt");
    let rule = refused.as_database_error().and_then(|error| error.constraint());
    assert_eq!(rule, Some("escaped_is_doubted"), "{refused}");
}
