//! Every example is run as its header says, and says what it said when it was written down.
//!
//! `tests/examples/<name>.txt` has the commands and their output, with `<…>` in the place of what differs from run to run.
//! `EFFECTUAL_TEST_WRITE=1` writes the files anew.
#![forbid(unsafe_code)]

use effectual_tests::{
    charges,
    program::{self, Program, Said},
    servers,
};

/// Runs the example once for each list of arguments, over the same files, and compares.
fn runs_as_written(name: &str, runs: &[&[&str]]) {
    let program = Program::of(name);
    let said: Vec<Said> = runs.iter().map(|arguments| program.run(arguments, &[])).collect();
    program.compare(&said);
}

#[test]
fn quickstart() {
    runs_as_written("quickstart", &[&["--fresh"], &[]]);
}

#[test]
fn workflow_node() {
    runs_as_written("workflow_node", &[&["--fresh"], &[]]);
}

#[test]
fn crash_and_resume() {
    runs_as_written("crash_and_resume", &[&["--fresh"], &[], &[]]);
}

#[test]
fn kill_me() {
    runs_as_written("kill_me", &[&[], &[]]);
}

#[test]
fn operator_and_node() {
    runs_as_written("operator_and_node", &[&["--fresh"], &[]]);
}

#[test]
fn custom_error() {
    runs_as_written("custom_error", &[&[]]);
}

#[test]
fn graceful_shutdown() {
    runs_as_written("graceful_shutdown", &[&["--now"]]);
}

/// It goes on until it is told to end; here it only says what it needs. `tests/host` drives it.
#[test]
fn host() {
    runs_as_written("host", &[&[]]);
}

#[test]
fn stripe_refund() {
    let Some(url) = servers::stripe_mock("the example stripe_refund") else { return };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let charge = runtime.block_on(charges::at_stripe_mock(&url));
    let program = Program::of("stripe_refund");
    let ledger = program.folder().join("ledger.db").display().to_string();
    let environment = [
        ("STRIPE_API_BASE", url.as_str()),
        ("STRIPE_SECRET_KEY", charges::SECRET),
        ("STRIPE_REFUND_LEDGER", ledger.as_str()),
    ];
    let run = |amount| program.run(&[charge.as_str(), amount], &environment);
    program.compare(&[run("500"), run("500"), run("600")]);
}

/// One that is listed and not run here would be an example that nobody checks.
#[test]
fn no_example_is_left_out() {
    let here = include_str!("examples.rs");
    for name in program::names() {
        assert!(here.contains(&format!("fn {name}()")), "no test runs the example `{name}`");
    }
}
