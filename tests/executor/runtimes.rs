//! Without a runtime, with another one, and with one that goes away.

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use effectual::{ErrorKind, Executor, Ledger, MemoryLedger, ledger::record::State};
use effectual_tests::{
    scripted::{Act, Scripted},
    wait::until,
};

use crate::effects::*;

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls on this thread, which has no runtime.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

#[test]
fn building_without_a_runtime_says_how_to_do_it() {
    let error =
        Executor::builder(Arc::new(MemoryLedger::new()) as Arc<dyn Ledger>).build().expect_err("no runtime");
    assert!(error.to_string().contains("inside a Tokio runtime"), "{error}");
}

#[test]
fn a_call_needs_no_runtime_of_its_own() {
    let ledger: Arc<dyn Ledger> = Arc::new(MemoryLedger::new());
    let runtime = runtime();
    let executor = {
        let _in = runtime.enter();
        executor(&ledger)
    };
    let provider = Scripted::deduplicating([Act::PerformAndLose]);
    let (_, scope) = receipted(&executor);
    let done = block_on(resending(&scope, "o-1".into(), 5, provider.clone())).expect("performed");
    assert_eq!((done.number, provider.performed()), (1, 1));
}

#[test]
fn a_runtime_that_is_gone_starts_nothing() {
    let ledger: Arc<dyn Ledger> = Arc::new(MemoryLedger::new());
    let first = runtime();
    let executor = {
        let _in = first.enter();
        executor(&ledger)
    };
    drop(first);
    let provider = Scripted::forgetful([]);
    let error =
        block_on(holding(&receipted(&executor).1, "o-2".into(), 5, provider.clone())).expect_err("gone");
    assert_eq!((error.kind(), provider.performed()), (ErrorKind::Config, 0));
    assert!(error.to_string().contains("shut down"), "{error}");
}

#[test]
fn a_runtime_that_goes_away_during_an_effect_leaves_it_escaped() {
    let ledger: Arc<dyn Ledger> = Arc::new(MemoryLedger::new());
    let first = runtime();
    let executor = {
        let _in = first.enter();
        executor(&ledger)
    };
    let provider = Scripted::forgetful([Act::PerformAndHang]);
    let (receipt, scope) = receipted(&executor);
    let call = std::thread::spawn({
        let provider = provider.clone();
        move || block_on(holding(&scope, "o-3".into(), 5, provider))
    });
    let other = runtime();
    other.block_on(provider.next_arrival());
    first.shutdown_timeout(Duration::from_secs(5));
    let error = call.join().expect("no panic").expect_err("unknown");
    assert_eq!(error.kind(), ErrorKind::Escaped);
    // Written by a thread of the executor's own.
    other.block_on(until("the effect to be labelled", Duration::from_secs(10), async || {
        state(&executor, &receipt).await == State::Escaped
    }));
    assert_eq!(provider.performed(), 1);
}
