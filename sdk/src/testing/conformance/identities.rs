//! Effects with further identities, from a raised key-schema version.

use super::support::{again, apply, argument, claim, history, join_all, request, success, win};
use crate::{
    Ledger,
    ledger::{
        Claim, ClaimRequest,
        identities::{Further, Identities},
    },
};

/// A call under version 1 and the same call under version 2, which has `line` in its key as well.
fn versions() -> (ClaimRequest, ClaimRequest) {
    let fingerprints = vec![argument("order", 1), argument("line", 1)];
    let first = ClaimRequest { fingerprints: fingerprints.clone().into(), ..request() };
    let second = raised(&first, fingerprints);
    (first, second)
}

/// A call under version 2 whose identity under version 1 is that of `first`.
fn raised(first: &ClaimRequest, fingerprints: Vec<crate::identity::ArgumentDigest>) -> ClaimRequest {
    ClaimRequest {
        key_version: 2,
        identities: Identities {
            further: vec![Further { id: first.id.clone(), key_version: 1 }],
            key_fields: vec!["order".to_owned(), "line".to_owned()],
        },
        fingerprints: fingerprints.into(),
        ..request()
    }
}

/// A raised version finds what an earlier one recorded, under the stored key; a call of either version then replays it.
pub async fn a_raised_version_finds_an_earlier_record(ledger: &dyn Ledger) {
    let (first, second) = versions();
    let won = win(ledger, &first).await;
    let settled = apply(ledger, &won, &success(b"1")).await;
    for request in [
        &second,
        &again(&second),
        &first,
        &ClaimRequest { identities: Identities::default(), ..again(&second) },
    ] {
        let Claim::Settled { record: found, .. } = claim(ledger, request).await else {
            panic!("it is stored")
        };
        assert_eq!((&found.id, &found.outcome), (&first.id, &settled.outcome));
        assert_eq!(found.provider_key, first.provider_key);
    }
    assert_eq!(history(ledger, &second.id).await, history(ledger, &first.id).await, "one effect under both");
}

/// A binary of the earlier version finds what a later one claimed first, and its owner goes on under either identity.
pub async fn an_earlier_version_finds_a_later_claim(ledger: &dyn Ledger) {
    let (first, second) = versions();
    let won = win(ledger, &second).await;
    assert_eq!(won.id, second.id);
    let Claim::InFlight { .. } = claim(ledger, &first).await else { panic!("it is claimed") };
    apply(ledger, &won, &success(b"2")).await;
    let Claim::Settled { record: found, .. } = claim(ledger, &first).await else { panic!("it is stored") };
    assert_eq!(found.id, second.id);
}

/// An earlier record that lacks a field of the key, or has another value in it, may or may not be the effect: nothing is
/// stored, and the caller is told.
pub async fn an_earlier_record_that_cannot_prove_it_is_ambiguous(ledger: &dyn Ledger) {
    for recorded in [vec![argument("order", 1)], vec![argument("order", 1), argument("line", 2)]] {
        let first = ClaimRequest { fingerprints: recorded.into(), ..request() };
        let won = win(ledger, &first).await;
        let second = raised(&first, vec![argument("order", 1), argument("line", 1)]);
        for _ in 0..2 {
            let told = claim(ledger, &second).await;
            assert!(matches!(told, Claim::SchemaAmbiguous), "{told:?}");
        }
        assert!(ledger.read(&second.id).await.expect("an answer").is_none());
        assert_eq!(history(ledger, &first.id).await.effect, won);
    }
}

/// Two effects of the raised version with one earlier identity between them are two effects: the first keeps it.
pub async fn an_earlier_identity_belongs_to_one_effect(ledger: &dyn Ledger) {
    let (first, second) = versions();
    let one = win(ledger, &second).await;
    let other = raised(&first, vec![argument("order", 1), argument("line", 2)]);
    let two = win(ledger, &other).await;
    assert_ne!(one.id, two.id);
    assert_eq!(history(ledger, &first.id).await.effect.id, one.id);
}

/// Of binaries of both versions at once, one wins.
pub async fn of_both_versions_at_once_one_wins(ledger: &dyn Ledger) {
    let (first, second) = versions();
    let requests: Vec<_> =
        (0..32).map(|number| again(if number % 2 == 0 { &first } else { &second })).collect();
    let answers = join_all(
        requests
            .iter()
            .map(|request| {
                Box::pin(claim(ledger, request)) as std::pin::Pin<Box<dyn Future<Output = Claim> + Send>>
            })
            .collect(),
    )
    .await;
    let won = answers.iter().filter(|claim| matches!(claim, Claim::Won { .. })).count();
    let in_flight = answers.iter().filter(|claim| matches!(claim, Claim::InFlight { .. })).count();
    assert_eq!((won, in_flight), (1, 31));
}
