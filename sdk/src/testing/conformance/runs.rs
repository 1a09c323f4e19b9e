//! What is listed of a run.

use std::num::NonZeroUsize;

use super::support::*;
use crate::{
    Ledger,
    descriptor::RecoveryClass,
    identity::{InvocationId, NodeId, RunId, Tenant},
    ledger::{
        ClaimRequest, RunPage, RunRow, Task,
        record::{AttemptVerdict, Place, State},
    },
};

/// A run of its own.
fn run() -> RunId {
    RunId::mint(&Tenant::parse("conformance").expect("a valid tenant"))
}

fn in_run(request: ClaimRequest, run: &RunId) -> ClaimRequest {
    let node = NodeId::parse("charge").expect("a valid node");
    let invocation = InvocationId::parse("execution-1").expect("a valid invocation");
    ClaimRequest {
        place: Place { run: Some(run.clone()), node: Some(node), invocation: Some(invocation) },
        ..request
    }
}

fn page(after: Option<&RunRow>, rows_max: usize) -> RunPage {
    let rows_max = NonZeroUsize::new(rows_max).expect("more than none");
    RunPage { after: after.map(RunRow::cursor), rows_max }
}

async fn list(ledger: &dyn Ledger, run: &RunId) -> Vec<RunRow> {
    ledger.of_run(run, &page(None, 1_000)).await.expect("a list")
}

/// Attempts and states, in the list's order.
fn shown(rows: &[RunRow]) -> Vec<(u32, State)> {
    rows.iter().map(|row| (row.attempt, row.state)).collect()
}

/// A run that did nothing lists nothing, and so does a call outside any run.
pub async fn a_run_without_effects_lists_none(ledger: &dyn Ledger) {
    win(ledger, &request()).await;
    assert_eq!(list(ledger, &run()).await, []);
}

/// Each attempt of the run is a row: the latest shows where the effect stands, an earlier one how it ended.
pub async fn a_run_lists_each_of_its_attempts(ledger: &dyn Ledger) {
    let run = run();
    let first = in_run(request(), &run);
    let record = win(ledger, &first).await;
    assert_eq!(shown(&list(ledger, &run).await), [(1, State::Claimed)]);
    apply(ledger, &record, &end(AttemptVerdict::NotPerformed)).await;
    assert_eq!(shown(&list(ledger, &run).await), [(1, State::Released)]);
    let second = win(ledger, &again(&first)).await;
    apply(ledger, &second, &success(b"1")).await;
    let rows = list(ledger, &run).await;
    assert_eq!(shown(&rows), [(1, State::Released), (2, State::Completed)]);
    for (row, started_at) in rows.iter().zip([record.started_at, second.started_at]) {
        assert_eq!((&row.effect, row.keying), (&first.id, first.keying));
        assert_eq!((&row.node, &row.invocation), (&first.place.node, &first.place.invocation));
        assert_eq!((row.at, &*row.provider_key), (started_at, &*first.provider_key));
    }
}

/// An attempt that was taken over is escaped in the list of the run that made it; the run that took over lists its own.
pub async fn an_attempt_belongs_to_the_run_that_made_it(ledger: &dyn Ledger) {
    let (one, other) = (run(), run());
    let first = in_run(short(RecoveryClass::Rerun), &one);
    win(ledger, &first).await;
    let second = in_run(again(&first), &other);
    let second = won(ledger, claim_after_lease(ledger, &second).await, Task::Perform).await;
    apply(ledger, &second, &success(b"1")).await;
    assert_eq!(shown(&list(ledger, &one).await), [(1, State::Escaped)]);
    assert_eq!(shown(&list(ledger, &other).await), [(2, State::Completed)]);
}

/// A run that meets an effect of another lists it once, from the first time, and as it stands.
pub async fn a_run_lists_what_it_met_once(ledger: &dyn Ledger) {
    let (one, other) = (run(), run());
    let first = in_run(request(), &one);
    let record = win(ledger, &first).await;
    apply(ledger, &record, &success(b"1")).await;
    let met = in_run(again(&first), &other);
    claim(ledger, &met).await;
    let rows = list(ledger, &other).await;
    assert_eq!(shown(&rows), [(1, State::Completed)]);
    assert_eq!((&rows[0].node, &rows[0].invocation), (&met.place.node, &met.place.invocation));
    assert!(rows[0].at >= record.started_at, "the time of the touch");
    claim(ledger, &again(&met)).await;
    assert_eq!(list(ledger, &other).await, rows, "the first touch stays");
    claim(ledger, &again(&first)).await;
    assert_eq!(
        shown(&list(ledger, &one).await),
        [(1, State::Completed)],
        "a replay in its own run adds none"
    );
}

/// A run whose claim only looks what became of an effect has met it.
pub async fn a_run_that_looks_has_met_the_effect(ledger: &dyn Ledger) {
    let (one, other) = (run(), run());
    let first = ClaimRequest { can_look_up: true, ..in_run(short(RecoveryClass::Reconcile), &one) };
    win(ledger, &first).await;
    let looks = in_run(again(&first), &other);
    let record = won(ledger, claim_after_lease(ledger, &looks).await, Task::LookUp).await;
    apply(ledger, &record, &success(b"1")).await;
    assert_eq!(shown(&list(ledger, &one).await), [(1, State::Completed)]);
    assert_eq!(shown(&list(ledger, &other).await), [(1, State::Completed)]);
}

/// A run that made an attempt after it met the effect lists the attempt.
pub async fn an_attempt_takes_the_place_of_a_touch(ledger: &dyn Ledger) {
    let (one, other) = (run(), run());
    let first = in_run(short(RecoveryClass::Hold), &one);
    let record = win(ledger, &first).await;
    let met = in_run(again(&first), &other);
    lease_ended(ledger, &record).await;
    claim(ledger, &met).await;
    assert_eq!(shown(&list(ledger, &other).await), [(1, State::Escaped)]);
    apply(ledger, &record, &end(AttemptVerdict::NotPerformed)).await;
    let second = win(ledger, &again(&met)).await;
    apply(ledger, &second, &success(b"1")).await;
    assert_eq!(shown(&list(ledger, &other).await), [(2, State::Completed)]);
    assert_eq!(shown(&list(ledger, &one).await), [(1, State::Released)]);
}

/// Pages follow on each other without a gap or a row twice, also where rows have one time.
pub async fn pages_follow_on_each_other(ledger: &dyn Ledger) {
    let run = run();
    let requests: Vec<_> = (0..23).map(|_| in_run(request(), &run)).collect();
    let claims: Vec<_> = requests
        .iter()
        .map(|request| Box::pin(async move { drop(win(ledger, request).await) }) as _)
        .collect();
    join_all(claims).await;
    let whole = list(ledger, &run).await;
    assert_eq!(whole.len(), requests.len());
    assert!(whole.is_sorted_by(|one, next| one.cursor() < next.cursor()), "by time, attempt and effect");
    let mut paged: Vec<RunRow> = Vec::new();
    loop {
        let rows = ledger.of_run(&run, &page(paged.last(), 5)).await.expect("a page");
        if rows.is_empty() {
            break;
        }
        assert!(rows.len() == 5 || paged.len() + rows.len() == whole.len(), "only the last page is short");
        paged.extend(rows);
    }
    assert_eq!(paged, whole);
}
