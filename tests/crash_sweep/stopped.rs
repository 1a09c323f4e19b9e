//! Workers that are stopped, as by `SIGSTOP`, for longer than their lease, and then go on.

use std::{
    io::Write,
    net::{TcpListener, TcpStream},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use effectual_tests::{
    counted::Counted,
    database::{PostgresDatabase, SqliteFile},
    process::Process,
    servers,
    wait::until,
};
use sqlx::{ConnectOptions, Connection, PgConnection, sqlite::SqliteConnectOptions};

use crate::{boundary::Boundary, model::Class, worker::Job};

const LIMIT: Duration = Duration::from_secs(60);

/// Long enough that the worker is stopped before its first renewal.
const LEASE_MS: u64 = 2_400;

/// A worker that stands at a boundary, stopped.
struct Stopped {
    worker: Process,
    gate: TcpStream,
}

impl Stopped {
    /// It goes on: what it says is what its calls came to.
    fn go_on(mut self) -> Vec<String> {
        self.worker.stop(false);
        self.gate.write_all(b"!").expect("it stands at the gate");
        self.worker.finish()
    }
}

/// One effect over one ledger.
struct Case {
    ledger: &'static str,
    place: String,
    provider: Counted,
    class: Class,
    order: String,
}

impl Case {
    fn job(&self, gate: Option<(Boundary, String)>) -> Job<'_> {
        Job {
            ledger: self.ledger,
            place: &self.place,
            provider: self.provider.url(),
            generation: 0,
            orders: vec![(self.class, self.order.clone())],
            stop: gate.as_ref().map(|(boundary, _)| (*boundary, 1)),
            // The other worker's lease is long enough for a machine that is busy.
            lease_ms: gate.is_some().then_some(LEASE_MS),
            gate: gate.map(|(_, address)| address),
        }
    }

    fn stop_at(&self, boundary: Boundary) -> Stopped {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address").to_string();
        let worker = self.job(Some((boundary, address))).start();
        let (gate, _) = listener.accept().expect("the worker at the gate");
        worker.stop(true);
        Stopped { worker, gate }
    }

    /// Calls the effect in another process, which waits for the lease of the first.
    fn call(&self) -> Vec<String> {
        self.job(None).start().finish()
    }

    async fn wait_for_the_lease(&self) {
        let sql = "SELECT max(lease_until) FROM effectual_effects";
        let lease_until: i64 = if self.ledger == "sqlite" {
            let mut file =
                SqliteConnectOptions::new().filename(&self.place).connect().await.expect("the file");
            sqlx::query_scalar(sql).fetch_one(&mut file).await.expect("the lease")
        } else {
            let mut server = PgConnection::connect(&self.place).await.expect("the server");
            sqlx::query_scalar(sql).fetch_one(&mut server).await.expect("the lease")
        };
        until("the lease to end", LIMIT, async || now_ms() > lease_until).await;
    }

    fn said(&self, result: &str, stored: &str) -> [String; 1] {
        [format!("{}|{result}|{result}|{stored}", self.order)]
    }

    fn counted(&self) -> (u32, usize) {
        let account = self.provider.account(&self.order);
        (account.performed, account.keys.len())
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_millis()).expect("before the year 292 million")
}

/// Stopped before the send, and taken over meanwhile: the permit refuses, and nothing of this worker reaches the provider.
async fn before_the_send_taken_over(case: Case) {
    let stopped = case.stop_at(Boundary::BeforeSend);
    let stored = "completed 1:unknown 2:performed";
    assert_eq!(case.call(), case.said("1", stored), "the other worker takes over and sends");
    assert_eq!(case.counted(), (1, 1));
    let mut said = stopped.go_on();
    assert_eq!(said.remove(0), "not sent: LeaseTooShort");
    assert_eq!(said, case.said("1", stored), "it becomes a waiter of the new owner");
    assert_eq!(case.counted(), (1, 1), "and sends nothing");
}

/// Stopped before the send, and nobody takes over: it sends only under a lease that it has renewed, or claims anew.
async fn before_the_send_not_taken_over(case: Case) {
    let stopped = case.stop_at(Boundary::BeforeSend);
    case.wait_for_the_lease().await;
    let said = stopped.go_on();
    let [sent, line] = &said[..] else { panic!("one effect: {said:?}") };
    assert!(sent == "sent" || sent == "not sent: LeaseTooShort", "{sent}");
    assert!(line.starts_with(&format!("{}|1|1|completed 1:", case.order)), "{line}");
    assert_eq!(case.counted().0, 1);
}

/// Stopped before the settle, and nobody takes over: the settle counts although the lease has ended.
async fn before_the_settle_not_taken_over(case: Case) {
    let stopped = case.stop_at(Boundary::BeforeSettle);
    case.wait_for_the_lease().await;
    assert_eq!(stopped.go_on(), case.said("1", "completed 1:performed"));
    assert_eq!(case.counted(), (1, 1));
}

/// Stopped before the settle, and taken over as the class says: its outcome is refused and kept as evidence, unless the
/// other worker has only said that it does not know.
async fn before_the_settle_taken_over(case: Case) {
    let stopped = case.stop_at(Boundary::BeforeSettle);
    let (other, then, counted) = match case.class {
        Class::Hold => {
            (case.said("escaped", "escaped 1:open"), case.said("1", "completed 1:performed"), (1, 1))
        }
        Class::Resend => {
            let stored = "completed 1:unknown 2:performed";
            (case.said("1", stored), case.said("1", &format!("{stored} evidence:performed")), (1, 2))
        }
        Class::Reconcile => {
            let stored = "completed 1:performed";
            (case.said("1", stored), case.said("1", &format!("{stored} evidence:performed")), (1, 1))
        }
        Class::Rerun => {
            let stored = "completed 1:unknown 2:performed";
            (case.said("2", stored), case.said("2", &format!("{stored} evidence:performed")), (2, 2))
        }
    };
    assert_eq!(case.call(), other);
    assert_eq!(stopped.go_on(), then);
    assert_eq!(case.counted(), counted);
}

fn case(ledger: &'static str, place: String, class: Class) -> Case {
    Case { ledger, place, provider: Counted::open(), class, order: format!("{class:?}") }
}

/// Makes a test of an `async fn(Case)` with a class, on a file and on a server.
macro_rules! stopped {
    ($($name:ident: $run:ident, $class:ident;)+) => {
        $(mod $name {
            use super::*;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                let file = SqliteFile::new();
                $run(case("sqlite", file.path().display().to_string(), Class::$class)).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                let Some(server) = servers::postgres(concat!(stringify!($name), " on PostgreSQL")) else { return };
                let database = PostgresDatabase::create(&server).await;
                $run(case("postgres", database.url(), Class::$class)).await;
            }
        })+
    };
}

stopped! {
    f06_a_worker_stopped_before_its_send_sends_nothing_once_it_is_taken_over: before_the_send_taken_over, Resend;
    a_worker_stopped_before_its_send_that_nobody_took_over_performs: before_the_send_not_taken_over, Resend;
    f31_a_worker_stopped_before_its_settle_that_nobody_took_over_settles: before_the_settle_not_taken_over, Hold;
    f31_a_settle_after_an_escape_counts: before_the_settle_taken_over, Hold;
    f31_a_settle_after_a_re_send_is_evidence: before_the_settle_taken_over, Resend;
    f31_a_settle_after_a_look_up_is_evidence: before_the_settle_taken_over, Reconcile;
    f31_a_settle_after_a_rerun_is_evidence: before_the_settle_taken_over, Rerun;
}
