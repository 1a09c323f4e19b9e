//! What a process does that is killed.

use effectual_tests::process;

use crate::books::*;

/// Which kind of ledger.
pub(crate) const KIND: &str = "EFFECTUAL_TEST_CHILD_LEDGER";

/// Books, tells its parent how far it has come, and waits to be killed: number 1 before its commit, 2 after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by its parent, in a process of its own"]
async fn books_and_waits() {
    let (at, number) = process::told();
    let kind = std::env::var(KIND).expect("a word from the parent");
    let ledger = open_at(&kind, at.to_str().expect("UTF-8"), 0).await;
    let executor = builder(&ledger).build().expect("a valid set-up");
    let (_, scope) = receipted(&executor);
    let script = Script::of(if number == 1 { vec![Then::Wait] } else { Vec::new() });
    let told = async {
        script.waiting().await;
        process::tell("written");
    };
    let book = async {
        match kind.as_str() {
            "sqlite" => sqlite::book(&scope, "k-1".into(), script.clone()).await,
            _ => postgres::book(&scope, "k-1".into(), script.clone()).await,
        }
    };
    tokio::select! {
        ((), _) = async { tokio::join!(told, std::future::pending::<()>()) } => {}
        booked = book => {
            booked.expect("booked");
            process::tell("committed");
        }
    }
    std::future::pending::<()>().await;
}
