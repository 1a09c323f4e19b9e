//! `dbos` 0.5: durable workflows on PostgreSQL (it has no other database), in the same two ways as `durare`.
//!
//! Its configuration as it is by default: 10 connections, notifications on, a queue of its own for forks.
//!
//! What it promises less: as `durare`'s steps, one write after the effect and no claim before it; what a step asked for is
//! not compared on replay.

use std::sync::Arc;

use async_trait::async_trait;
use dbos::{Config, DBOS, EngineOnly, ForkFrom, ForkOptions, RunOptions, WorkflowRef};

use super::lanes::Lanes;
use crate::{
    caller::Caller,
    contender::{Contender, Provider},
};

const COUNT: &str = "SELECT count(*) FROM dbos.operation_outputs WHERE function_name = 'order'";

fn instance(url: &str) -> DBOS {
    DBOS::new(Config { app_version: Some("1".to_owned()), ..Config::new("bench", url) })
}

/// A step for each effect.
pub(crate) struct Steps {
    dbos: DBOS,
    lane: WorkflowRef<(), ()>,
    lanes: Arc<Lanes>,
}

pub(crate) async fn steps(url: &str, provider: &Arc<Provider>) -> Steps {
    let (dbos, lanes) = (instance(url), Arc::<Lanes>::default());
    let (at, body) = (Arc::clone(&lanes), Arc::clone(provider));
    let lane = dbos.register_workflow("lane", move |(): ()| lane(Arc::clone(&at), Arc::clone(&body)));
    let lane = lane.expect("a workflow");
    dbos.launch().await.expect("it launches");
    Steps { dbos, lane, lanes }
}

/// One caller's workflow; re-run, it finds its steps recorded.
async fn lane(lanes: Arc<Lanes>, provider: Arc<Provider>) -> dbos::Result<()> {
    let id = dbos::workflow_id().expect("inside a workflow");
    let mut caller = lanes.take(&id);
    let (mut steps, again) = (0, caller.is_limited());
    caller.ready().await;
    while let Some(key) = caller.next() {
        let provider = &provider;
        let step = move || async move {
            provider.perform();
            dbos::Result::<u64>::Ok(key)
        };
        dbos::step("order", step).await?;
        caller.done();
        steps += 1;
    }
    lanes.record(&id, steps, again);
    Ok(())
}

#[async_trait]
impl Contender for Steps {
    async fn perform(&self, _key: u64) {
        unreachable!("its effects are performed in workflows")
    }

    async fn performing(&self, caller: Caller) {
        let id = self.lanes.enter(caller);
        let options = RunOptions { workflow_id: Some(&id), ..RunOptions::default() };
        self.lane.run_with((), options).await.expect("it ends");
    }

    /// A fork after the last step: a new run of the workflow, all of whose steps are recorded.
    async fn replaying(&self, mut caller: Caller) {
        let (recorded, steps) = self.lanes.recorded(caller.number());
        caller.at_most(steps);
        let id = self.lanes.enter(caller);
        let from = ForkFrom::Step(i32::try_from(steps).expect("fewer steps than fit"));
        let options = ForkOptions { forked_id: Some(&id), ..ForkOptions::default() };
        let fork = self.dbos.fork_with::<(), EngineOnly>(&recorded, from, options).await.expect("a fork");
        fork.result().await.expect("it ends");
        self.dbos.delete(&id).await.expect("it is deleted");
    }

    fn count(&self) -> &'static str {
        COUNT
    }

    async fn close(&self) {
        self.dbos.shutdown().await;
    }
}

/// A workflow for each effect.
pub(crate) struct Workflows {
    dbos: DBOS,
    order: WorkflowRef<u64, u64>,
}

pub(crate) async fn workflows(url: &str, provider: &Arc<Provider>) -> Workflows {
    let dbos = instance(url);
    let body = Arc::clone(provider);
    let order = dbos.register_workflow("order", move |key: u64| order(key, Arc::clone(&body)));
    let order = order.expect("a workflow");
    dbos.launch().await.expect("it launches");
    Workflows { dbos, order }
}

/// One effect's workflow.
async fn order(key: u64, provider: Arc<Provider>) -> dbos::Result<u64> {
    let provider = &provider;
    let step = move || async move {
        provider.perform();
        dbos::Result::<u64>::Ok(key)
    };
    dbos::step("order", step).await
}

#[async_trait]
impl Contender for Workflows {
    async fn perform(&self, key: u64) {
        let id = format!("order-{key}");
        let options = RunOptions { workflow_id: Some(&id), ..RunOptions::default() };
        assert_eq!(self.order.run_with(key, options).await.expect("an outcome"), key);
    }

    fn count(&self) -> &'static str {
        COUNT
    }

    async fn close(&self) {
        self.dbos.shutdown().await;
    }
}
