//! The servers that `./tests/run` starts, found by environment variables.
//!
//! ```
//! use effectual_tests::servers;
//!
//! fn refunds_once() {
//!     let Some(url) = servers::stripe_mock("golden: refunds once") else { return };
//!     // … the test, against `url` …
//! #   let _ = url;
//! }
//! ```
//!
//! Where the variable is missing the test leaves itself out and says so, unless `EFFECTUAL_TEST_REQUIRE=all`: then it
//! fails, so that a run which promises every part cannot pass without one.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;

/// `postgres://` URL of a superuser on a throw-away cluster; make a database of your own with
/// [`PostgresDatabase`](crate::database::PostgresDatabase).
pub fn postgres(part: &str) -> Option<String> {
    find(&POSTGRES, part)
}

/// `postgres://` URL of pgbouncer in transaction mode, before the same cluster; any of its databases can be named in it.
pub fn pgbouncer(part: &str) -> Option<String> {
    find(&PGBOUNCER, part)
}

/// Base URL of stripe-stateful-mock: deduplicates by `Idempotency-Key` and marks what it replays.
pub fn stripe_mock(part: &str) -> Option<String> {
    find(&STRIPE_MOCK, part)
}

/// Base URL of localstripe: a provider that ignores `Idempotency-Key` and performs again.
pub fn localstripe(part: &str) -> Option<String> {
    find(&LOCALSTRIPE, part)
}

/// The fault proxy's executable; see [`Microburst`](crate::microburst::Microburst).
pub fn microburst(part: &str) -> Option<PathBuf> {
    find(&MICROBURST, part).map(PathBuf::from)
}

struct Server {
    name: &'static str,
    variable: &'static str,
}

const POSTGRES: Server = Server { name: "PostgreSQL", variable: "EFFECTUAL_TEST_POSTGRES_URL" };
const PGBOUNCER: Server = Server { name: "pgbouncer", variable: "EFFECTUAL_TEST_PGBOUNCER_URL" };
const STRIPE_MOCK: Server =
    Server { name: "stripe-stateful-mock", variable: "EFFECTUAL_TEST_STRIPE_MOCK_URL" };
const LOCALSTRIPE: Server = Server { name: "localstripe", variable: "EFFECTUAL_TEST_LOCALSTRIPE_URL" };
const MICROBURST: Server = Server { name: "microburst", variable: "EFFECTUAL_TEST_MICROBURST" };

const REQUIRE: &str = "EFFECTUAL_TEST_REQUIRE";

fn find(server: &Server, part: &str) -> Option<String> {
    let value = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    match look_up(server, part, value) {
        Ok(found) => Some(found),
        Err(Missing::LeftOut(line)) => {
            say_once(&line);
            None
        }
        Err(Missing::Required(message)) => panic!("{message}"),
    }
}

#[derive(Debug, PartialEq)]
enum Missing {
    LeftOut(String),
    Required(String),
}

fn look_up(server: &Server, part: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, Missing> {
    if let Some(found) = value(server.variable) {
        return Ok(found);
    }
    let Server { name, variable } = server;
    match value(REQUIRE).as_deref() {
        None => Err(Missing::LeftOut(format!("left out: {part} (needs {name}; ./tests/run starts one)"))),
        Some("all") => {
            Err(Missing::Required(format!("{part} needs {name}: {REQUIRE}=all, and {variable} is not set")))
        }
        Some(other) => {
            Err(Missing::Required(format!("{REQUIRE} is {other:?}; it is either absent or \"all\"")))
        }
    }
}

/// To the process's standard error itself: what goes through `eprintln!` is captured, and shown for failures only.
fn say_once(line: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut said = SAID.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if said.insert(line.to_owned()) {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(values: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        move |name| values.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned())
    }

    #[test]
    fn a_server_that_is_there_is_found() {
        let found = look_up(&POSTGRES, "p", with(&[(POSTGRES.variable, "postgres://x"), (REQUIRE, "all")]));
        assert_eq!(found, Ok("postgres://x".to_owned()));
    }

    #[test]
    fn a_missing_server_leaves_the_part_out_by_name() {
        let line = "left out: one refund (needs localstripe; ./tests/run starts one)".to_owned();
        assert_eq!(look_up(&LOCALSTRIPE, "one refund", with(&[])), Err(Missing::LeftOut(line)));
    }

    #[test]
    fn a_missing_server_that_is_required_fails() {
        let Err(Missing::Required(message)) = look_up(&MICROBURST, "cuts", with(&[(REQUIRE, "all")])) else {
            panic!("left out although everything is required")
        };
        assert!(message.contains("cuts needs microburst") && message.contains(MICROBURST.variable));
    }

    #[test]
    fn an_unknown_requirement_is_not_taken_for_none() {
        assert!(matches!(look_up(&MICROBURST, "cuts", with(&[(REQUIRE, "al")])), Err(Missing::Required(_))));
    }
}
