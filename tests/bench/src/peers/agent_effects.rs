//! `agent-effects` 0.2: a record before the call, a lease, an outcome, and an audit event for each.
//!
//! Its stores as their own documentation opens them: SQLite with `synchronous = FULL` and 8 connections, PostgreSQL with 10
//! connections; its own settings, and what its quick start shows: an irreversible write, an input, a remote that deduplicates.
//!
//! What it promises less: one identity for one name and key, without tenants, runs or versions; no witness; a pruned key is
//! new again; a lost settle of an effect that neither deduplicates nor can be asked waits for an operator, as here.

use std::sync::Arc;

use agent_effects::{EffectFailure, EffectKind, EffectOutcome, EffectStore, Runtime};
use agent_effects_postgres::PostgresStore;
use agent_effects_sqlite::SqliteStore;
use async_trait::async_trait;

use crate::contender::{Contender, Provider};

pub(crate) struct AgentEffects<S> {
    runtime: Runtime<S>,
    provider: Arc<Provider>,
}

pub(crate) async fn sqlite(path: &std::path::Path, provider: &Arc<Provider>) -> AgentEffects<SqliteStore> {
    let store = SqliteStore::open(path).await.expect("a store");
    AgentEffects { runtime: Runtime::new(store), provider: Arc::clone(provider) }
}

pub(crate) async fn postgres(url: &str, provider: &Arc<Provider>) -> AgentEffects<PostgresStore> {
    let store = PostgresStore::connect(url).await.expect("a store");
    AgentEffects { runtime: Runtime::new(store), provider: Arc::clone(provider) }
}

#[async_trait]
impl<S: EffectStore + 'static> Contender for AgentEffects<S> {
    async fn perform(&self, key: u64) {
        let provider = Arc::clone(&self.provider);
        let outcome = self
            .runtime
            .effect("order", key)
            .kind(EffectKind::IrreversibleWrite)
            .input(&key)
            .remote_idempotency(true)
            .run(move |_cx| {
                provider.perform();
                async move { Ok::<u64, EffectFailure>(key) }
            })
            .await
            .expect("an outcome");
        assert!(matches!(outcome, EffectOutcome::Committed(value) if value == key), "it is committed");
    }

    fn count(&self) -> &'static str {
        "SELECT count(*) FROM effects WHERE status = 'committed'"
    }
}
