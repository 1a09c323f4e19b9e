//! Processes that are killed between the provider's action and the settle.

use std::{any::Any, time::Duration};

use effectual::{EffectError, ErrorKind};
use effectual_tests::{
    database::{PostgresDatabase, SqliteFile},
    process::{Process, tell, told},
    scripted::ScriptedError,
    servers,
    wait::until,
};

use crate::bank::{Bank, hold_at, open_ledger, patient, reconcile_at, rerun_at, resend_at};

const LIMIT: Duration = Duration::from_secs(60);

/// The ledgers that several processes can share: a file, and a database where there is a server.
async fn shared_ledgers(part: &str) -> Vec<(String, Box<dyn Any>)> {
    let file = SqliteFile::new();
    let mut places = vec![(file.path().display().to_string(), Box::new(file) as Box<dyn Any>)];
    if let Some(server) = servers::postgres(part) {
        let database = PostgresDatabase::create(&server).await;
        places.push((database.url(), Box::new(database)));
    }
    places
}

/// Which effect a child calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Resend,
    Reconcile,
    Hold,
    Rerun,
}

const CLASSES: [Class; 4] = [Class::Resend, Class::Reconcile, Class::Hold, Class::Rerun];

async fn call(place: &str, class: Class, bank: String) -> Result<u32, EffectError<ScriptedError>> {
    let ledger = open_ledger(place).await;
    let executor = patient(&ledger).build().expect("a valid set-up");
    let scope = executor.tenant("acme").expect("a tenant");
    let order = format!("{class:?}");
    match class {
        Class::Resend => resend_at(&scope, order, bank).await,
        Class::Reconcile => reconcile_at(&scope, order, bank).await,
        Class::Hold => hold_at(&scope, order, bank).await,
        Class::Rerun => rerun_at(&scope, order, bank).await,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the tests of this file in processes of their own"]
async fn child_calls() {
    let (told, class) = told();
    let told = told.display().to_string();
    let (place, bank) = told.split_once('\n').expect("a ledger and a bank");
    let class = CLASSES[usize::try_from(class).expect("a small number")];
    match call(place, class, bank.to_owned()).await {
        Ok(number) => tell(number),
        Err(error) => tell(format!("{:?}", error.kind())),
    }
}

fn child(place: &str, class: Class, bank: &Bank) -> Process {
    let number = CLASSES.iter().position(|other| *other == class).expect("a class");
    let number = u64::try_from(number).expect("a small number");
    Process::start("killed::child_calls", format!("{place}\n{}", bank.address()), number, |_| {})
}

/// Kills a child once the bank has performed its request number `nth` and before it can have been told so.
async fn kill_at_request(place: &str, class: Class, bank: &Bank, nth: usize) {
    let child = child(place, class, bank);
    until("the request to arrive", LIMIT, async || bank.keys().len() == nth).await;
    child.kill();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f14_a_process_killed_before_its_settle_is_recovered_by_the_class() {
    for (place, _keep) in shared_ledgers("f14 on PostgreSQL").await {
        let of_class = async |class: Class| {
            let bank = Bank::open(class == Class::Resend, 1);
            kill_at_request(&place, class, &bank, 1).await;
            let end = call(&place, class, bank.address()).await;
            (end.map_err(|error| error.kind()), bank.performed(), bank.keys())
        };
        let (resend, reconcile, hold, rerun) = tokio::join!(
            of_class(Class::Resend),
            of_class(Class::Reconcile),
            of_class(Class::Hold),
            of_class(Class::Rerun)
        );
        assert_eq!((&resend.0, resend.1, resend.2.len()), (&Ok(1), 1, 2), "the same key twice, one charge");
        assert_eq!(resend.2[0], resend.2[1]);
        assert_eq!((reconcile.0, reconcile.1, reconcile.2.len()), (Ok(1), 1, 1), "looked up, not sent");
        assert_eq!((hold.0, hold.1, hold.2.len()), (Err(ErrorKind::Escaped), 1, 1));
        assert_eq!((rerun.0, rerun.1, rerun.2.len()), (Ok(2), 2, 2), "only this one runs again");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f20_three_kills_during_the_effect_perform_it_once() {
    for (place, _keep) in shared_ledgers("f20 on PostgreSQL").await {
        // Every one of them gets as far as the provider, which knows the key.
        let bank = Bank::open(true, 3);
        for nth in 1..=3 {
            kill_at_request(&place, Class::Resend, &bank, nth).await;
        }
        assert_eq!(call(&place, Class::Resend, bank.address()).await.expect("the stored answer"), 1);
        let keys = bank.keys();
        assert_eq!((bank.performed(), keys.len()), (1, 4));
        assert!(keys.iter().all(|key| *key == keys[0]), "one key: {keys:?}");

        // At a provider that knows no keys nothing is sent again, however often it is started.
        let bank = Bank::open(false, 3);
        kill_at_request(&place, Class::Hold, &bank, 1).await;
        for _ in 0..2 {
            assert_eq!(child(&place, Class::Hold, &bank).finish(), ["Escaped"]);
        }
        assert_eq!((bank.performed(), bank.keys().len()), (1, 1));
    }
}
