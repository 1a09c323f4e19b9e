//! What the start-up check refuses, and what the error says.

use std::{sync::Arc, time::Duration};

use effectual::{Ledger, MemoryLedger, Provider as _};

use crate::effects::*;

fn memory() -> Arc<dyn Ledger> {
    Arc::new(MemoryLedger::new())
}

fn refused(builder: effectual::ExecutorBuilder) -> String {
    builder.build().expect_err("a wrong set-up").to_string()
}

#[tokio::test]
async fn a_retention_under_14_days() {
    let text = refused(builder(&memory()).retention(Duration::from_secs(13 * 86_400)));
    assert!(text.contains("`retention`") && text.contains("14 days"), "{text}");
}

#[tokio::test]
async fn f30_a_lease_within_the_attempt_timeout() {
    let text = refused(builder(&memory()).attempt_timeout(Duration::from_secs(60)));
    for field in ["`lease`", "`attempt_timeout`", "`margin`"] {
        assert!(text.contains(field), "{text}");
    }
}

#[tokio::test]
async fn an_attempt_timeout_that_no_ledger_can_store() {
    let text = refused(builder(&memory()).attempt_timeout(Duration::from_micros(999)));
    assert!(text.contains("`attempt_timeout`") && text.contains("1 ms"), "{text}");
}

#[test]
fn a_runtime_without_a_timer() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let _in = runtime.enter();
    let text = refused(builder(&memory()));
    assert!(text.contains("timer") && text.contains("`enable_time`"), "{text}");
}

#[tokio::test]
async fn a_window_shorter_than_the_attempt_timeout() {
    let mut profile = Windowed::profile();
    profile.window_s = Some(1);
    let long = Duration::from_secs(2);
    let text = refused(builder(&memory()).profile(profile).attempt_timeout(long).lease(long * 10));
    assert!(text.contains("resend") && text.contains("window"), "{text}");
}

#[tokio::test]
async fn f18_a_retention_shorter_than_the_providers_window() {
    let mut profile = Windowed::profile();
    profile.window_s = Some(60 * 86_400);
    let text = refused(builder(&memory()).profile(profile));
    assert!(text.contains("`retention`") && text.contains("window"), "{text}");
}

#[tokio::test]
async fn a_profile_that_contradicts_itself() {
    let mut profile = Windowed::profile();
    profile.window_s = None;
    let text = refused(builder(&memory()).profile(profile));
    assert!(text.contains("window_s"), "{text}");
}

#[tokio::test]
async fn identifiers_are_checked() {
    let executor = executor(&memory());
    assert!(executor.tenant("").is_err());
    assert!(executor.tenant("a/b").is_err());
    let tenant = executor.tenant("acme").expect("a tenant");
    assert!(tenant.run("acme/too-short").is_err());
    let foreign = tenant.run("globex/0123456789abcdef").expect_err("another tenant's run");
    assert!(foreign.to_string().contains("tenant"), "{foreign}");
    let run = tenant.run("acme/0123456789abcdef").expect("a run");
    assert!(run.node("no spaces").is_err());
    run.node("charge").expect("a node");
}
