//! Outcomes at the edges of JSON.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use effectual::{EffectContext, ErrorKind, Ledger, Never, effect};
use effectual_tests::on_each_ledger;
use serde::{Deserialize, Serialize};

use crate::effects::*;

on_each_ledger![f22_values_at_the_edges_of_json_come_back_as_they_were_first_returned];

/// Written and read by other names than each other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Lopsided {
    kept: u8,
    #[serde(skip)]
    left_out: u8,
}

macro_rules! outcomes {
    ($($name:ident: $type:ty = $value:expr;)+) => {
        $(#[effect(keying = business_identity)]
        async fn $name(
            _cx: &EffectContext,
            #[key] order: u64,
            #[skip] ran: Arc<AtomicU32>,
        ) -> effectual::Result<$type, Never> {
            let _ = (order, ran.fetch_add(1, Ordering::SeqCst));
            Ok($value)
        })+

        async fn f22_values_at_the_edges_of_json_come_back_as_they_were_first_returned(ledger: Arc<dyn Ledger>) {
            let executor = executor(&ledger);
            $({
                let (receipt, scope) = receipted(&executor);
                let ran = Arc::default();
                let mut ends = Vec::new();
                for _ in 0..2 {
                    let end = $name(&scope, 1, Arc::clone(&ran)).await;
                    ends.push(end.map_err(|error| error.kind()));
                }
                assert_eq!(ends[0], ends[1], stringify!($name));
                assert!(matches!(ends[0], Ok(_) | Err(ErrorKind::Unreadable)), stringify!($name));
                assert_eq!((ran.load(Ordering::SeqCst), receipt.replayed()), (1, true), stringify!($name));
            })+
        }
    };
}

outcomes! {
    unit: () = ();
    nothing: Option<u8> = None;
    nothing_in_something: Option<Option<u8>> = Some(None);
    not_a_number: f64 = f64::NAN;
    perhaps_not_a_number: Option<f64> = Some(f64::NAN);
    negative_zero: f64 = -0.0;
    smallest: f64 = f64::MIN_POSITIVE / 3.0;
    largest: u128 = u128::MAX;
    least: i128 = i128::MIN;
    lopsided: Lopsided = Lopsided { kept: 1, left_out: 2 };
    text: String = "\0\u{feff}\u{1F980}\u{2028}".to_owned();
}

#[effect(keying = business_identity)]
async fn wide(_cx: &EffectContext, #[key] order: u64) -> effectual::Result<(u128, i128, ()), Never> {
    let _ = order;
    Ok((u128::MAX, i128::MIN, ()))
}

#[tokio::test]
async fn f48_integers_of_128_bits_are_exact() {
    let ledger: Arc<dyn Ledger> = Arc::new(effectual::MemoryLedger::new());
    let value = wide(&receipted(&executor(&ledger)).1, 1).await.expect("decodes");
    assert_eq!(value, (u128::MAX, i128::MIN, ()));
}
