//! A thousand callers of one effect that is in flight, counted by what they ask of the ledger.

use std::{
    collections::BTreeSet,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use effectual::{
    EffectContext, ErrorKind, Executor, Ledger, PostgresLedger, RunId, TenantScope, effect, ledger::RunPage,
};
use effectual_tests::{
    counting::Counting,
    database::PostgresDatabase,
    ledgers, on_each_ledger,
    scripted::{Act, Done, Scripted, ScriptedError},
    servers,
    wait::until,
};
use sqlx::{Connection, PgConnection};
use tokio::{sync::watch, task::JoinHandle};

use crate::effects::*;

on_each_ledger![
    a_thousand_callers_of_one_effect_are_one_claim,
    a_thousand_callers_of_anothers_effect_ask_as_one,
    f23_a_caller_that_asks_for_something_else_is_told_at_once,
    each_waits_up_to_its_own_limit,
    none_of_a_crowd_piles_on_a_winner_that_gave_up,
    every_run_of_a_crowd_has_met_the_effect,
];

const CROWD: usize = 1_000;
/// Far longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(60);

/// A body waits here until the test opens it.
#[derive(Clone)]
struct Gate {
    open: watch::Sender<bool>,
    entered: Arc<AtomicU32>,
}

impl Gate {
    fn closed() -> Self {
        Self { open: watch::Sender::new(false), entered: Arc::default() }
    }

    async fn pass(&self) {
        self.entered.fetch_add(1, Ordering::SeqCst);
        let _ = self.open.subscribe().wait_for(|open| *open).await;
    }

    async fn entered(&self) {
        until("a body runs", LIMIT, async || self.entered.load(Ordering::SeqCst) > 0).await;
    }

    fn open(&self) {
        self.open.send_replace(true);
    }
}

#[effect(keying = business_identity)]
async fn behind_gate(
    cx: &EffectContext,
    #[key] order: String,
    amount: u64,
    #[skip] gate: Gate,
    #[skip] provider: Scripted,
) -> effectual::Result<Done, ScriptedError> {
    gate.pass().await;
    Ok(provider.send(cx, &format!("{order}/{amount}")).await?)
}

type Ended = effectual::Result<Done, ScriptedError>;

fn patient(ledger: &Arc<dyn Ledger>) -> (Executor, Counting) {
    let counting = Counting::new(ledger);
    let shared: Arc<dyn Ledger> = Arc::new(counting.clone());
    let executor = builder(&shared).attempt_timeout(LIMIT).lease(LIMIT * 3).wait(LIMIT * 2);
    (executor.build().expect("a valid set-up"), counting)
}

fn call(scope: &TenantScope, gate: &Gate, provider: &Scripted) -> JoinHandle<Ended> {
    tokio::spawn(behind_gate(scope, "o-1".into(), 5, gate.clone(), provider.clone()))
}

fn crowd(scope: &TenantScope, gate: &Gate, provider: &Scripted) -> Vec<JoinHandle<Ended>> {
    (0..CROWD).map(|_| call(scope, gate, provider)).collect()
}

/// Waits until so many calls have begun: each has its caller's task and its own.
async fn begun(calls: usize) {
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    until("every call has its task", LIMIT, async || alive() >= 2 * calls).await;
}

async fn all(calls: Vec<JoinHandle<Ended>>) -> Vec<Ended> {
    let mut ends = Vec::new();
    for call in calls {
        ends.push(call.await.expect("no panic"));
    }
    ends
}

async fn one_answer(calls: Vec<JoinHandle<Ended>>) {
    for end in all(calls).await {
        assert_eq!(end.expect("one outcome for all").number, 1);
    }
}

async fn a_thousand_callers_of_one_effect_are_one_claim(ledger: Arc<dyn Ledger>) {
    let (gate, provider) = (Gate::closed(), Scripted::forgetful([]));
    let (executor, asked) = patient(&ledger);
    let (_, scope) = receipted(&executor);
    // At once, so that none has an answer to go by; and later ones, who find it in flight.
    let calls = crowd(&scope, &gate, &provider);
    gate.entered().await;
    let later = crowd(&scope, &gate, &provider);
    begun(2 * CROWD).await;
    assert_eq!(asked.claims(), 1);
    gate.open();
    one_answer(calls.into_iter().chain(later).collect()).await;
    assert_eq!((provider.performed(), asked.reads()), (1, 0));
    // A call whose task was not looked at until the outcome was stored asks for itself.
    assert!(asked.claims() <= 1 + CROWD as u64 / 10, "{} claims", asked.claims());
}

async fn a_thousand_callers_of_anothers_effect_ask_as_one(ledger: Arc<dyn Ledger>) {
    let (gate, provider) = (Gate::closed(), Scripted::forgetful([]));
    let (winner, losers) = (patient(&ledger).0, patient(&ledger));
    let won = call(&receipted(&winner).1, &gate, &provider);
    gate.entered().await;
    let (executor, asked) = losers;
    let calls = crowd(&receipted(&executor).1, &gate, &provider);
    begun(CROWD).await;
    until("they have looked several times", LIMIT, async || asked.reads() >= 4).await;
    assert_eq!(asked.claims(), 1);
    gate.open();
    one_answer(calls).await;
    assert_eq!(won.await.expect("no panic").expect("performed").number, 1);
    assert_eq!(asked.claims(), 2, "one that found it in flight, and one that found its outcome");
    assert!(asked.reads() < 40, "{} reads", asked.reads());
    assert_eq!(provider.performed(), 1);
}

async fn f23_a_caller_that_asks_for_something_else_is_told_at_once(ledger: Arc<dyn Ledger>) {
    let (gate, provider) = (Gate::closed(), Scripted::forgetful([]));
    let executors = [patient(&ledger).0, patient(&ledger).0];
    let scopes = executors.each_ref().map(|executor| receipted(executor).1);
    let won = call(&scopes[0], &gate, &provider);
    gate.entered().await;
    let waiting = scopes.each_ref().map(|scope| call(scope, &gate, &provider));
    for scope in &scopes {
        let other = behind_gate(scope, "o-1".into(), 6, gate.clone(), provider.clone());
        assert_eq!(other.await.expect_err("another amount").kind(), ErrorKind::Mismatch);
    }
    assert!(waiting.iter().all(|call| !call.is_finished()), "the effect is in flight all along");
    gate.open();
    one_answer(waiting.into_iter().chain([won]).collect()).await;
}

async fn each_waits_up_to_its_own_limit(ledger: Arc<dyn Ledger>) {
    let (gate, provider) = (Gate::closed(), Scripted::forgetful([]));
    let short = |wait| {
        let executor = builder(&ledger).attempt_timeout(LIMIT).lease(LIMIT * 3).wait(wait).build();
        executor.expect("a valid set-up")
    };
    let executors = [Duration::from_millis(50), Duration::from_millis(50), Duration::ZERO].map(short);
    let won = call(&receipted(&executors[0]).1, &gate, &provider);
    gate.entered().await;
    for executor in &executors {
        let calls = (0..5).map(|_| call(&receipted(executor).1, &gate, &provider)).collect();
        for end in all(calls).await {
            let error = end.expect_err("in flight");
            assert_eq!(error.kind(), ErrorKind::InFlight);
            assert!(error.retry_after().is_some_and(|left| left > Duration::ZERO && left <= LIMIT * 3));
        }
    }
    gate.open();
    one_answer(vec![won]).await;
}

async fn none_of_a_crowd_piles_on_a_winner_that_gave_up(ledger: Arc<dyn Ledger>) {
    let (gate, provider) = (Gate::closed(), Scripted::forgetful([Act::BadCredential]));
    let ((winner, _), (other, asked)) = (patient(&ledger), patient(&ledger));
    let scopes = [&winner, &other].map(|executor| receipted(executor).1);
    let won = call(&scopes[0], &gate, &provider);
    gate.entered().await;
    let calls: Vec<_> = scopes.iter().flat_map(|scope| crowd(scope, &gate, &provider)).collect();
    begun(2 * CROWD).await;
    until("the other process waits", LIMIT, async || asked.reads() >= 4).await;
    gate.open();
    assert_eq!(won.await.expect("no panic").expect_err("refused").kind(), ErrorKind::Failed);
    for end in all(calls).await {
        let error = end.expect_err("nothing was performed");
        assert_eq!((error.kind(), error.retry_after()), (ErrorKind::RetryLater, Some(Duration::ZERO)));
    }
    assert_eq!((provider.keys().len(), provider.performed()), (1, 0));
}

async fn every_run_of_a_crowd_has_met_the_effect(ledger: Arc<dyn Ledger>) {
    let (gate, provider) = (Gate::closed(), Scripted::forgetful([]));
    let (executor, _) = patient(&ledger);
    let (_, scope) = receipted(&executor);
    let won = call(&scope, &gate, &provider);
    gate.entered().await;
    let runs: BTreeSet<RunId> = (0..20).map(|_| RunId::mint(&"acme".parse().expect("a tenant"))).collect();
    let calls = runs.iter().map(|run| {
        let scope = scope.run(run.clone()).expect("a run");
        tokio::spawn(behind_gate(&scope, "o-1".into(), 5, gate.clone(), provider.clone()))
    });
    let calls: Vec<_> = calls.chain([won]).collect();
    gate.open();
    one_answer(calls).await;
    let page = RunPage { after: None, rows_max: NonZeroUsize::MIN.saturating_add(9) };
    for run in &runs {
        assert_eq!(ledger.of_run(run, &page).await.expect("a list").len(), 1);
    }
    assert_eq!(provider.performed(), 1);
}

/// The one that asks for the others gets an error of the ledger: they ask for themselves.
#[tokio::test]
async fn an_error_of_the_ledger_is_one_callers_own() {
    let ledger = ledgers::memory().ledger;
    let (gate, provider) = (Gate::closed(), Scripted::forgetful([]));
    let (executor, asked) = patient(&ledger);
    let (_, scope) = receipted(&executor);
    asked.fail_next_claim();
    let calls = (0..10).map(|_| call(&scope, &gate, &provider)).collect();
    gate.entered().await;
    gate.open();
    let ends = all(calls).await;
    let errors: Vec<_> = ends.iter().filter_map(|end| end.as_ref().err()).map(|error| error.kind()).collect();
    assert_eq!((errors, provider.performed()), (vec![ErrorKind::Ledger], 1));
}

/// On PostgreSQL, where each process has a ledger of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_takes_no_connections() {
    let Some(server) = servers::postgres("crowds: connections") else { return };
    let database = PostgresDatabase::create(&server).await;
    let open = async || PostgresLedger::connect(&database.url()).await.expect("a ledger");
    let (here, there): (Arc<dyn Ledger>, Arc<dyn Ledger>) = (Arc::new(open().await), Arc::new(open().await));
    let mut observer = PgConnection::connect(&database.url()).await.expect("a connection");
    let connections = async |observer: &mut PgConnection| -> i64 {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()";
        sqlx::query_scalar(sql).fetch_one(observer).await.expect("a count")
    };
    let (gate, provider) = (Gate::closed(), Scripted::forgetful([]));
    let ((winner, _), (other, asked)) = (patient(&here), patient(&there));
    let won = call(&receipted(&winner).1, &gate, &provider);
    gate.entered().await;
    let mut calls: Vec<_> =
        [&winner, &other].map(|executor| call(&receipted(executor).1, &gate, &provider)).into();
    until("it waits", LIMIT, async || asked.reads() > 0).await;
    let before = connections(&mut observer).await;
    calls.extend([&winner, &other].iter().flat_map(|one| crowd(&receipted(one).1, &gate, &provider)));
    begun(2 * CROWD).await;
    let looked = asked.reads();
    until("it looks again", LIMIT, async || asked.reads() > looked).await;
    // Each ledger has a few that it opens when it first needs them.
    let opened = connections(&mut observer).await - before;
    assert!(opened < 6, "{opened} connections for {} callers", 2 * CROWD);
    gate.open();
    one_answer(calls.into_iter().chain([won]).collect()).await;
    assert_eq!((asked.claims(), provider.performed()), (2, 1));
    assert!(asked.reads() < 40, "{} reads", asked.reads());
}
