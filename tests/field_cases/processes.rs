//! Identities and keys that every process derives alike.

use std::{collections::BTreeMap, sync::Arc};

use effectual::{EffectContext, Ledger, MemoryLedger, Never, effect};
use effectual_tests::process::{Process, tell, told};

use crate::{
    bank::{Bank, resend_at},
    effects::{executor, receipted},
};

#[effect(keying = business_identity, operation = "ship-order")]
async fn ship_order(
    _cx: &EffectContext,
    #[key] parts: BTreeMap<String, u64>,
    #[key] note: String,
) -> effectual::Result<(), Never> {
    let _ = (parts, note);
    Ok(())
}

/// Letters that a locale would order or fold in its own way.
const NAMES: [&str; 8] = ["I", "i", "ı", "İ", "ß", "ä", "z", "Å"];

/// Never to be changed: other values mean that every recorded effect has another identity.
const GOLDEN: &str = "acme/065d207a9f4835a8d78fcd79b61aaa525cae6b37f997f98f075045fa13887f32";

async fn id_of_order() -> String {
    let ledger: Arc<dyn Ledger> = Arc::new(MemoryLedger::new());
    let (receipt, scope) = receipted(&executor(&ledger));
    let parts = NAMES.iter().zip(1..).map(|(name, number)| ((*name).to_owned(), number)).collect();
    ship_order(&scope, parts, "Ünïcode ıİ".to_owned()).await.expect("shipped");
    receipt.effect_id().expect("an identity").to_string()
}

#[tokio::test]
#[ignore = "run by the tests of this file in processes of their own"]
async fn child_tells_an_identity() {
    tell(id_of_order().await);
}

fn identities(children: impl Iterator<Item = &'static str>) -> Vec<String> {
    let children: Vec<_> = children
        .zip(0..)
        .map(|(locale, number)| {
            Process::start("processes::child_tells_an_identity", "", number, |command| {
                command.env("LANG", locale).env("LC_ALL", locale);
            })
        })
        .collect();
    children.into_iter().flat_map(Process::finish).collect()
}

#[test]
fn f49_a_map_is_the_same_identity_in_a_hundred_processes() {
    for _ in 0..10 {
        assert_eq!(identities(std::iter::repeat_n("C", 10)), vec![GOLDEN; 10]);
    }
}

#[test]
fn f50_no_locale_has_a_say_in_an_identity() {
    let locales = ["tr_TR.UTF-8", "C", "de_DE.UTF-8", "POSIX", ""];
    assert_eq!(identities(locales.into_iter()), vec![GOLDEN; locales.len()]);
}

#[tokio::test]
#[ignore = "run by f12 in processes of its own"]
async fn child_charges() {
    let (bank, number) = told();
    // Ledgers of their own: it is the business act and not a record that makes the key.
    let ledger: Arc<dyn Ledger> = Arc::new(MemoryLedger::new());
    let (_, scope) = receipted(&executor(&ledger));
    let order = format!("order-{}", number / 3);
    tell(resend_at(&scope, order, bank.display().to_string()).await.expect("charged"));
}

#[test]
fn f12_three_retries_in_three_processes_present_one_key() {
    let bank = Bank::open(true, 0);
    for number in 0..6 {
        let told = Process::start("processes::child_charges", bank.address(), number, |_| {}).finish();
        assert_eq!(told, [(number / 3 + 1).to_string()], "of two acts, each charged once");
    }
    let keys = bank.keys();
    assert_eq!((bank.performed(), keys.len()), (2, 6));
    assert!(keys[..3].iter().all(|key| *key == keys[0]), "{keys:?}");
    assert!(keys[3..].iter().all(|key| *key == keys[3] && *key != keys[0]), "{keys:?}");
}
