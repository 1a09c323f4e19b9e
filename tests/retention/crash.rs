//! A sweeper that is killed amid its work.

use std::time::Duration;

use effectual::{
    ErrorKind,
    ledger::{Sweep, record::State},
    retention::{RetentionPolicy, sweep},
};
use effectual_tests::{
    process::{Process, tell, told},
    scripted::{Act, Scripted},
};

use crate::{
    effects::*,
    place::{DAY, Place, TODAY, open_at},
};

const DUE: u32 = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the test of this file in a process of its own"]
async fn child_sweeps() {
    let (place, _) = told();
    let ledger = open_at(&place.display().to_string(), DAY * 31).await;
    loop {
        let swept = ledger.sweep(Sweep::Outcomes { at_most: 3 }).await.expect("a batch");
        tell(swept.effects);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweeper_that_is_killed_loses_nothing() {
    for place in Place::all("retention: a killed sweeper").await {
        let ledger = place.open(TODAY).await;
        let provider = Scripted::forgetful([Act::PerformAndLose, Act::NoConnection]);
        let short = builder(&ledger).retry(quick().attempts_max(1)).build().expect("a valid set-up");
        let long = builder(&ledger).retention(DAY * 400).build().expect("a valid set-up");
        let mut unsettled = Vec::new();
        for order in ["escaped", "released"] {
            let (receipt, scope) = receipted(&short);
            holding(&scope, order.into(), 5, provider.clone()).await.expect_err("no outcome");
            unsettled.push((record(&short, &receipt).await, receipt));
        }
        let (_, kept_long) = receipted(&long);
        let (_, kept_short) = receipted(&short);
        for order in 0..DUE {
            holding(&kept_short, format!("due-{order}"), 5, provider.clone()).await.expect("performed");
        }
        holding(&kept_long, "long".into(), 5, provider.clone()).await.expect("performed");
        let performed = provider.performed();

        for batches in [1, 2, 4] {
            let mut child = Process::start("crash::child_sweeps", place.url(), 0, |_| {});
            for _ in 0..batches {
                child.next_line().expect("a batch");
            }
            drop(child.kill());
        }
        for order in 0..DUE {
            let answer = holding(&kept_short, format!("due-{order}"), 5, provider.clone()).await;
            // Whole, or forgotten.
            assert!(answer.is_ok_or_expired(), "on {}", place.name());
        }
        let later = place.open(DAY * 31).await;
        let policy = RetentionPolicy::default().pause(Duration::ZERO);
        let rest = sweep(&*later, &policy).await.expect("a pass").forgotten;
        assert!(rest < u64::from(DUE) - 8, "the children did something");
        for order in 0..DUE {
            let answer = holding(&kept_short, format!("due-{order}"), 5, provider.clone()).await;
            assert_eq!(answer.expect_err("forgotten").kind(), ErrorKind::Expired);
        }
        holding(&kept_long, "long".into(), 5, provider.clone()).await.expect("kept");
        for (before, receipt) in unsettled {
            assert_ne!(before.state, State::Completed);
            assert_eq!(record(&short, &receipt).await, before, "on {}", place.name());
        }
        assert_eq!(provider.performed(), performed);
    }
}

trait Answer {
    fn is_ok_or_expired(&self) -> bool;
}

impl<T, E> Answer for effectual::Result<T, E> {
    fn is_ok_or_expired(&self) -> bool {
        self.as_ref().map_or_else(|error| error.kind() == ErrorKind::Expired, |_| true)
    }
}
