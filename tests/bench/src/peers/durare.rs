//! `durare` 0.5: durable workflows, in two ways.
//!
//! As [`steps`](Steps), one long workflow for each caller and one step for each effect: one write, after the effect. As
//! [`workflows`](Workflows), one workflow for each effect with the business key as its id, which is what its documentation
//! offers to who wants a call to be found again.
//!
//! Its providers as its documentation connects them: PostgreSQL with 8 connections; SQLite with 5 and
//! `synchronous = NORMAL`, with which a power cut takes the last commits. `durare-step-full` is the same with `FULL`, over a
//! pool handed in.
//!
//! What it promises less: nothing is written before a step's effect, so a crash after the effect and before the write
//! repeats it, and two processes may perform one step at the same time; what a step asked for is not compared on replay.

use std::{path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use durare::{DurableContext, DurableEngine, PostgresProvider, Result, SqliteProvider, WorkflowOptions};
use sqlx_of_durare::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

use super::lanes::Lanes;
use crate::{
    caller::Caller,
    contender::{Contender, Provider},
};

/// Where it keeps its state.
pub(crate) enum At<'a> {
    Sqlite(&'a Path),
    SqliteFull(&'a Path),
    Postgres(&'a str),
}

async fn engine(at: At<'_>, lanes: &Arc<Lanes>, provider: &Arc<Provider>) -> DurableEngine {
    let mut builder = match at {
        At::Sqlite(path) => {
            let url = format!("sqlite://{}", path.display());
            DurableEngine::builder(Arc::new(SqliteProvider::connect(&url).await.expect("a database")))
        }
        At::SqliteFull(path) => {
            let options = SqliteConnectOptions::new()
                .filename(path)
                .create_if_missing(true)
                .foreign_keys(true)
                .journal_mode(SqliteJournalMode::Wal)
                .synchronous(SqliteSynchronous::Full)
                .busy_timeout(Duration::from_secs(5));
            let pool = SqlitePoolOptions::new().max_connections(5).connect_with(options).await;
            DurableEngine::builder(Arc::new(SqliteProvider::from_pool(pool.expect("a database"))))
        }
        At::Postgres(url) => {
            DurableEngine::builder(Arc::new(PostgresProvider::connect(url).await.expect("a server")))
        }
    };
    let (lanes, body) = (Arc::clone(lanes), Arc::clone(provider));
    builder
        .register("lane", move |cx: DurableContext, _: ()| lane(cx, Arc::clone(&lanes), Arc::clone(&body)));
    let body = Arc::clone(provider);
    builder.register("order", move |cx: DurableContext, key: u64| order(cx, key, Arc::clone(&body)));
    let engine = builder.build().await.expect("an engine");
    engine.launch().await.expect("it launches");
    engine
}

/// One caller's workflow; re-run, it finds its steps recorded.
async fn lane(cx: DurableContext, lanes: Arc<Lanes>, provider: Arc<Provider>) -> Result<()> {
    let mut caller = lanes.take(cx.workflow_id());
    let (mut steps, again) = (0, caller.is_limited());
    caller.ready().await;
    while let Some(key) = caller.next() {
        let step = || async {
            provider.perform();
            Ok::<u64, durare::Error>(key)
        };
        cx.step("order", step).await?;
        caller.done();
        steps += 1;
    }
    lanes.record(cx.workflow_id(), steps, again);
    Ok(())
}

/// One effect's workflow.
async fn order(cx: DurableContext, key: u64, provider: Arc<Provider>) -> Result<u64> {
    let step = || async {
        provider.perform();
        Ok::<u64, durare::Error>(key)
    };
    cx.step("order", step).await
}

/// A step for each effect.
pub(crate) struct Steps {
    engine: DurableEngine,
    lanes: Arc<Lanes>,
    count: &'static str,
}

pub(crate) async fn steps(at: At<'_>, provider: &Arc<Provider>) -> Steps {
    let (lanes, count) = (Arc::default(), count(&at));
    Steps { engine: engine(at, &lanes, provider).await, lanes, count }
}

fn count(at: &At<'_>) -> &'static str {
    match at {
        At::Postgres(_) => "SELECT count(*) FROM dbos.operation_outputs WHERE function_name = 'order'",
        At::Sqlite(_) | At::SqliteFull(_) => {
            "SELECT count(*) FROM operation_outputs WHERE function_name = 'order'"
        }
    }
}

#[async_trait]
impl Contender for Steps {
    async fn perform(&self, _key: u64) {
        unreachable!("its effects are performed in workflows")
    }

    async fn performing(&self, caller: Caller) {
        let id = self.lanes.enter(caller);
        let lane = self.engine.start::<(), ()>("lane", (), WorkflowOptions::with_id(id)).await;
        lane.expect("a workflow").result().await.expect("it ends");
    }

    /// A fork after the last step: a new run of the workflow, all of whose steps are recorded.
    async fn replaying(&self, mut caller: Caller) {
        let (recorded, steps) = self.lanes.recorded(caller.number());
        caller.at_most(steps);
        let id = self.lanes.enter(caller);
        let from = i32::try_from(steps).expect("fewer steps than fit");
        let fork =
            self.engine.fork_workflow::<()>(&recorded, from, WorkflowOptions::with_id(id.clone())).await;
        fork.expect("a fork").result().await.expect("it ends");
        self.engine.delete_workflows(&[id], false).await.expect("it is deleted");
    }

    fn count(&self) -> &'static str {
        self.count
    }

    async fn close(&self) {
        self.engine.shutdown(Duration::from_secs(10)).await.expect("it ends");
    }
}

/// A workflow for each effect.
pub(crate) struct Workflows {
    engine: DurableEngine,
    count: &'static str,
}

pub(crate) async fn workflows(at: At<'_>, provider: &Arc<Provider>) -> Workflows {
    let count = count(&at);
    Workflows { engine: engine(at, &Arc::default(), provider).await, count }
}

#[async_trait]
impl Contender for Workflows {
    async fn perform(&self, key: u64) {
        let options = WorkflowOptions::with_id(format!("order-{key}"));
        let handle = self.engine.start::<u64, u64>("order", key, options).await.expect("a workflow");
        assert_eq!(handle.result().await.expect("an outcome"), key);
    }

    fn count(&self) -> &'static str {
        self.count
    }

    async fn close(&self) {
        self.engine.shutdown(Duration::from_secs(10)).await.expect("it ends");
    }
}
