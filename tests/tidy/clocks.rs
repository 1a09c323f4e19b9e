//! Time comes from one place, and no test waits by sleeping.

use crate::files::{self, code};

/// What waits by itself in the tests, and why it may.
const SLEEPERS: [(&str, &str); 6] = [
    ("examples/host/effects.rs", "the host comes back to a run after a while"),
    ("examples/host/seams.rs", "holds a request for as long as it is told to"),
    ("tests/soaking/bank.rs", "an outage lasts for a while"),
    ("tests/soaking/chaos.rs", "faults come at random moments"),
    ("tests/sqlite/trouble.rs", "polls a file under a deadline"),
    ("tests/tidy/clocks.rs", "names what it looks for"),
];

#[test]
fn only_the_clock_reads_a_clock() {
    let clock = ["Instant::now", "SystemTime::now", "tokio::time::", "thread::sleep"];
    let mut breaches = Vec::new();
    for file in files::rust(&["sdk/src", "macros/src"]) {
        if file.path == "sdk/src/clock.rs" {
            continue;
        }
        for (at, line) in code(&file.text) {
            if let Some(found) = clock.iter().find(|found| line.contains(**found)) {
                breaches.push(format!("{}:{at}: {found}", file.path));
            }
        }
    }
    files::none("ask `crate::clock` instead", &breaches);
}

/// What takes turns at random cannot be repeated from a seed.
#[test]
fn every_select_has_an_order() {
    let mut breaches = Vec::new();
    for file in files::rust(&["sdk/src/executor", "sdk/src/ledger/writer.rs"]) {
        for (at, line) in code(&file.text).filter(|(_, line)| line.contains("select! {")) {
            if file.text.lines().nth(at).is_none_or(|next| next.trim() != "biased;") {
                breaches.push(format!("{}:{at}: {}", file.path, line.trim()));
            }
        }
    }
    files::none("begin it with `biased;`", &breaches);
}

#[test]
fn no_test_sleeps() {
    let mut breaches = Vec::new();
    for file in files::rust(&["tests", "examples"]) {
        if SLEEPERS.iter().any(|(path, _)| file.path == *path) {
            continue;
        }
        for (at, line) in code(&file.text) {
            if line.contains("sleep(") {
                breaches.push(format!("{}:{at}: {}", file.path, line.trim()));
            }
        }
    }
    files::none("wait for a signal, or ask again with `effectual_tests::wait::until`", &breaches);
}

#[test]
fn every_exception_is_still_needed() {
    for (path, reason) in SLEEPERS {
        assert!(
            files::read(path).text.contains("sleep("),
            "{path} no longer sleeps ({reason}): strike it out"
        );
    }
}
